//! Jobs and their attempts.

use std::collections::BTreeMap;

use lockgate_api::platform_labels;
use lockgate_core::job::{self as core, Reason};
use lockgate_core::timeouts::Defaults;
use lockgate_engine::JobView;
use lockgate_ports::{Kin, Listing};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::names::{JobStateName, LanePriorityName, OnTimeoutName, PhaseName};
use super::retry::RetryView;
use super::{AskedApproval, Name, OutputCheck, Progress, Time, Verdict, document};
use crate::queries::cursor_text;

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Job {
    job_id: String,
    tenant: String,
    actor: String,
    /// What kind of actor: a person, a service, an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_type: Option<String>,
    /// A credential said who the actor is; otherwise it is what the client called itself.
    actor_verified: bool,
    topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    risk_tags: Vec<String>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Payload, environment and result are not for this caller.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    payload_hidden: bool,
    priority: LanePriorityName,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// What the platform says about the job beside the client's labels: `safety_bypassed`, `safety_bypass_reason`, and
    /// `safety_bypassed_output` while its result is out unscanned.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    platform_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    max_attempts: u32,
    retry: RetryView,
    timeout_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requires: Vec<String>,
    /// As the client named it, else the id of the trace.
    trace_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency_key: Option<String>,
    state: JobStateName,
    /// The simple view of the state.
    phase: PhaseName,
    /// 1 after submit, one more after each replay.
    life: u32,
    /// Number of the latest attempt that was sent to a worker; 0 before the first.
    attempt: u32,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<Attempt>>,
    /// Attempts of this life that count against `max_attempts`.
    failures: u32,
    /// Attempts of this life that workers, servers and networks lost; they count against `retry.losses`.
    losses: u32,
    submitted_at: Time,
    /// When a waiting job may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<Failure>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    /// On the current attempt. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    /// What people were asked in this life, and said. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<AskedApproval>,
    /// The check of the latest result. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<OutputCheck>,
    /// The job whose worker submitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_job_id: Option<String>,
    /// What its parent calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    child_key: Option<String>,
    /// Of a job that submitted some. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Children>,
    /// SHA-256 over what the client asked for.
    request_hash: String,
}

/// The children of the current life.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Children {
    total: u64,
    /// How many have not ended.
    live: u64,
    /// While the job waits for them: until when at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_until: Option<Time>,
    /// What follows then.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_timeout: Option<OnTimeoutName>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Failure {
    /// A stable reason code.
    reason: &'static str,
    message: String,
}

/// One try.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Attempt {
    no: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dispatched_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
    /// How it ended; absent while it waits or runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The policy snapshot and rule that allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = JobList)]
pub(in crate::rest) struct Jobs {
    jobs: Vec<Job>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Job {
    /// A job without payload, result and attempts, as lists show it.
    fn summary(job: &core::Job, defaults: &Defaults) -> Self {
        let (request, life) = (&job.request, &job.life);
        let retry = request.retry_policy(&defaults.limits, &defaults.timeouts);
        Self {
            job_id: request.job_id.to_string(),
            tenant: request.tenant.to_string(),
            actor: request.actor.to_string(),
            actor_type: request.actor_type.as_ref().map(ToString::to_string),
            actor_verified: request.actor_verified,
            topic: request.topic.to_string(),
            capability: request.capability.as_ref().map(ToString::to_string),
            risk_tags: request.risk_tags.iter().map(ToString::to_string).collect(),
            payload: None,
            payload_hidden: false,
            priority: Name(request.priority()),
            labels: request.labels.clone(),
            platform_labels: platform_labels(life).collect(),
            env: request.env.clone(),
            idempotency_key: request.idempotency_key.as_ref().map(ToString::to_string),
            max_attempts: retry.attempts,
            retry: RetryView::from(&retry),
            timeout_ms: u64::try_from(request.timeout(&defaults.timeouts).as_millis()).unwrap_or(u64::MAX),
            requires: request.requires.iter().map(ToString::to_string).collect(),
            trace_id: request.trace_name(),
            concurrency_key: request.concurrency_key.as_ref().map(ToString::to_string),
            state: Name(life.state),
            phase: Name(life.state.phase()),
            life: life.no,
            attempt: job.attempts_made(),
            attempts: None,
            failures: life.counters.failures,
            losses: life.counters.infra_failures,
            submitted_at: Time(life.submitted_at),
            due_at: job.waits_until().map(Time),
            deadline_at: life.deadline_at.map(Time),
            ended_at: life.ended_at.map(Time),
            last_error: life.last_error.as_ref().map(Failure::from),
            result: None,
            progress: None,
            verdict: None,
            approval: None,
            output: None,
            parent_job_id: request.child_of.as_ref().map(|of| of.parent.to_string()),
            child_key: request.child_of.as_ref().map(|of| of.key.to_string()),
            children: None,
            request_hash: job.hash.to_string(),
        }
    }

    pub(in crate::rest) fn full(view: &JobView, defaults: &Defaults) -> Self {
        let life = &view.job.life;
        Self {
            payload: if view.hidden { None } else { document(&view.job.request.payload) },
            payload_hidden: view.hidden,
            attempts: Some(view.attempts.iter().map(Attempt::from).collect()),
            result: view.result.as_ref().and_then(document),
            progress: view.progress.as_ref().map(Progress::from),
            verdict: life.attempt.verdict.as_deref().map(Verdict::from),
            approval: life.approval.as_ref().map(AskedApproval::from),
            output: life.output.as_ref().map(OutputCheck::from),
            children: view.kin.as_ref().map(|kin| Children::new(&view.job, kin)),
            ..Self::summary(&view.job, defaults)
        }
    }
}

impl Children {
    fn new(job: &core::Job, kin: &Kin) -> Self {
        let barrier = job.barrier();
        Self {
            total: kin.total,
            live: kin.live,
            waits_until: barrier.map(|barrier| Time(barrier.until)),
            on_timeout: barrier.map(|barrier| Name(barrier.on_timeout)),
        }
    }
}

impl Jobs {
    pub(in crate::rest) fn new(listing: &Listing<core::Job>, defaults: &Defaults) -> Self {
        Self {
            jobs: listing.items.iter().map(|job| Job::summary(job, defaults)).collect(),
            next_cursor: listing.next.map(cursor_text),
        }
    }
}

impl From<&core::Failure> for Failure {
    fn from(failure: &core::Failure) -> Self {
        Self { reason: failure.reason.as_str(), message: failure.message.to_string() }
    }
}

impl From<&core::AttemptSummary> for Attempt {
    fn from(attempt: &core::AttemptSummary) -> Self {
        Self {
            no: attempt.no,
            worker_id: attempt.worker.as_ref().map(ToString::to_string),
            dispatched_at: attempt.dispatched_at.map(Time),
            started_at: attempt.started_at.map(Time),
            ended_at: attempt.ended_at.map(Time),
            outcome: attempt.outcome.map(|kind| kind.as_str().to_owned()),
            reason: attempt.reason.map(Reason::as_str),
            message: attempt.message.as_ref().map(ToString::to_string),
            rule: attempt.rule.as_ref().map(ToString::to_string),
        }
    }
}
