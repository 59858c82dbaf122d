//! The positions of runs in traces: one root, with the jobs of all nodes and the sub-runs below it.

use super::{SpanId, TraceId, TraceParent};
use crate::dag::RunHead;
use crate::ids::RunId;

impl RunId {
    /// The trace of a run whose client sent none.
    pub fn own_trace(&self) -> TraceId {
        TraceId::of(&["run", self.as_str()])
    }
}

impl RunHead {
    /// The span of the run, from its start or latest rerun to its end.
    pub fn span(&self) -> SpanId {
        match self.reruns {
            0 => self.first_span(),
            again => SpanId::of(&["run", self.id.as_str(), &again.to_string()]),
        }
    }

    fn first_span(&self) -> SpanId {
        SpanId::of(&["run", self.id.as_str()])
    }

    /// The parent of the run's span. A rerun is a child of the first run, so that the trace keeps a single root.
    pub fn span_parent(&self) -> Option<SpanId> {
        match self.reruns {
            0 => self.trace.and_then(|trace| trace.span),
            _ => Some(self.first_span()),
        }
    }

    /// The trace context that jobs and sub-runs of the run get.
    pub fn context(&self) -> Option<TraceParent> {
        self.trace.map(|trace| TraceParent { span: Some(self.span()), ..trace })
    }
}
