//! Traces: the ids and the context that travel between programs, and the work that is written to them.

mod ids;
mod parent;
mod span;

pub use ids::{SpanId, TraceId};
pub use parent::{BadParent, TraceParent};
pub use span::{Span, SpanKind, SpanValue};
