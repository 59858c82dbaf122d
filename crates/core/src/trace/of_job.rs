//! Where jobs and their attempts stand in traces.
//!
//! ```text
//! (whoever submitted) ─ job ─┬─ submit ─┬─ verdict
//!                            │          └─ commit
//!                            └─ attempt 1 ─┬─ claim
//!                                          ├─ dispatch ── commit
//!                                          ├─ run           (in the worker)
//!                                          ├─ output check
//!                                          └─ commit
//! ```

use super::{SpanId, TraceId, TraceParent};
use crate::ids::JobId;
use crate::job::Job;
use crate::request::JobRequest;

impl JobRequest {
    /// The trace that everything about the job belongs to. One that was only given a name has an id made of it.
    pub fn trace(&self) -> TraceId {
        match (&self.parent, self.trace_id.as_deref()) {
            (Some(parent), _) => parent.trace,
            (None, Some(name)) => named(name),
            (None, None) => TraceId::of(&["job", self.job_id.as_str()]),
        }
    }

    /// How people find the trace: the name that the client gave, or the id.
    pub fn trace_name(&self) -> String {
        self.trace_id.as_deref().map_or_else(|| self.trace().to_string(), ToOwned::to_owned)
    }

    /// Span of the call or the step that brought the job in.
    pub fn submit_span(&self) -> SpanId {
        SpanId::of(&["submit", self.job_id.as_str()])
    }
}

impl Job {
    /// Span of the current life.
    pub fn span(&self) -> SpanId {
        SpanId::of(&["job", self.request.job_id.as_str(), &self.life.no.to_string()])
    }

    /// Span of an attempt, by its number.
    pub fn attempt_span(&self, no: u32) -> SpanId {
        attempt_span(&self.request.job_id, no)
    }

    /// What the worker of the current attempt is told.
    pub fn attempt_context(&self, sampled: bool) -> TraceParent {
        let span = Some(self.attempt_span(self.life.attempt.no));
        TraceParent { trace: self.request.trace(), span, sampled }
    }
}

fn attempt_span(job: &JobId, no: u32) -> SpanId {
    SpanId::of(&["attempt", job.as_str(), &no.to_string()])
}

/// A trace id, or any other name.
fn named(name: &str) -> TraceId {
    TraceId::parse(&name.to_ascii_lowercase()).unwrap_or_else(|| TraceId::of(&["trace", name]))
}
