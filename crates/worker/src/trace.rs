//! The span of a handler's work.

use std::sync::Arc;

use lockgate_contract::trace::{Span, SpanKind, TraceParent};
use lockgate_proto::v1::Assignment;
use lockgate_proto::v1::result::Outcome;

/// Takes spans. Called where work is done, so it must not wait.
pub(crate) type SpanSink = Arc<dyn Fn(Span) + Send + Sync>;

/// The parent of the handler's own spans: the handler's span if one is written, otherwise the server's.
pub(crate) fn context(assignment: &Assignment, written: bool) -> Option<TraceParent> {
    let sent: TraceParent = assignment.traceparent.parse().ok()?;
    let span = sent.span.filter(|_| written && sent.sampled).map(|span| span.within("run"));
    Some(TraceParent { span: span.or(sent.span), ..sent })
}

/// The span of a handler, from its start.
pub(crate) fn span(assignment: &Assignment, worker: &str, times: (u64, u64), outcome: &Outcome) -> Option<Span> {
    let sent: TraceParent = assignment.traceparent.parse().ok().filter(|sent: &TraceParent| sent.sampled)?;
    let (name, failure) = told(outcome);
    let span = Span {
        trace: sent.trace,
        id: sent.span?.within("run"),
        parent: sent.span,
        name: format!("run {}", assignment.topic).into(),
        kind: SpanKind::Consumer,
        began: times.0,
        ended: times.1.max(times.0),
        attributes: Vec::with_capacity(6),
        failure: failure.map(Arc::from),
    };
    let span = span
        .with("lockgate.job_id", &*assignment.job_id)
        .with("lockgate.tenant", &*assignment.tenant)
        .with("lockgate.topic", &*assignment.topic)
        .with("lockgate.attempt", assignment.attempt)
        .with("lockgate.worker_id", worker);
    Some(span.with("lockgate.outcome", name))
}

/// The outcome as a word, and the error.
fn told(outcome: &Outcome) -> (&'static str, Option<&str>) {
    match outcome {
        Outcome::Succeeded(_) => ("succeeded", None),
        Outcome::FailedRetryable(failed) => ("failed_retryable", Some(&failed.error)),
        Outcome::FailedFatal(failed) => ("failed_fatal", Some(&failed.error)),
        Outcome::TimedOut(_) => ("timed_out", Some("the attempt took longer than it may")),
        Outcome::Cancelled(cancelled) => ("cancelled", Some(&cancelled.note)),
        Outcome::Snooze(_) => ("snooze", None),
        Outcome::Interrupted(_) => ("interrupted", Some("the worker stopped it")),
        Outcome::Revoked(_) => ("revoked", None),
        Outcome::AwaitChildren(_) => ("await_children", None),
    }
}

#[cfg(test)]
mod tests {
    use lockgate_proto::v1::result::{FailedFatal, Succeeded};

    use super::*;

    const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn assignment(traceparent: &str) -> Assignment {
        Assignment { topic: "t".to_owned(), traceparent: traceparent.to_owned(), ..Assignment::default() }
    }

    #[test]
    fn what_a_handler_calls_stands_below_the_span_that_is_written() {
        let sent: TraceParent = SENT.parse().expect("good");
        let outcome = Outcome::Succeeded(Succeeded::default());
        let span = span(&assignment(SENT), "w", (1, 2), &outcome).expect("wanted");
        assert_eq!((span.trace, span.parent), (sent.trace, sent.span));
        assert_eq!(context(&assignment(SENT), true).and_then(|context| context.span), Some(span.id));
        assert_eq!(context(&assignment(SENT), false), Some(sent));
    }

    #[test]
    fn what_nobody_follows_has_no_span_and_is_passed_on() {
        let unfollowed = SENT.replace("-01", "-00");
        let outcome = Outcome::FailedFatal(FailedFatal { error: "no".to_owned() });
        assert_eq!(span(&assignment(&unfollowed), "w", (1, 2), &outcome), None);
        assert_eq!(context(&assignment(&unfollowed), true), unfollowed.parse().ok());
        assert_eq!((span(&assignment(""), "w", (1, 2), &outcome), context(&assignment(""), true)), (None, None));
    }
}
