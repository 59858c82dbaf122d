//! Jobs and their histories as clients see them.

use lockgate_core::job::{Approval, AttemptSummary, DeadLetter, EventKind, Failure, Job, JobEvent, Life, Reason};
use lockgate_core::time::Timestamp;
use lockgate_core::timeouts::Defaults;

use crate::ToWire;
use lockgate_proto::v1;

/// A job without payload, result and history, as lists show it. `defaults` hold where the client named nothing.
pub fn job(job: &Job, defaults: &Defaults) -> v1::Job {
    let (request, life) = (&job.request, &job.life);
    let retry = request.retry_policy(&defaults.limits, &defaults.timeouts);
    v1::Job {
        job_id: request.job_id.to_string(),
        tenant: request.tenant.to_string(),
        actor: request.actor.to_string(),
        topic: request.topic.to_string(),
        priority: request.priority().to_wire().into(),
        labels: request.labels.clone().into_iter().collect(),
        env: request.env.clone().into_iter().collect(),
        idempotency_key: text(request.idempotency_key.as_deref()),
        max_attempts: retry.attempts,
        retry: Some(retry.to_wire()),
        losses: life.counters.infra_failures,
        timeout_ms: millis(request.timeout(&defaults.timeouts)),
        requires: request.requires.iter().map(ToString::to_string).collect(),
        trace_id: request.trace_name(),
        concurrency_key: text(request.concurrency_key.as_deref()),
        state: life.state.to_wire().into(),
        phase: life.state.phase().to_wire().into(),
        life: life.no,
        attempts: job.attempts_made(),
        failures: life.counters.failures,
        submitted_at_ms: life.submitted_at.as_millis(),
        due_at_ms: job.waits_until().map(Timestamp::as_millis),
        deadline_at_ms: life.deadline_at.map(Timestamp::as_millis),
        ended_at_ms: life.ended_at.map(Timestamp::as_millis),
        last_error: life.last_error.as_ref().map(ToWire::to_wire),
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

/// What the platform says about a job beside the client's own labels, as maps of the wire have it.
pub fn platform_labels(life: &Life) -> impl Iterator<Item = (String, String)> {
    life.platform_labels().map(|(name, value)| (name.to_owned(), value.to_owned()))
}

impl ToWire for Approval {
    type Wire = v1::AskedApproval;

    fn to_wire(&self) -> v1::AskedApproval {
        let vote = |vote: &lockgate_core::job::Vote| v1::asked_approval::Vote {
            actor: vote.actor.to_string(),
            at_ms: vote.at.as_millis(),
            payload_hidden: vote.payload_hidden,
        };
        v1::AskedApproval {
            rule: self.rule.to_string(),
            rule_hash: self.rule_hash.to_string(),
            approvers_needed: self.terms.approvers,
            votes: self.votes.iter().map(vote).collect(),
            asked_at_ms: self.asked_at.as_millis(),
            expires_at_ms: self.expires_at().map(Timestamp::as_millis),
            granted_at_ms: self.granted_at.map(Timestamp::as_millis),
        }
    }
}

impl ToWire for Failure {
    type Wire = v1::Failure;

    fn to_wire(&self) -> v1::Failure {
        v1::Failure { reason: self.reason.as_str().to_owned(), message: self.message.to_string() }
    }
}

impl ToWire for AttemptSummary {
    type Wire = v1::Attempt;

    fn to_wire(&self) -> v1::Attempt {
        v1::Attempt {
            no: self.no,
            worker_id: self.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            dispatched_at_ms: self.dispatched_at.map(Timestamp::as_millis),
            started_at_ms: self.started_at.map(Timestamp::as_millis),
            ended_at_ms: self.ended_at.map(Timestamp::as_millis),
            outcome: text(self.outcome.as_ref().map(EventKind::as_str)),
            reason: text(self.reason.map(Reason::as_str)),
            message: text(self.message.as_deref()),
            rule: text(self.rule.as_deref()),
        }
    }
}

impl ToWire for JobEvent {
    type Wire = v1::JobEvent;

    fn to_wire(&self) -> v1::JobEvent {
        v1::JobEvent {
            n: self.n,
            at_ms: self.at.as_millis(),
            kind: self.kind.as_str().to_owned(),
            attempt: self.attempt,
            worker_id: self.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            reason: text(self.reason.map(Reason::as_str)),
            message: text(self.message.as_deref()),
            until_ms: self.until.map(Timestamp::as_millis),
            actor: self.actor.as_ref().map(ToString::to_string).unwrap_or_default(),
            rule: text(self.rule.as_deref()),
        }
    }
}

impl ToWire for DeadLetter {
    type Wire = v1::DeadLetter;

    fn to_wire(&self) -> v1::DeadLetter {
        v1::DeadLetter {
            job_id: self.job_id.to_string(),
            tenant: self.tenant.to_string(),
            topic: self.topic.to_string(),
            priority: self.priority.to_wire().into(),
            state: self.state.to_wire().into(),
            reason: self.reason.as_str().to_owned(),
            message: self.message.to_string(),
            attempts: self.attempts,
            life: self.life,
            at_ms: self.at.as_millis(),
            labels: self.labels.clone().into_iter().collect(),
        }
    }
}

fn text(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
