//! Jobs and their attempts: from core to protobuf, and from there to JSON.

use std::collections::BTreeMap;

use lockgate_core::job::{self as core, EventKind, Life, Reason};
use lockgate_core::time::Timestamp;
use lockgate_core::timeouts::Defaults;
use lockgate_proto::v1;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::approval::AskedApproval;
use crate::dead_letter::Discard;
use crate::history::Progress;
use crate::name_set::{AttemptOutcomeName, JobStateName, LanePriorityName, OnTimeoutName, PhaseName, ReasonName};
use crate::output::OutputCheck;
use crate::retry::RetryPolicy;
use crate::time::Time;
use crate::verdict::Verdict;
use crate::{ToWire, document, present, text};

#[derive(Debug, Serialize, ToSchema)]
pub struct Job {
    pub job_id: String,
    pub tenant: String,
    pub actor: String,
    /// What kind of actor: a person, a service, an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<String>,
    /// A credential said who the actor is; otherwise it is what the client called itself.
    pub actor_verified: bool,
    pub topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risk_tags: Vec<String>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// Payload, environment and result are not for this caller.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
    pub priority: LanePriorityName,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What the platform says about the job beside the client's labels: `safety_bypassed`, `safety_bypass_reason`, and
    /// `safety_bypassed_output` while its result is out unscanned.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub platform_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    pub max_attempts: u32,
    pub retry: RetryPolicy,
    pub timeout_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// As the client named it, else the id of the trace.
    pub trace_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    pub state: JobStateName,
    /// The simple view of the state.
    pub phase: PhaseName,
    /// 1 after submit, one more after each replay.
    pub life: u32,
    /// Number of the latest attempt that was sent to a worker; 0 before the first.
    pub attempt: u32,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<Attempt>>,
    /// Attempts of this life that count against `max_attempts`.
    pub failures: u32,
    /// Attempts of this life that workers, servers and networks lost; they count against `retry.losses`.
    pub losses: u32,
    pub submitted_at: Time,
    /// When a waiting job may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Failure>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// On the current attempt. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What people were asked in this life, and said. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<AskedApproval>,
    /// The check of the latest result. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputCheck>,
    /// The job whose worker submitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_job_id: Option<String>,
    /// What its parent calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_key: Option<String>,
    /// Of a job that submitted some. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Children>,
    /// Who said that the dead letter of this life is not to be replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded: Option<Discard>,
    /// SHA-256 over what the client asked for.
    pub request_hash: String,
}

/// The children of the current life.
#[derive(Debug, Serialize, ToSchema)]
pub struct Children {
    pub total: u64,
    /// How many have not ended.
    pub live: u64,
    /// While the job waits for them: until when at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Time>,
    /// What follows then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeoutName>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Failure {
    /// A stable reason code.
    #[schema(value_type = ReasonName)]
    pub reason: String,
    pub message: String,
}

/// One try.
#[derive(Debug, Serialize, ToSchema)]
pub struct Attempt {
    pub no: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// How it ended; absent while it waits or runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AttemptOutcomeName>)]
    pub outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ReasonName>)]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The policy snapshot and rule that allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobList)]
pub struct Jobs {
    pub jobs: Vec<Job>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A job without payload, result and history, as lists show it. `defaults` hold where the client named nothing.
pub fn job(job: &core::Job, defaults: &Defaults) -> v1::Job {
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
        timeout_ms: u64::try_from(request.timeout(&defaults.timeouts).as_millis()).unwrap_or(u64::MAX),
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
        discarded: life.discarded.as_ref().map(ToWire::to_wire),
        ..v1::Job::default()
    }
}

/// What the platform says about a job beside the client's own labels, as maps of the wire have it.
pub fn platform_labels(life: &Life) -> impl Iterator<Item = (String, String)> {
    life.platform_labels().map(|(name, value)| (name.to_owned(), value.to_owned()))
}

impl Job {
    /// A job without payload, result and attempts, as lists show it.
    pub fn summary(job: v1::Job) -> Self {
        Self {
            state: job.state().into(),
            phase: job.phase().into(),
            priority: job.priority().into(),
            job_id: job.job_id,
            tenant: job.tenant,
            actor: job.actor,
            actor_type: present(job.actor_type),
            actor_verified: job.actor_verified,
            topic: job.topic,
            capability: present(job.capability),
            risk_tags: job.risk_tags,
            payload: None,
            payload_hidden: false,
            labels: job.labels.into_iter().collect(),
            platform_labels: job.platform_labels.into_iter().collect(),
            env: job.env.into_iter().collect(),
            idempotency_key: present(job.idempotency_key),
            max_attempts: job.max_attempts,
            retry: job.retry.map(RetryPolicy::from).unwrap_or_default(),
            timeout_ms: job.timeout_ms,
            requires: job.requires,
            trace_id: job.trace_id,
            concurrency_key: present(job.concurrency_key),
            life: job.life,
            attempt: job.attempts,
            attempts: None,
            failures: job.failures,
            losses: job.losses,
            submitted_at: Time::from_millis(job.submitted_at_ms),
            due_at: job.due_at_ms.map(Time::from_millis),
            deadline_at: job.deadline_at_ms.map(Time::from_millis),
            ended_at: job.ended_at_ms.map(Time::from_millis),
            last_error: job.last_error.map(Failure::from),
            result: None,
            progress: job.progress.map(Progress::from),
            verdict: job.verdict.map(Verdict::from),
            approval: job.approval.map(AskedApproval::from),
            output: job.output.map(OutputCheck::from),
            parent_job_id: present(job.parent_job_id),
            child_key: present(job.child_key),
            children: job.children.map(Children::from),
            discarded: job.discarded.map(Discard::from),
            request_hash: job.request_hash,
        }
    }

    /// A job with all that is known of it.
    pub fn full(mut job: v1::Job) -> Self {
        let history = std::mem::take(&mut job.history);
        Self {
            payload: document(&job.payload_json),
            payload_hidden: job.payload_hidden,
            result: document(&job.result_json),
            attempts: Some(history.into_iter().map(Attempt::from).collect()),
            ..Self::summary(job)
        }
    }
}

impl From<v1::ListJobsResponse> for Jobs {
    fn from(wire: v1::ListJobsResponse) -> Self {
        Self { jobs: wire.jobs.into_iter().map(Job::summary).collect(), next_cursor: present(wire.next_cursor) }
    }
}

impl From<v1::job::Children> for Children {
    fn from(wire: v1::job::Children) -> Self {
        Self {
            total: wire.total,
            live: wire.live,
            waits_until: wire.waits_until_ms.map(Time::from_millis),
            on_timeout: present(wire.on_timeout).map(OnTimeoutName::from),
        }
    }
}

impl ToWire for core::Failure {
    type Wire = v1::Failure;

    fn to_wire(&self) -> v1::Failure {
        v1::Failure { reason: self.reason.as_str().to_owned(), message: self.message.to_string() }
    }
}

impl From<v1::Failure> for Failure {
    fn from(v1::Failure { reason, message }: v1::Failure) -> Self {
        Self { reason, message }
    }
}

impl ToWire for core::AttemptSummary {
    type Wire = v1::Attempt;

    fn to_wire(&self) -> v1::Attempt {
        v1::Attempt {
            no: self.no,
            worker_id: self.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            dispatched_at_ms: self.dispatched_at.map(Timestamp::as_millis),
            started_at_ms: self.started_at.map(Timestamp::as_millis),
            ended_at_ms: self.ended_at.map(Timestamp::as_millis),
            outcome: text(self.outcome.as_ref().map(EventKind::as_str)),
            reason: text(self.reason.as_ref().map(Reason::as_str)),
            message: text(self.message.as_deref()),
            rule: text(self.rule.as_deref()),
        }
    }
}

impl From<v1::Attempt> for Attempt {
    fn from(wire: v1::Attempt) -> Self {
        Self {
            no: wire.no,
            worker_id: present(wire.worker_id),
            dispatched_at: wire.dispatched_at_ms.map(Time::from_millis),
            started_at: wire.started_at_ms.map(Time::from_millis),
            ended_at: wire.ended_at_ms.map(Time::from_millis),
            outcome: present(wire.outcome),
            reason: present(wire.reason),
            message: present(wire.message),
            rule: present(wire.rule),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_hidden_is_told_from_one_that_is_not_there() {
        let json = |payload_hidden| {
            let job = v1::Job { payload_hidden, ..v1::Job::default() };
            serde_json::to_string(&Job::full(job)).expect("serializable")
        };
        assert!(json(true).contains(r#""payload_hidden":true"#) && !json(false).contains("payload_hidden"));
    }

    #[test]
    fn a_result_of_null_is_a_result() {
        let job = v1::Job { result_json: "null".into(), ..v1::Job::default() };
        let json = serde_json::to_string(&Job::full(job)).expect("serializable");
        assert!(json.contains(r#""result":null"#), "{json}");
    }
}
