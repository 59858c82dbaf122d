//! Spans of what the engine does. Without somebody who takes them nothing here costs more than a look at an `Option`.

mod jobs;
mod runs;

use std::sync::Arc;

use lockgate_core::job::Job;
use lockgate_core::request::JobRequest;
use lockgate_core::trace::{Span, TraceParent};
use lockgate_ports::Spans;

pub(crate) struct Traces(Option<Arc<dyn Spans>>);

/// When a piece of work began; nothing while nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TraceStart(Option<u64>);

/// From when to when a piece of work went on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lap(Option<(u64, u64)>);

/// How jobs came in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SubmitTimes {
    pub(crate) began: TraceStart,
    pub(crate) verdict: Lap,
}

impl Traces {
    pub(crate) fn new(spans: Option<Arc<dyn Spans>>) -> Self {
        Self(spans)
    }

    pub(crate) fn begin(&self) -> TraceStart {
        TraceStart(self.0.as_ref().map(|sink| sink.now()))
    }

    pub(crate) fn lap(&self, since: TraceStart) -> Lap {
        Lap(self.0.as_ref().and_then(|sink| Some((since.0?, sink.now()))))
    }

    /// What the worker of a dispatched attempt is told. Where nobody here writes spans, what the client said is passed on.
    pub(crate) fn context(&self, job: &Job) -> Option<TraceParent> {
        match &self.0 {
            Some(sink) => Some(job.attempt_context(wants(&**sink, &job.request))),
            None => job.request.parent.filter(|parent| parent.span.is_some()),
        }
    }

    /// The spans of those that are wanted.
    fn of<'j, J: AsRef<Job> + 'j>(&self, jobs: impl IntoIterator<Item = J>, mut spans: impl FnMut(&J, u64, &mut Vec<Span>)) {
        let Some(sink) = &self.0 else { return };
        let now = sink.now();
        let mut made = Vec::new();
        for job in jobs {
            if wants(&**sink, &job.as_ref().request) {
                spans(&job, now, &mut made);
            }
        }
        if !made.is_empty() {
            sink.record(made);
        }
    }
}

fn wants(sink: &dyn Spans, request: &JobRequest) -> bool {
    sink.wants(&request.trace(), request.parent.as_ref())
}
