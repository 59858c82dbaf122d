//! Where spans go. Nobody has to take them: a process without this port does not even make them.

use lockgate_core::trace::{Span, TraceId, TraceParent};

pub trait Spans: Send + Sync {
    /// Nanoseconds since the Unix epoch. Finer than the clock, and nothing is ever decided by it.
    fn now(&self) -> u64;

    /// Whether spans of a trace are wanted. The same answer for the same trace, in every process of the same settings;
    /// where somebody upstream decided, that counts as far as the settings say so.
    fn wants(&self, trace: &TraceId, parent: Option<&TraceParent>) -> bool;

    /// Takes them at once, or drops and counts what there is no room for: work never waits for those who watch it.
    fn record(&self, spans: Vec<Span>);
}
