//! Jobs and their histories as clients see them.

use lockgate_core::job::{
    Approval, AttemptSummary, DeadLetter, EventKind, Failure, Job, JobEvent, Life, OutputStage, Reason,
};
use lockgate_core::time::Timestamp;
use lockgate_core::timeouts::Defaults;

use crate::v1;

/// A job without payload, result and history, as lists show it. `defaults` hold where the client named nothing.
pub fn job(job: &Job, defaults: &Defaults) -> v1::Job {
    let (request, life) = (&job.request, &job.life);
    v1::Job {
        job_id: request.job_id.to_string(),
        tenant: request.tenant.to_string(),
        actor: request.actor.to_string(),
        topic: request.topic.to_string(),
        priority: v1::Priority::from(request.priority()).into(),
        labels: request.labels.clone().into_iter().collect(),
        env: request.env.clone().into_iter().collect(),
        idempotency_key: text(request.idempotency_key.as_deref()),
        max_attempts: request.max_attempts(&defaults.limits),
        timeout_ms: millis(request.timeout(&defaults.timeouts)),
        requires: request.requires.iter().map(ToString::to_string).collect(),
        trace_id: request.trace_name(),
        concurrency_key: text(request.concurrency_key.as_deref()),
        state: v1::JobState::from(life.state).into(),
        phase: v1::Phase::from(life.state.phase()).into(),
        life: life.no,
        attempts: job.attempts_made(),
        failures: life.counters.failures,
        submitted_at_ms: life.submitted_at.as_millis(),
        due_at_ms: job.waits_until().map(Timestamp::as_millis),
        deadline_at_ms: life.deadline_at.map(Timestamp::as_millis),
        ended_at_ms: life.ended_at.map(Timestamp::as_millis),
        last_error: life.last_error.as_ref().map(v1::Failure::from),
        request_hash: job.hash.to_string(),
        capability: text(request.capability.as_deref()),
        risk_tags: request.risk_tags.iter().map(ToString::to_string).collect(),
        actor_type: text(request.actor_type.as_deref()),
        actor_verified: request.actor_verified,
        platform_labels: platform_labels(life).collect(),
        parent_job_id: text(request.child_of.as_ref().map(|of| of.parent.as_str())),
        child_key: text(request.child_of.as_ref().map(|of| &*of.key)),
        ..v1::Job::default()
    }
}

/// What the platform says about a job beside the client's own labels. Clients cannot set these.
pub fn platform_labels(life: &Life) -> impl Iterator<Item = (String, String)> {
    let labels = life
        .bypass
        .as_ref()
        .map(|bypass| [("safety_bypassed", "true".to_owned()), ("safety_bypass_reason", bypass.reason.to_string())]);
    let unscanned = life.output.as_ref().filter(|check| check.stage == OutputStage::Unchecked);
    let unscanned = unscanned.map(|_| ("safety_bypassed_output", "true".to_owned()));
    labels.into_iter().flatten().chain(unscanned).map(|(name, value)| (name.to_owned(), value))
}

impl From<&Approval> for v1::AskedApproval {
    fn from(approval: &Approval) -> Self {
        let vote = |vote: &lockgate_core::job::Vote| v1::asked_approval::Vote {
            actor: vote.actor.to_string(),
            at_ms: vote.at.as_millis(),
            payload_hidden: vote.payload_hidden,
        };
        Self {
            rule: approval.rule.to_string(),
            rule_hash: approval.rule_hash.to_string(),
            approvers_needed: approval.terms.approvers,
            votes: approval.votes.iter().map(vote).collect(),
            asked_at_ms: approval.asked_at.as_millis(),
            expires_at_ms: approval.expires_at().map(Timestamp::as_millis),
            granted_at_ms: approval.granted_at.map(Timestamp::as_millis),
        }
    }
}

impl From<&Failure> for v1::Failure {
    fn from(failure: &Failure) -> Self {
        Self { reason: failure.reason.as_str().to_owned(), message: failure.message.to_string() }
    }
}

impl From<&AttemptSummary> for v1::Attempt {
    fn from(attempt: &AttemptSummary) -> Self {
        Self {
            no: attempt.no,
            worker_id: attempt.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            dispatched_at_ms: attempt.dispatched_at.map(Timestamp::as_millis),
            started_at_ms: attempt.started_at.map(Timestamp::as_millis),
            ended_at_ms: attempt.ended_at.map(Timestamp::as_millis),
            outcome: text(attempt.outcome.map(EventKind::as_str)),
            reason: text(attempt.reason.map(Reason::as_str)),
            message: text(attempt.message.as_deref()),
            rule: text(attempt.rule.as_deref()),
        }
    }
}

impl From<&JobEvent> for v1::JobEvent {
    fn from(event: &JobEvent) -> Self {
        Self {
            n: event.n,
            at_ms: event.at.as_millis(),
            kind: event.kind.as_str().to_owned(),
            attempt: event.attempt,
            worker_id: event.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            reason: text(event.reason.map(Reason::as_str)),
            message: text(event.message.as_deref()),
            until_ms: event.until.map(Timestamp::as_millis),
            actor: event.actor.as_ref().map(ToString::to_string).unwrap_or_default(),
            rule: text(event.rule.as_deref()),
        }
    }
}

impl From<&DeadLetter> for v1::DeadLetter {
    fn from(letter: &DeadLetter) -> Self {
        Self {
            job_id: letter.job_id.to_string(),
            tenant: letter.tenant.to_string(),
            topic: letter.topic.to_string(),
            priority: v1::Priority::from(letter.priority).into(),
            state: v1::JobState::from(letter.state).into(),
            reason: letter.reason.as_str().to_owned(),
            message: letter.message.to_string(),
            attempts: letter.attempts,
            life: letter.life,
            at_ms: letter.at.as_millis(),
            labels: letter.labels.clone().into_iter().collect(),
        }
    }
}

fn text(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
