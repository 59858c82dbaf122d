//! The frozen request of a job: what the client sent, checked once and never changed.

mod budget;
mod child;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dag::saga;
use crate::ids::{ActorId, JobId, PoolName, RunId, TenantId, Topic, WorkerId, check_name};
use crate::lane::{Priority, Shape};
use crate::limits::{ATTEMPTS_MAX, ENTRIES_MAX, Limits, PAYLOAD_BYTES_MAX, SPAN_MS_MAX, VALUE_BYTES_MAX};
use crate::policy::WORKFLOW_LABEL;
use crate::retry::{RetryPolicy, RetrySettings};
use crate::time::Timestamp;
use crate::timeouts::Timeouts;
use crate::trace::TraceParent;
use crate::verdict::ApprovalTerms;

pub use crate::json::Json;
pub use budget::JobBudget;
pub use child::ChildOf;

/// Prefixes of labels that restrict placement: the worker must have matching labels.
const PLACEMENT_LABELS: [&str; 3] = ["placement.", "constraint.", "node."];
/// The label that restricts a job to one pool.
const PREFERRED_POOL: &str = "preferred_pool";
/// The label that names the worker to prefer.
const PREFERRED_WORKER: &str = "preferred_worker_id";

/// The prefix of labels that mark jobs which ran without a verdict: only the platform sets them.
const LABELS_OF_BYPASSES: &str = "safety_bypass";

/// Prefixes of the ids of jobs that runs start, of compensations, and of jobs that schedules start.
const RESERVED_IDS: [&str; 3] = [RunId::PREFIX, "comp-", JobId::SCHEDULED_PREFIX];

/// Whether a label restricts or prefers workers.
pub(crate) fn is_about_placement(label: &str) -> bool {
    [PREFERRED_POOL, PREFERRED_WORKER].contains(&label) || PLACEMENT_LABELS.iter().any(|prefix| label.starts_with(prefix))
}

/// A request before it is checked. Absent fields stay absent: defaults apply later and are not hashed.
#[derive(Clone, Debug, Default)]
pub struct NewJob {
    pub job_id: Option<String>,
    pub topic: String,
    pub payload: Option<Json>,
    pub priority: Option<Priority>,
    pub labels: BTreeMap<String, String>,
    pub env: BTreeMap<String, String>,
    pub idempotency_key: Option<String>,
    pub max_attempts: Option<u32>,
    /// Retry settings, beside the number of attempts.
    pub retry: RetrySettings,
    pub timeout_ms: Option<u64>,
    pub not_before: Option<Timestamp>,
    pub deadline_ms: Option<u64>,
    pub requires: BTreeSet<String>,
    pub capability: Option<String>,
    pub risk_tags: BTreeSet<String>,
    pub trace_id: Option<String>,
    /// The W3C trace context in which the client made this job.
    pub traceparent: Option<String>,
    pub concurrency_key: Option<String>,
    /// Jobs with equal workflow ids are undone together.
    pub workflow_id: Option<String>,
    /// The job that undoes this job's work: see [`Compensation`](crate::dag::saga::Compensation).
    pub compensation: Option<Json>,
}

/// The caller, as far as the gateway knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub tenant: TenantId,
    /// Whether the call or its credential names the tenant; otherwise it is the default tenant.
    pub tenant_named: bool,
    pub actor: ActorId,
    /// The kind of actor: a person, a service, an agent. Free text that policies may match.
    pub actor_type: Option<Arc<str>>,
    /// Whether a credential proves who the actor is; otherwise the name is only claimed.
    pub verified: bool,
    /// Whether payloads and results may be read, and not only that they exist.
    pub sees_payloads: bool,
    /// Whether other tenants may be read too.
    pub sees_everyone: bool,
    /// The caller's trace context, if it sent one.
    pub trace: Option<TraceParent>,
    /// The address of the connection.
    pub source: Option<IpAddr>,
}

impl Caller {
    /// A caller without a stated kind. Trusted to read everything, although no credential proves the name.
    pub fn new(tenant: impl Into<TenantId>, actor: impl Into<ActorId>) -> Self {
        Self::of_kind(tenant, actor, None)
    }

    /// A caller of a stated kind, trusted like that of [`new`](Self::new).
    pub fn of_kind(tenant: impl Into<TenantId>, actor: impl Into<ActorId>, actor_type: Option<Arc<str>>) -> Self {
        Self {
            tenant: tenant.into(),
            tenant_named: true,
            actor: actor.into(),
            actor_type,
            verified: false,
            sees_payloads: true,
            sees_everyone: true,
            trace: None,
            source: None,
        }
    }
}

/// One refused field, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

impl FieldError {
    pub fn new(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { field: field.into(), message: message.to_string() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A checked request. Nothing in Lockgate changes it after submit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRequest {
    pub job_id: JobId,
    /// Whether the client chose the id; a chosen id is an idempotency key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub id_chosen: bool,
    pub tenant: TenantId,
    pub actor: ActorId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<Arc<str>>,
    /// Whether a credential proved who the actor is. Absent without authentication, so that such rows are not longer for it.
    #[serde(rename = "verified", default, skip_serializing_if = "std::ops::Not::not")]
    pub actor_verified: bool,
    pub topic: Topic,
    /// Stored separately, so that the other fields can be read without it.
    #[serde(skip)]
    pub payload: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "RetrySettings::is_empty")]
    pub retry: RetrySettings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub requires: BTreeSet<Arc<str>>,
    /// What the job may do, in the terms of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Arc<str>>,
    /// What is risky about the job, in the terms of the policy.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub risk_tags: BTreeSet<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Arc<str>>,
    /// The client's span in that trace, the parent of the job's span.
    #[serde(rename = "traceparent", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TraceParent>,
    /// Jobs with equal keys share the limits that are counted per key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<Arc<str>>,
    /// The workflow of plain jobs that the job is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<Arc<str>>,
    /// The compensation, as the client wrote it: runs if the workflow is rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensation: Option<Json>,
    /// The parent job. Set by the platform only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_of: Option<ChildOf>,
    /// The run that the job belongs to; for a plain job the saga of its workflow. Set by the platform only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRef>,
    /// An approval before each life's first attempt, whatever policy says. Set by the platform only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<ApprovalGate>,
    /// Whether a memoised result may be taken instead of running the job. Set by the platform only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Memo>,
}

/// How a result is memoised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memo {
    /// A hash of everything that says what is to be done. Equal for equal work of a tenant, in whatever DAG.
    pub key: Arc<str>,
    /// How long the result is valid.
    pub for_ms: u64,
    /// Run the job even if a result is stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
}

/// The part of a run that a job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRef {
    pub run: RunId,
    pub node: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    #[serde(default)]
    pub round: u32,
    /// The job is the node's compensation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
}

/// An approval that the platform requires before a job may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalGate {
    pub reason: Arc<str>,
    pub terms: ApprovalTerms,
    /// The job consists of the approval alone: it succeeds once approved, without a worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only: bool,
}

/// SHA-256 over the client's own fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestHash(pub [u8; 32]);

impl fmt::Display for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl JobRequest {
    /// Checks every field and returns all errors at once. `fresh_id` is used if the client chose no id.
    pub fn check(new: NewJob, caller: &Caller, fresh_id: impl FnOnce() -> JobId) -> Result<Self, Vec<FieldError>> {
        let mut errors = refusals(&new);
        let parent = parent_of(&new, caller).unwrap_or_else(|error| {
            errors.push(error);
            None
        });
        if !errors.is_empty() {
            return Err(errors);
        }
        let trace = || parent.map(|parent| parent.trace.to_string());
        let run = new.workflow_id.as_ref().map(|workflow| saga::part(&caller.tenant, workflow));
        let mut labels = new.labels;
        labels.extend(new.workflow_id.iter().map(|workflow| (WORKFLOW_LABEL.to_owned(), workflow.clone())));
        Ok(Self {
            id_chosen: new.job_id.is_some(),
            job_id: new.job_id.map_or_else(fresh_id, JobId::from),
            tenant: caller.tenant.clone(),
            actor: caller.actor.clone(),
            actor_type: caller.actor_type.clone(),
            actor_verified: caller.verified,
            topic: new.topic.into(),
            payload: new.payload.unwrap_or_default(),
            priority: new.priority,
            labels,
            env: new.env,
            idempotency_key: new.idempotency_key.map(Arc::from),
            max_attempts: new.max_attempts,
            retry: new.retry,
            timeout_ms: new.timeout_ms,
            not_before: new.not_before,
            deadline_ms: new.deadline_ms,
            requires: new.requires.into_iter().map(Arc::from).collect(),
            capability: new.capability.map(Arc::from),
            risk_tags: new.risk_tags.into_iter().map(Arc::from).collect(),
            trace_id: new.trace_id.or_else(trace).map(Arc::from),
            parent,
            concurrency_key: new.concurrency_key.map(Arc::from),
            workflow_id: new.workflow_id.map(Arc::from),
            compensation: new.compensation,
            child_of: None,
            run,
            gate: None,
            memo: None,
        })
    }

    /// The submitter, as a `Caller` for work done on its behalf.
    pub fn caller(&self) -> Caller {
        let caller = Caller::of_kind(self.tenant.clone(), self.actor.clone(), self.actor_type.clone());
        Caller { verified: self.actor_verified, ..caller }
    }

    /// Whether the client can refer to this job in a repeated submit: by a key or by its own id.
    pub fn is_named(&self) -> bool {
        self.id_chosen || self.idempotency_key.is_some()
    }

    /// The identity of the request. Actor and trace are left out: they say who asked and how, not what for.
    pub fn hash(&self) -> RequestHash {
        #[derive(Serialize)]
        struct Hashed<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            capability: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            compensation: Option<Cow<'a, str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            concurrency_key: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            deadline_ms: Option<u64>,
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            env: &'a BTreeMap<String, String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            job_id: Option<&'a JobId>,
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            labels: &'a BTreeMap<String, String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            max_attempts: Option<u32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            not_before: Option<Timestamp>,
            #[serde(skip_serializing_if = "Option::is_none")]
            priority: Option<Priority>,
            #[serde(skip_serializing_if = "BTreeSet::is_empty")]
            requires: &'a BTreeSet<Arc<str>>,
            #[serde(skip_serializing_if = "RetrySettings::is_empty")]
            retry: &'a RetrySettings,
            #[serde(skip_serializing_if = "BTreeSet::is_empty")]
            risk_tags: &'a BTreeSet<Arc<str>>,
            tenant: &'a TenantId,
            #[serde(skip_serializing_if = "Option::is_none")]
            timeout_ms: Option<u64>,
            topic: &'a Topic,
            #[serde(skip_serializing_if = "Option::is_none")]
            workflow_id: Option<&'a str>,
        }
        let hashed = Hashed {
            capability: self.capability.as_deref(),
            compensation: self.compensation.as_ref().map(Json::canonical),
            concurrency_key: self.concurrency_key.as_deref(),
            deadline_ms: self.deadline_ms,
            env: &self.env,
            job_id: self.id_chosen.then_some(&self.job_id),
            labels: &self.labels,
            max_attempts: self.max_attempts,
            not_before: self.not_before,
            priority: self.priority,
            requires: &self.requires,
            retry: &self.retry,
            risk_tags: &self.risk_tags,
            tenant: &self.tenant,
            timeout_ms: self.timeout_ms,
            topic: &self.topic,
            workflow_id: self.workflow_id.as_deref(),
        };
        let mut digest = Sha256::new();
        digest.update(serde_json::to_vec(&hashed).unwrap_or_default());
        digest.update(b"\n");
        digest.update(self.payload.canonical().as_bytes());
        RequestHash(digest.finalize().into())
    }

    pub fn priority(&self) -> Priority {
        self.priority.unwrap_or_default()
    }

    /// The retry policy: the job's own settings over the timeouts file's for its topic, over the installation's.
    pub fn retry_policy(&self, limits: &Limits, timeouts: &Timeouts) -> RetryPolicy {
        let policy = RetryPolicy::of(limits).with(timeouts.retry_of(&self.topic)).with(&self.retry);
        RetryPolicy { attempts: self.max_attempts.unwrap_or(policy.attempts), ..policy }
    }

    pub fn timeout(&self, timeouts: &Timeouts) -> Duration {
        self.timeout_ms.map_or_else(|| timeouts.of(&self.topic).running, Duration::from_millis)
    }

    /// The requirements on a worker, before policy adds its constraints.
    pub fn shape(&self) -> Shape {
        let label = |name: &str| self.labels.get(name).map(String::as_str);
        let placed = |(name, _): &(&String, &String)| PLACEMENT_LABELS.iter().any(|prefix| name.starts_with(prefix));
        Shape {
            topic: self.topic.clone(),
            requires: self.requires.clone(),
            placement: self.labels.iter().filter(placed).map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect(),
            preferred_pool: label(PREFERRED_POOL).map(PoolName::from),
            preferred_worker: label(PREFERRED_WORKER).map(WorkerId::from),
            allowed_pools: None,
            max_concurrent: None,
            concurrency_key: self.concurrency_key.clone(),
        }
    }
}

pub(crate) fn refusals(new: &NewJob) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut refuse = |field: &str, message: &dyn fmt::Display| errors.push(FieldError::new(field, message));
    if let Err(error) = check_name(&new.topic) {
        refuse("topic", &error);
    }
    for (field, name) in [
        ("job_id", &new.job_id),
        ("idempotency_key", &new.idempotency_key),
        ("trace_id", &new.trace_id),
        ("capability", &new.capability),
        ("concurrency_key", &new.concurrency_key),
        ("workflow_id", &new.workflow_id),
    ] {
        if let Some(Err(error)) = name.as_deref().map(check_name) {
            refuse(field, &error);
        }
    }
    if let Some(prefix) =
        RESERVED_IDS.into_iter().find(|prefix| new.job_id.as_ref().is_some_and(|id| id.starts_with(prefix)))
    {
        refuse("job_id", &format_args!("must not begin with {prefix:?}: the platform names its own jobs so"));
    }
    if new.payload.as_ref().is_some_and(|payload| payload.as_str().len() > PAYLOAD_BYTES_MAX) {
        refuse("payload", &format_args!("must be at most {PAYLOAD_BYTES_MAX} bytes of JSON"));
    }
    if new.max_attempts.is_some_and(|n| n == 0 || n > ATTEMPTS_MAX) {
        refuse("max_attempts", &format_args!("must be between 1 and {ATTEMPTS_MAX}"));
    }
    if new.retry.attempts.is_some() {
        refuse("retry.attempts", &"is max_attempts of the job; send that");
    }
    for (field, span) in [("timeout_ms", new.timeout_ms), ("deadline_ms", new.deadline_ms)] {
        if span.is_some_and(|ms| ms == 0 || ms > SPAN_MS_MAX) {
            refuse(field, &format_args!("must be between 1 and {SPAN_MS_MAX}"));
        }
    }
    for (field, entries) in [("labels", &new.labels), ("env", &new.env)] {
        check_entries(field, entries, &mut refuse);
    }
    check_labels(&new.labels, &mut refuse);
    for (field, names) in [("requires", &new.requires), ("risk_tags", &new.risk_tags)] {
        if names.len() > ENTRIES_MAX {
            refuse(field, &format_args!("must have at most {ENTRIES_MAX} entries"));
        }
        if let Some(Err(error)) = names.iter().map(|name| check_name(name)).find(Result::is_err) {
            refuse(field, &error);
        }
    }
    let named = new.workflow_id.as_ref().filter(|id| new.labels.get(WORKFLOW_LABEL).is_some_and(|label| label != *id));
    if named.is_some() {
        refuse("labels", &format_args!("{WORKFLOW_LABEL:?} names another workflow than the field; send one of them"));
    }
    if let Some(undo) = &new.compensation {
        if new.workflow_id.is_none() {
            refuse("compensation", &"needs workflow_id: a job alone is never rolled back");
        }
        errors.extend(saga::SagaCompensation::refusals(undo));
    }
    errors.extend(new.retry.refusals());
    errors
}

/// The job's own trace context counts before that of the call, which may come from a proxy on the way. Neither moves a job
/// out of the trace that it names.
fn parent_of(new: &NewJob, caller: &Caller) -> Result<Option<TraceParent>, FieldError> {
    let same =
        |parent: &TraceParent| new.trace_id.as_deref().is_none_or(|id| id.eq_ignore_ascii_case(&parent.trace.to_string()));
    let Some(text) = &new.traceparent else { return Ok(caller.trace.filter(same)) };
    let parent = text.parse().map_err(|error| FieldError::new("traceparent", error))?;
    if !same(&parent) {
        return Err(FieldError::new("traceparent", "names another trace than trace_id; send one of them"));
    }
    Ok(Some(parent))
}

fn check_entries(field: &str, entries: &BTreeMap<String, String>, refuse: &mut dyn FnMut(&str, &dyn fmt::Display)) {
    if entries.len() > ENTRIES_MAX {
        refuse(field, &format_args!("must have at most {ENTRIES_MAX} entries"));
    }
    for (name, value) in entries {
        if name.is_empty() || name.len() > crate::ids::NAME_BYTES_MAX || name.contains(char::is_control) {
            refuse(field, &format_args!("has an invalid name {name:?}"));
        }
        if value.len() > VALUE_BYTES_MAX {
            refuse(field, &format_args!("value of {name:?} must be at most {VALUE_BYTES_MAX} bytes"));
        }
    }
}

fn check_labels(labels: &BTreeMap<String, String>, refuse: &mut dyn FnMut(&str, &dyn fmt::Display)) {
    for name in labels.keys() {
        if name.starts_with('_') {
            refuse("labels", &format_args!("{name:?} is refused: a leading _ is reserved for the platform"));
        }
        if name.starts_with(LABELS_OF_BYPASSES) {
            refuse("labels", &format_args!("{name:?} is refused: only the platform says that policy was bypassed"));
        }
    }
    for name in [PREFERRED_POOL, PREFERRED_WORKER] {
        if let Some(Err(error)) = labels.get(name).map(|value| check_name(value)) {
            refuse("labels", &format_args!("value of {name:?} {error}"));
        }
    }
}

#[cfg(test)]
mod tests;
