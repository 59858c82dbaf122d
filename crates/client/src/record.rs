//! Jobs as the server tells of them.

use std::collections::HashMap;

use bytes::Bytes;
use lockgate_proto::v1;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::new_job::priority_word;
use crate::state::JobState;
use crate::watch::Progress;

/// A job and what became of it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct JobRecord {
    pub job_id: String,
    pub tenant: String,
    /// Who submitted it. It is what the client called itself unless `actor_verified`.
    pub actor: String,
    pub actor_verified: bool,
    pub topic: String,
    pub state: JobState,
    /// `critical`, `high`, `default` or `low`.
    pub priority: String,
    pub labels: HashMap<String, String>,
    pub idempotency_key: String,
    /// 1, and one more with each replay.
    pub life: u32,
    /// Attempts made so far, in all lives.
    pub attempts: u32,
    /// Failed attempts of this life.
    pub failures: u32,
    pub max_attempts: u32,
    pub timeout_ms: u64,
    pub submitted_at_ms: i64,
    pub due_at_ms: Option<i64>,
    pub deadline_at_ms: Option<i64>,
    pub ended_at_ms: Option<i64>,
    /// The latest failure.
    pub last_error: Option<JobFailure>,
    /// None in lists, and if the caller may not read payloads.
    pub payload: Option<Box<RawValue>>,
    /// None until the job has one that policy has released.
    pub result: Option<Box<RawValue>>,
    /// The caller may not read payload and result.
    pub payload_hidden: bool,
    /// The latest progress of the running attempt.
    pub progress: Option<Progress>,
    /// Oldest first. Empty in lists.
    pub history: Vec<AttemptRecord>,
    pub parent_job_id: String,
    pub child_key: String,
    pub request_hash: String,
    pub trace_id: String,
    /// The verdict on the current attempt: `snapshot#rule (reason)`. Empty if there is none.
    pub rule: String,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobFailure {
    /// A stable code such as `execution_timeout`.
    pub reason: String,
    pub message: String,
}

/// One attempt to run a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AttemptRecord {
    pub no: u32,
    pub worker_id: String,
    pub dispatched_at_ms: Option<i64>,
    pub started_at_ms: Option<i64>,
    pub ended_at_ms: Option<i64>,
    /// The kind of the event that ended it. Empty while it waits or runs.
    pub outcome: String,
    pub reason: String,
    pub message: String,
    /// The verdict that allowed it.
    pub rule: String,
}

impl JobRecord {
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended_at_ms.is_some()
    }

    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.state == JobState::Succeeded
    }
}

impl From<v1::Job> for JobRecord {
    fn from(job: v1::Job) -> Self {
        let rule = job.history.last().map(|attempt| attempt.rule.clone()).unwrap_or_default();
        Self {
            state: JobState::from_wire(job.state),
            priority: priority_word(job.priority).to_owned(),
            job_id: job.job_id,
            tenant: job.tenant,
            actor: job.actor,
            actor_verified: job.actor_verified,
            topic: job.topic,
            labels: job.labels,
            idempotency_key: job.idempotency_key,
            life: job.life,
            attempts: job.attempts,
            failures: job.failures,
            max_attempts: job.max_attempts,
            timeout_ms: job.timeout_ms,
            submitted_at_ms: job.submitted_at_ms,
            due_at_ms: job.due_at_ms,
            deadline_at_ms: job.deadline_at_ms,
            ended_at_ms: job.ended_at_ms,
            last_error: job.last_error.map(Into::into),
            payload: raw(&job.payload_json),
            result: raw(&job.result_json),
            payload_hidden: job.payload_hidden,
            progress: job.progress.map(Into::into),
            history: job.history.into_iter().map(Into::into).collect(),
            parent_job_id: job.parent_job_id,
            child_key: job.child_key,
            request_hash: job.request_hash,
            trace_id: job.trace_id,
            rule,
        }
    }
}

impl From<v1::Failure> for JobFailure {
    fn from(failure: v1::Failure) -> Self {
        Self { reason: failure.reason, message: failure.message }
    }
}

impl From<v1::Attempt> for AttemptRecord {
    fn from(attempt: v1::Attempt) -> Self {
        Self {
            no: attempt.no,
            worker_id: attempt.worker_id,
            dispatched_at_ms: attempt.dispatched_at_ms,
            started_at_ms: attempt.started_at_ms,
            ended_at_ms: attempt.ended_at_ms,
            outcome: attempt.outcome,
            reason: attempt.reason,
            message: attempt.message,
            rule: attempt.rule,
        }
    }
}

/// JSON text of the contract. Empty means that there is none.
pub(crate) fn raw(json: &Bytes) -> Option<Box<RawValue>> {
    serde_json::from_slice(json).ok()
}
