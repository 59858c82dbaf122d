//! Traces: which work belongs together, over processes and restarts.
//!
//! Ids of traces and spans follow from ids that are stored anyway. Any process can name a span that another one writes, so
//! nothing has to be remembered between a submit and a result but the job itself.

mod of_job;
mod of_run;

#[cfg(test)]
mod tests;

pub use lockgate_contract::trace::{BadParent, Span, SpanId, SpanKind, SpanValue, TraceId, TraceParent};
