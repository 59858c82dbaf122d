//! Traces: which work belongs together, across processes and restarts.
//!
//! Ids of traces and spans are derived from stored ids. Any process can name a span that another one writes, so only the job
//! has to be stored between a submit and a result.

mod of_job;
mod of_run;

#[cfg(test)]
mod tests;

pub use lockgate_contract::trace::{BadParent, Span, SpanId, SpanKind, SpanValue, TraceId, TraceParent};
