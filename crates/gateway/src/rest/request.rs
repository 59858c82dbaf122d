//! Bodies that clients send.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::ids::JobId;
use lockgate_core::job::Answer;
use lockgate_core::lane::Priority;
use lockgate_core::request::{Caller, FieldError, JobBudget, Json, NewJob};
use lockgate_core::retry::RetrySettings;
use lockgate_core::time::Timestamp;
use lockgate_engine::{ApprovalAnswer, ReplayRequest};
use lockgate_ports::DeadLetterQuery;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::body::{each_once, part};
use crate::queries;
use crate::submit::ParsedJob;

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PriorityName {
    Critical,
    High,
    Default,
    Low,
}

impl From<PriorityName> for Priority {
    fn from(name: PriorityName) -> Self {
        match name {
            PriorityName::Critical => Self::Critical,
            PriorityName::High => Self::High,
            PriorityName::Default => Self::Default,
            PriorityName::Low => Self::Low,
        }
    }
}

/// A job to be submitted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewJob)]
pub(super) struct JobBody {
    #[schema(min_length = 1, max_length = 128, example = "job.echo")]
    topic: String,
    /// Any JSON value in which each name of an object stands once and each number keeps its value as a double: whole numbers
    /// within ±9007199254740991, others with at most 17 significant digits. Kept in canonical form: sorted names, no spaces.
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Chosen by the client, it is an idempotency key of its own.
    #[schema(min_length = 1, max_length = 128)]
    job_id: Option<String>,
    priority: Option<PriorityName>,
    #[serde(default, deserialize_with = "each_once")]
    labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "each_once")]
    env: BTreeMap<String, String>,
    pub(super) idempotency_key: Option<String>,
    #[schema(minimum = 1, maximum = 1000)]
    max_attempts: Option<u32>,
    /// Of one attempt.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    timeout_ms: Option<u64>,
    /// RFC 3339.
    #[schema(value_type = Option<String>, format = DateTime)]
    not_before: Option<jiff::Timestamp>,
    /// From the submit on, for all attempts together.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    deadline_ms: Option<u64>,
    /// Capabilities that the worker must have.
    #[serde(default)]
    #[schema(max_items = 64)]
    requires: Vec<String>,
    trace_id: Option<String>,
    /// W3C trace context of what the client was doing. Counts before the header of that name.
    traceparent: Option<String>,
    /// Jobs with the same key share the limits that pools.yaml sets per key.
    concurrency_key: Option<String>,
    /// What the job may do, in the words of the policy.
    capability: Option<String>,
    /// What is risky about it, in the words of the policy.
    #[serde(default)]
    #[schema(max_items = 64)]
    risk_tags: Vec<String>,
    /// Jobs with the same one are undone together, once one of them fails for good or runs out of time.
    workflow_id: Option<String>,
    /// What undoes the job's work: topic, payload, env, labels, budget (max_attempts, timeout_ms, deadline_ms), idempotency_key,
    /// undo_on_failure. Needs workflow_id.
    #[schema(value_type = Option<serde_json::Value>)]
    compensation: Option<Box<RawValue>>,
    /// Some of the fields above as one object.
    budget: Option<BudgetBody>,
    /// How it is tried again. What is absent is as its topic or the installation has it.
    retry: Option<RetryBody>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRetryPolicy)]
struct RetryBody {
    /// Delay after the first failure.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    base_ms: Option<u64>,
    /// How many hundredths of the delay before it each delay is; 200 doubles it.
    #[schema(minimum = 100, maximum = 1000)]
    factor_percent: Option<u32>,
    /// Longest delay.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    cap_ms: Option<u64>,
    /// Up to how many hundredths of a delay are added to it at random.
    #[schema(maximum = 100)]
    jitter_percent: Option<u32>,
    /// No attempt begins later than this after the submit or a replay.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    total_ms: Option<u64>,
    /// Codes of failures, of handlers or of the platform (execution_timeout), that are not tried again.
    #[schema(max_items = 64)]
    non_retryable: Option<BTreeSet<String>>,
    /// Attempts that may be lost by workers, servers and networks; one more ends the job.
    #[schema(maximum = 1000)]
    losses: Option<u32>,
}

impl From<RetryBody> for RetrySettings {
    fn from(body: RetryBody) -> Self {
        Self {
            attempts: None,
            losses: body.losses,
            base_ms: body.base_ms,
            factor_percent: body.factor_percent,
            cap_ms: body.cap_ms,
            jitter_percent: body.jitter_percent,
            total_ms: body.total_ms,
            non_retryable: body.non_retryable.map(|codes| codes.into_iter().map(Into::into).collect()),
        }
    }
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = JobBudget)]
struct BudgetBody {
    #[schema(minimum = 1, maximum = 1000)]
    max_attempts: Option<u32>,
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    timeout_ms: Option<u64>,
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    deadline_ms: Option<u64>,
}

impl From<BudgetBody> for JobBudget {
    fn from(BudgetBody { max_attempts, timeout_ms, deadline_ms }: BudgetBody) -> Self {
        Self { max_attempts, timeout_ms, deadline_ms }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewJobs)]
pub(super) struct BatchBody {
    /// 1 to 10,000 jobs; each is read, and accepted or refused, alone.
    #[schema(value_type = Vec<JobBody>, min_items = 1, max_items = 10000)]
    jobs: Vec<Box<RawValue>>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Cancel)]
pub(super) struct CancelBody {
    pub(super) reason: Option<String>,
}

/// An answer to the question policy asked.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Answer)]
pub(super) struct AnswerBody {
    /// What is answered, as it was seen: the job's.
    request_hash: String,
    /// The rule's that asks.
    rule_hash: String,
    /// Why, for the records.
    note: Option<String>,
    /// The caller knows that the payload is hidden from them. Without it such a caller cannot approve; rejecting needs nothing.
    #[serde(default)]
    acknowledge_hidden: bool,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewNote)]
pub(super) struct NoteBody {
    /// Why, for the records.
    pub(super) note: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewConfig)]
pub(super) struct ConfigBody {
    /// Named in errors.
    pub(super) file: Option<String>,
    /// The content of the file, YAML.
    pub(super) text: String,
    /// Refused unless this version is in force.
    pub(super) expected_version: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Rollback)]
pub(super) struct RollbackBody {
    pub(super) snapshot: String,
    /// Refused unless this version is in force.
    pub(super) expected_version: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Erase)]
pub(super) struct EraseBody {
    /// The name of the tenant once more: nothing of it comes back.
    pub(super) confirm: String,
}

/// Which dead letters to replay, and how.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Replay)]
pub(super) struct ReplayBody {
    topic: Option<String>,
    priority: Option<PriorityName>,
    reason: Option<String>,
    /// Labels that the job must have.
    #[serde(default, deserialize_with = "each_once")]
    labels: BTreeMap<String, String>,
    /// Only say what would be replayed.
    #[serde(default)]
    dry_run: bool,
    /// Jobs a second; absent is as fast as possible.
    #[schema(minimum = 1)]
    rate: Option<u32>,
    /// At most this many.
    #[schema(minimum = 1)]
    limit: Option<u32>,
}

impl JobBody {
    pub(super) fn read(self) -> ParsedJob {
        let mut errors = Vec::new();
        let mut json = |field: &str, raw: Option<Box<RawValue>>| match raw.map(|raw| Json::parse(raw.get())).transpose() {
            Ok(json) => json,
            Err(error) => {
                errors.push(error.in_field(field));
                None
            }
        };
        let (payload, compensation) = (json("payload", self.payload), json("compensation", self.compensation));
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut job = NewJob {
            job_id: self.job_id,
            topic: self.topic,
            payload,
            priority: self.priority.map(Into::into),
            labels: self.labels,
            env: self.env,
            idempotency_key: self.idempotency_key,
            max_attempts: self.max_attempts,
            retry: self.retry.map(Into::into).unwrap_or_default(),
            timeout_ms: self.timeout_ms,
            not_before: self.not_before.map(|time| Timestamp::from_millis(time.as_millisecond())),
            deadline_ms: self.deadline_ms,
            requires: self.requires.into_iter().collect(),
            capability: self.capability,
            risk_tags: self.risk_tags.into_iter().collect(),
            trace_id: self.trace_id,
            traceparent: self.traceparent,
            concurrency_key: self.concurrency_key,
            workflow_id: self.workflow_id,
            compensation,
        };
        errors.extend(self.budget.map(JobBudget::from).unwrap_or_default().apply(&mut job));
        if errors.is_empty() { Ok(job) } else { Err(errors) }
    }
}

impl BatchBody {
    pub(super) fn read(&self) -> impl ExactSizeIterator<Item = ParsedJob> {
        self.jobs.iter().map(|job| part::<JobBody>(job).map_err(|error| vec![error])?.read())
    }
}

impl AnswerBody {
    pub(super) fn read(self, job_id: JobId, answer: Answer) -> Result<ApprovalAnswer, Vec<FieldError>> {
        let request_hash = queries::request_hash(&self.request_hash).map_err(|error| vec![error])?;
        let (rule_hash, note) = (self.rule_hash.into(), self.note.map(Into::into));
        let acknowledge_hidden = self.acknowledge_hidden;
        Ok(ApprovalAnswer { job_id, answer, note, request_hash, rule_hash, acknowledge_hidden })
    }
}

impl ReplayBody {
    pub(super) fn read(self, caller: &Caller) -> Result<ReplayRequest, Vec<FieldError>> {
        let mut errors = Vec::new();
        let reason = self.reason.map(|text| queries::reason(&text)).transpose().unwrap_or_else(|error| {
            errors.push(error);
            None
        });
        for (field, number) in [("rate", self.rate), ("limit", self.limit)] {
            if number == Some(0) {
                errors.push(FieldError::new(field, "must be at least 1"));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let filter = DeadLetterQuery {
            // Looking at other tenants is one thing, acting on their jobs another.
            tenant: Some(caller.tenant.clone()),
            topic: self.topic.map(Into::into),
            priority: self.priority.map(Into::into),
            reason,
            labels: self.labels,
            cursor: None,
            limit: 0,
        };
        let limit = self.limit.map(|limit| limit as usize);
        Ok(ReplayRequest { filter, dry_run: self.dry_run, rate: self.rate, limit })
    }
}
