//! Spans of runs.

use std::borrow::Cow;

use lockgate_core::dag::{RunHead, RunState};
use lockgate_core::ids::RunId;
use lockgate_core::request::Caller;
use lockgate_core::trace::{Span, SpanKind, TraceParent};
use lockgate_ports::Spans;

use super::jobs::nanos;
use super::{TraceStart, Traces};

impl Traces {
    /// Decides, once and for all of a run, which trace it is in and whether that is written: its jobs are told.
    pub(crate) fn root(&self, run: &RunId, caller: &Caller) -> Caller {
        let given = caller.trace;
        let Some(sink) = &self.0 else { return caller.clone() };
        let trace = given.map_or_else(|| run.own_trace(), |given| given.trace);
        let sampled = sink.wants(&trace, given.as_ref());
        let parent = TraceParent { trace, span: given.and_then(|given| given.span), sampled };
        Caller { trace: Some(parent), ..caller.clone() }
    }

    /// A run that began.
    pub(crate) fn run_began(&self, began: TraceStart, head: &RunHead) {
        let Some((sink, trace)) = self.run(head) else { return };
        let now = sink.now();
        let id = head.span().within("start");
        let start = Span { kind: SpanKind::Server, ..span(head, trace, "start", (began.0.unwrap_or(now), now)) };
        sink.record(vec![Span { id, parent: Some(head.span()), ..start }]);
    }

    /// A run that is over as this step leaves it.
    pub(crate) fn run_stepped(&self, before: RunState, head: &RunHead) {
        let Some((sink, trace)) = self.run(head).filter(|_| head.state.is_over() && !before.is_over()) else { return };
        let now = sink.now();
        let name = Cow::Owned(format!("run {}", head.dag.name));
        let whole = span(head, trace, name, (nanos(head.began_at).min(now), now));
        let whole = Span { id: head.span(), parent: head.span_parent(), ..whole };
        let whole = whole.with("lockgate.state", head.state.as_str());
        let failure = head.failure.as_ref().filter(|_| head.state != RunState::Succeeded);
        sink.record(vec![Span { failure: failure.map(|failure| failure.message.clone()), ..whole }]);
    }

    fn run(&self, head: &RunHead) -> Option<(&dyn Spans, TraceParent)> {
        let sink = self.0.as_deref()?;
        let trace = head.trace.filter(|trace| sink.wants(&trace.trace, Some(trace)))?;
        Some((sink, trace))
    }
}

fn span(head: &RunHead, trace: TraceParent, name: impl Into<Cow<'static, str>>, (began, ended): (u64, u64)) -> Span {
    let span = Span {
        trace: trace.trace,
        id: head.span(),
        parent: None,
        name: name.into(),
        kind: SpanKind::Internal,
        began,
        ended: ended.max(began),
        attributes: Vec::with_capacity(5),
        failure: None,
    };
    span.with("lockgate.run_id", head.id.as_str())
        .with("lockgate.tenant", head.tenant.as_str())
        .with("lockgate.dag", &*head.dag.name)
        .with("lockgate.dag_version", head.dag.version)
}
