//! Where runs stand in traces: one root, the jobs of all nodes below it, inner runs below theirs.

use super::{SpanId, TraceId, TraceParent};
use crate::dag::RunHead;
use crate::ids::RunId;

impl RunId {
    /// The trace of a run that nobody gave one.
    pub fn own_trace(&self) -> TraceId {
        TraceId::of(&["run", self.as_str()])
    }
}

impl RunHead {
    /// The span of the run, from its start, or from its latest rerun, to its end.
    pub fn span(&self) -> SpanId {
        match self.reruns {
            0 => self.first_span(),
            again => SpanId::of(&["run", self.id.as_str(), &again.to_string()]),
        }
    }

    fn first_span(&self) -> SpanId {
        SpanId::of(&["run", self.id.as_str()])
    }

    /// What the span stands below. A rerun stands below the first run, so that a trace keeps its one root.
    pub fn span_parent(&self) -> Option<SpanId> {
        match self.reruns {
            0 => self.trace.and_then(|trace| trace.span),
            _ => Some(self.first_span()),
        }
    }

    /// What the jobs and inner runs of the run are told.
    pub fn context(&self) -> Option<TraceParent> {
        self.trace.map(|trace| TraceParent { span: Some(self.span()), ..trace })
    }
}
