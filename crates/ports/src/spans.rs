//! The sink for spans. The port is optional: a process without it makes no spans.

use lockgate_core::trace::{Span, TraceId, TraceParent};

pub trait Spans: Send + Sync {
    /// Nanoseconds since the Unix epoch. Finer than the clock; no decision uses it.
    fn now(&self) -> u64;

    /// Whether spans of a trace are recorded. Equal for a trace in every process with equal settings. An upstream service's
    /// decision counts as far as the settings say so.
    fn wants(&self, trace: &TraceId, parent: Option<&TraceParent>) -> bool;

    /// Takes the spans at once, or drops and counts those without room: work never waits for observers.
    fn record(&self, spans: Vec<Span>);
}
