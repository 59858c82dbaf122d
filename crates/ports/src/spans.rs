//! Where spans go. The port is optional: a process without it makes no spans.

use lockgate_core::trace::{Span, TraceId, TraceParent};

pub trait Spans: Send + Sync {
    /// Nanoseconds since the Unix epoch. Finer than the clock, and nothing is ever decided by it.
    fn now(&self) -> u64;

    /// Whether spans of a trace are wanted. The same answer for the same trace, in every process of the same settings;
    /// where an upstream service decided, its decision counts as far as the settings say so.
    fn wants(&self, trace: &TraceId, parent: Option<&TraceParent>) -> bool;

    /// Takes them at once, or drops and counts what there is no room for: work never waits for those who watch it.
    fn record(&self, spans: Vec<Span>);
}
