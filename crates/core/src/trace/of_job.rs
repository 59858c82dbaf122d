//! The positions of jobs and attempts in traces.
//!
//! ```text
//! (the submitter) ─ job ─┬─ submit ─┬─ verdict
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
    /// The trace of everything about the job. If the client gave only a name, the id is derived from the name.
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

    /// The span of the call or step that submitted the job.
    pub fn submit_span(&self) -> SpanId {
        SpanId::of(&["submit", self.job_id.as_str()])
    }
}

impl Job {
    /// The span of the current life.
    pub fn span(&self) -> SpanId {
        SpanId::of(&["job", self.request.job_id.as_str(), &self.life.no.to_string()])
    }

    /// The span of an attempt, by its number.
    pub fn attempt_span(&self, no: u32) -> SpanId {
        attempt_span(&self.request.job_id, no)
    }

    /// The trace context that the worker of the current attempt gets.
    pub fn attempt_context(&self, sampled: bool) -> TraceParent {
        let span = Some(self.attempt_span(self.life.attempt.no));
        TraceParent { trace: self.request.trace(), span, sampled }
    }
}

fn attempt_span(job: &JobId, no: u32) -> SpanId {
    SpanId::of(&["attempt", job.as_str(), &no.to_string()])
}

/// A trace id, or an id derived from any other name.
fn named(name: &str) -> TraceId {
    TraceId::parse(&name.to_ascii_lowercase()).unwrap_or_else(|| TraceId::of(&["trace", name]))
}
