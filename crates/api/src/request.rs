//! A job as a client sends it, by REST or gRPC: one body, and one way from there to core.

use std::collections::BTreeMap;

use bytes::Bytes;
use lockgate_core::json::JsonError;
use lockgate_core::lane::Priority;
use lockgate_core::request::{FieldError, JobBudget, Json, NewJob};
use lockgate_core::time::Timestamp;
use lockgate_proto::v1;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::each_once::each_once;
use crate::names::known_priority;
use crate::present;
use crate::retry::RetryBody;

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriorityName {
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
pub struct JobBody {
    topic: String,
    /// Any JSON value in which each name of an object stands once and each number keeps its value as a double: whole numbers
    /// within ±9007199254740991, others with at most 17 significant digits. Kept in canonical form: sorted names, no spaces.
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<JsonText>,
    /// Chosen by the client, it is an idempotency key of its own.
    job_id: Option<String>,
    priority: Option<PriorityName>,
    #[serde(default, deserialize_with = "each_once")]
    labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "each_once")]
    env: BTreeMap<String, String>,
    pub idempotency_key: Option<String>,
    #[schema(minimum = 1, maximum = 1000)]
    max_attempts: Option<u32>,
    /// Of one attempt.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    timeout_ms: Option<u64>,
    /// RFC 3339.
    #[serde(default, deserialize_with = "moment")]
    #[schema(value_type = Option<String>, format = DateTime)]
    not_before: Option<Timestamp>,
    /// From the submit on, for all attempts together.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    deadline_ms: Option<u64>,
    /// Capabilities that the worker must have.
    #[serde(default)]
    #[schema(max_items = 64)]
    requires: Vec<String>,
    trace_id: Option<String>,
    /// W3C trace context of what the client was doing. Counts before the header of that name.
    #[schema(pattern = "^[0-9a-fA-F]{2}-[0-9a-fA-F]{32}-[0-9a-fA-F]{16}-[0-9a-fA-F]{2}(-.*)?$")]
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
    compensation: Option<JsonText>,
    /// Some of the fields above as one object.
    budget: Option<BudgetBody>,
    /// How it is tried again. What is absent is as its topic or the installation has it.
    retry: Option<RetryBody>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = JobBudget)]
pub struct BudgetBody {
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

impl From<v1::JobBudget> for BudgetBody {
    fn from(v1::JobBudget { max_attempts, timeout_ms, deadline_ms }: v1::JobBudget) -> Self {
        Self { max_attempts, timeout_ms, deadline_ms }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewJobs)]
pub struct BatchBody {
    /// 1 to 10,000 jobs; each is read, and accepted or refused, alone.
    #[schema(value_type = Vec<JobBody>, min_items = 1, max_items = 10000)]
    pub jobs: Vec<Box<RawValue>>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Cancel)]
pub struct CancelBody {
    pub reason: Option<String>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RetryNow)]
pub struct RetryNowBody {
    /// For the history of the job and the audit trail.
    pub reason: Option<String>,
}

/// JSON as it was sent. Whether it can be kept is checked when the body is read, so that its errors stand beside the others.
struct JsonText(Bytes);

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
        Ok(Self(Bytes::from(Box::<[u8]>::from(text))))
    }
}

fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let at = Option::<jiff::Timestamp>::deserialize(deserializer)?;
    Ok(at.map(|at| Timestamp::from_millis(at.as_millisecond())))
}

/// Takes a request off the wire. Names every field that cannot be taken; the rest is checked where requests are frozen.
pub fn new_job(wire: v1::NewJob) -> Result<NewJob, Vec<FieldError>> {
    let priority = known_priority(wire.priority);
    JobBody::from(wire).read_with(priority)
}

impl JobBody {
    /// Names every field that cannot be taken; the rest is checked where requests are frozen.
    pub fn read(self) -> Result<NewJob, Vec<FieldError>> {
        let priority = Ok(self.priority.map(Priority::from));
        self.read_with(priority)
    }

    fn read_with(self, priority: Result<Option<Priority>, FieldError>) -> Result<NewJob, Vec<FieldError>> {
        let mut errors = Vec::new();
        let priority = priority.unwrap_or_else(|error| {
            errors.push(error);
            None
        });
        let mut json = |field: &str, sent: Option<JsonText>| {
            json(field, &sent.map(|sent| sent.0).unwrap_or_default()).unwrap_or_else(|error| {
                errors.push(error);
                None
            })
        };
        let (payload, compensation) = (json("payload", self.payload), json("compensation", self.compensation));
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut job = NewJob {
            job_id: self.job_id,
            topic: self.topic,
            payload,
            priority,
            labels: self.labels,
            env: self.env,
            idempotency_key: self.idempotency_key,
            max_attempts: self.max_attempts,
            retry: self.retry.map(Into::into).unwrap_or_default(),
            timeout_ms: self.timeout_ms,
            not_before: self.not_before,
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
        let errors = self.budget.map(JobBudget::from).unwrap_or_default().apply(&mut job);
        if errors.is_empty() { Ok(job) } else { Err(errors) }
    }
}

impl From<v1::NewJob> for JobBody {
    /// Without the priority: a number that means none is an error, and a body has no place for it.
    fn from(wire: v1::NewJob) -> Self {
        let text = |json: Bytes| (!json.is_empty()).then_some(JsonText(json));
        Self {
            job_id: present(wire.job_id),
            topic: wire.topic,
            payload: text(wire.payload_json),
            priority: None,
            labels: wire.labels.into_iter().collect(),
            env: wire.env.into_iter().collect(),
            idempotency_key: present(wire.idempotency_key),
            max_attempts: wire.max_attempts,
            timeout_ms: wire.timeout_ms,
            not_before: wire.not_before_ms.map(Timestamp::from_millis),
            deadline_ms: wire.deadline_ms,
            requires: wire.requires,
            capability: present(wire.capability),
            risk_tags: wire.risk_tags,
            trace_id: present(wire.trace_id),
            traceparent: present(wire.traceparent),
            concurrency_key: present(wire.concurrency_key),
            workflow_id: present(wire.workflow_id),
            compensation: text(wire.compensation_json),
            budget: wire.budget.map(Into::into),
            retry: wire.retry.map(Into::into),
        }
    }
}

/// One JSON value from outside. No bytes mean absent.
pub fn json(field: &str, bytes: &[u8]) -> Result<Option<Json>, FieldError> {
    taken(field, bytes, Json::parse)
}

/// One JSON value that was let in before and is to be judged. No bytes mean absent.
pub fn judged(field: &str, bytes: &[u8]) -> Result<Option<Json>, FieldError> {
    taken(field, bytes, Json::admitted)
}

fn taken(field: &str, bytes: &[u8], take: fn(&str) -> Result<Json, JsonError>) -> Result<Option<Json>, FieldError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| FieldError::new(field, format_args!("must be UTF-8: {error}")))?;
    take(text).map(Some).map_err(|error| error.in_field(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_field_is_named_at_once() {
        let wire =
            v1::NewJob { priority: 9, payload_json: "{".into(), compensation_json: "}".into(), ..v1::NewJob::default() };
        let fields: Vec<String> = new_job(wire).expect_err("refused").into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["priority", "payload", "compensation"]);
    }

    #[test]
    fn what_policy_matches_on_is_taken() {
        let wire =
            v1::NewJob { capability: "deploy".into(), risk_tags: vec!["b".into(), "a".into()], ..v1::NewJob::default() };
        let job = new_job(wire).expect("accepted");
        assert_eq!(job.capability.as_deref(), Some("deploy"));
        assert_eq!(job.risk_tags.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn the_payload_is_taken_in_canonical_form() {
        let wire = v1::NewJob { payload_json: r#"{ "b":1, "a":2 }"#.into(), ..v1::NewJob::default() };
        let payload = new_job(wire).expect("accepted").payload.expect("given");
        assert_eq!(payload.as_str(), r#"{"a":2,"b":1}"#);
        assert_eq!(&crate::json_bytes(&payload)[..], payload.as_str().as_bytes());
    }

    #[test]
    fn bytes_that_are_not_text_are_refused() {
        let wire = v1::NewJob { payload_json: vec![b'"', 0xff, b'"'].into(), ..v1::NewJob::default() };
        let errors = new_job(wire).expect_err("refused");
        assert!(errors[0].message.contains("UTF-8"), "{errors:?}");
    }
}
