//! Spans of jobs. They are written after the commit of what they tell, so that no span tells of what never happened.

use std::borrow::Cow;
use std::sync::Arc;

use lockgate_core::job::{Effect, Job, JobState};
use lockgate_core::time::Timestamp;
use lockgate_core::trace::{Span, SpanId, SpanKind};

use super::{Lap, SubmitTimes, TraceStart, Traces};

const CLAIM: &str = "claim";
const COMMIT: &str = "commit";
const DISPATCH: &str = "dispatch";
const VERDICT: &str = "verdict";

/// A job before and after a step.
type BeforeAndAfter<'d> = &'d (Arc<Job>, Arc<Job>, Vec<Effect>);

struct TracedStep<'d>(BeforeAndAfter<'d>);

impl AsRef<Job> for TracedStep<'_> {
    fn as_ref(&self) -> &Job {
        &self.0.1
    }
}

impl Traces {
    /// New jobs.
    pub(crate) fn born<'j>(&self, entry: SubmitTimes, committing: TraceStart, jobs: impl Iterator<Item = &'j Arc<Job>>) {
        self.of(jobs, |job, now, spans| {
            let submit = job.request.submit_span();
            let began = entry.began.0.unwrap_or(now);
            spans.push(Span { kind: SpanKind::Server, ..span(job, submit, Some(job.span()), "submit", (began, now)) });
            spans.extend(verdict(job, submit, entry.verdict));
            spans.extend(Lap(committing.0.map(|began| (began, now))).within(job, submit, COMMIT));
            spans.extend(whole_life(job, now));
        });
    }

    /// Attempts that were judged on the way to their next step.
    pub(crate) fn judged<'j>(&self, lap: Lap, jobs: impl Iterator<Item = &'j Arc<Job>>) {
        self.of(jobs, |job, _, spans| spans.extend(verdict(job, job.span(), lap)));
    }

    /// Jobs that went to workers.
    pub(crate) fn sent<'j>(&self, committing: TraceStart, jobs: impl Iterator<Item = (Lap, &'j Arc<Job>)>) {
        self.of(jobs.map(|(claim, job)| Dispatched(claim, job)), |Dispatched(claim, job), now, spans| {
            let attempt = job.attempt_span(job.life.attempt.no);
            spans.extend(claim.within(job, attempt, CLAIM));
            let began = committing.0.unwrap_or(now);
            spans.extend(Lap(Some((began, now))).within(job, attempt, DISPATCH));
        });
    }

    /// Steps of known jobs.
    pub(crate) fn moved(&self, committing: TraceStart, done: &[(Arc<Job>, Arc<Job>, Vec<Effect>)]) {
        self.of(done.iter().map(TracedStep), |TracedStep((before, job, _)), now, spans| {
            let what = format!("{COMMIT} {}", job.version);
            let parent = commit_parent(before, job);
            let began = committing.0.unwrap_or(now);
            let commit = span(job, parent.within(&what), Some(parent), COMMIT, (began, now));
            let states = |span: Span| {
                span.with("lockgate.state_from", before.state().as_str()).with("lockgate.state_to", job.state().as_str())
            };
            spans.push(states(commit));
            spans.extend(whole_attempt(before, job, now));
            spans.extend(whole_life(job, now).filter(|_| !before.state().is_terminal()));
        });
    }

    /// A result that policy looked at: `what` of it, in the attempt that made it.
    pub(crate) fn checked(&self, lap: Lap, job: &Arc<Job>, attempt: u32, what: &'static str) {
        self.of([job], |job, _, spans| spans.extend(lap.within(job, job.attempt_span(attempt), what)));
    }
}

struct Dispatched<'j>(Lap, &'j Arc<Job>);

impl AsRef<Job> for Dispatched<'_> {
    fn as_ref(&self) -> &Job {
        self.1
    }
}

impl Lap {
    fn within(self, job: &Job, parent: SpanId, what: &'static str) -> Option<Span> {
        self.0.map(|times| span(job, parent.within(what), Some(parent), what, times))
    }
}

fn verdict(job: &Job, parent: SpanId, lap: Lap) -> Option<Span> {
    let (no, verdict) = (job.life.attempt.no, job.life.attempt.verdict.as_ref());
    let times = lap.0?;
    let span = span(job, parent.within(&format!("{VERDICT} {no}")), Some(parent), VERDICT, times);
    Some(match verdict {
        Some(verdict) => {
            let span = span.with("lockgate.decision", verdict.decision.as_str());
            span.with("lockgate.rule", &*verdict.rule)
        }
        None => span.with("lockgate.decision", "unavailable"),
    })
}

/// What a commit is part of.
fn commit_parent(before: &Job, job: &Job) -> SpanId {
    let attempt = before.attempt_span(before.life.attempt.no);
    match (before.state(), job.state()) {
        (JobState::Scheduled, JobState::Dispatched) => attempt.within(DISPATCH),
        (state, _) if state.is_held() => attempt,
        _ => job.span(),
    }
}

/// An attempt that a worker held, once it is over: from when it could have begun.
fn whole_attempt(before: &Job, job: &Job, now: u64) -> Option<Span> {
    let (old, new) = (&before.life.attempt, &job.life.attempt);
    let over = before.state().is_held() && (new.no != old.no || job.state().is_terminal());
    let binding = old.binding.as_ref().filter(|_| over)?;
    let name = Cow::Owned(format!("attempt {}", old.no));
    let times = (nanos(before.life.due_at).min(now), now);
    let span = span(job, before.attempt_span(old.no), Some(before.span()), name, times);
    Some(failed(span.with("lockgate.worker_id", binding.worker.as_str()), before, job))
}

fn whole_life(job: &Job, now: u64) -> Option<Span> {
    if !job.state().is_terminal() {
        return None;
    }
    let name = Cow::Owned(format!("job {}", job.request.topic));
    let parent = job.request.parent.and_then(|parent| parent.span);
    let whole = span(job, job.span(), parent, name, (nanos(job.life.began_at).min(now), now));
    let whole = whole.with("lockgate.state", job.state().as_str());
    let failure = job.life.last_error.as_ref().filter(|_| job.state() != JobState::Succeeded);
    Some(match failure {
        Some(failure) => {
            Span { failure: Some(failure.message.clone()), ..whole }.with("lockgate.reason", failure.reason.as_str())
        }
        None => whole,
    })
}

/// Says why an attempt did not succeed. One that asked to be run later did not fail.
fn failed(span: Span, before: &Job, job: &Job) -> Span {
    let (old, new) = (&before.life.counters, &job.life.counters);
    let counted = new.failures > old.failures || new.infra_failures > old.infra_failures;
    let ended_badly = job.state().is_terminal() && job.state() != JobState::Succeeded;
    match &job.life.last_error {
        Some(failure) if counted || ended_badly => {
            Span { failure: Some(failure.message.clone()), ..span }.with("lockgate.reason", failure.reason.as_str())
        }
        _ => span,
    }
}

fn span(
    job: &Job,
    id: SpanId,
    parent: Option<SpanId>,
    name: impl Into<Cow<'static, str>>,
    (began, ended): (u64, u64),
) -> Span {
    let request = &job.request;
    let span = Span {
        trace: request.trace(),
        id,
        parent,
        name: name.into(),
        kind: SpanKind::Internal,
        began,
        ended: ended.max(began),
        attributes: Vec::with_capacity(8),
        failure: None,
    };
    let span = span
        .with("lockgate.job_id", request.job_id.as_str())
        .with("lockgate.tenant", request.tenant.as_str())
        .with("lockgate.topic", request.topic.as_str())
        .with("lockgate.attempt", job.life.attempt.no);
    match &request.run {
        Some(part) => span.with("lockgate.run_id", part.run.as_str()).with("lockgate.node", part.node),
        None => span,
    }
}

pub(super) fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0).saturating_mul(1_000_000)
}
