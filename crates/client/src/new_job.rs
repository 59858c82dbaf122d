//! A job to be submitted.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use lockgate_contract::Priority;
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::ClientError;

/// A job to be submitted: a topic, and what else differs from the defaults of the installation.
///
/// It can also be read from JSON with the names of the methods; spans are in milliseconds there and end in `_ms`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewJob {
    topic: String,
    payload: Option<Box<RawValue>>,
    job_id: Option<String>,
    idempotency_key: Option<String>,
    priority: Option<Priority>,
    labels: HashMap<String, String>,
    env: HashMap<String, String>,
    max_attempts: Option<u32>,
    timeout_ms: Option<u64>,
    deadline_ms: Option<u64>,
    not_before_ms: Option<i64>,
    requires: Vec<String>,
    capability: Option<String>,
    risk_tags: Vec<String>,
    concurrency_key: Option<String>,
    workflow_id: Option<String>,
    compensation: Option<Box<RawValue>>,
    trace_id: Option<String>,
    traceparent: Option<String>,
    retry: Option<Retries>,
    #[serde(skip)]
    fault: Option<String>,
}

/// How attempts are tried again. What is absent is as the topic or the installation has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    /// Wait after the first failure.
    pub base_ms: Option<u64>,
    /// How many hundredths of the wait before it each wait is; 200 doubles it.
    pub factor_percent: Option<u32>,
    /// Longest wait.
    pub cap_ms: Option<u64>,
    /// Up to how many hundredths of a wait are added to it at random.
    pub jitter_percent: Option<u32>,
    /// No retry is planned for later than this after the submit.
    pub total_ms: Option<u64>,
    /// Codes of failures that are not tried again.
    pub non_retryable: Vec<String>,
    /// Attempts that workers, servers and networks may lose.
    pub losses: Option<u32>,
}

impl NewJob {
    /// A job of this topic, with the payload `null`.
    pub fn new(topic: impl Into<String>) -> Self {
        Self { topic: topic.into(), ..Self::default() }
    }

    /// What the handler gets: any value that has a JSON form.
    #[must_use]
    pub fn payload(mut self, payload: &(impl Serialize + ?Sized)) -> Self {
        match to_raw_value(payload) {
            Ok(json) => self.payload = Some(json),
            Err(error) => self.fault = Some(error.to_string()),
        }
        self
    }

    /// A name chosen by the client: a repeated submit with this key answers with the job it made first.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// The id of the job, instead of one that the server makes.
    #[must_use]
    pub fn job_id(mut self, id: impl Into<String>) -> Self {
        self.job_id = Some(id.into());
        self
    }

    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// A variable for the handler.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Attempts that may fail before the job fails.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// How failed and lost attempts are tried again.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retry = Some(retries);
        self
    }

    /// How long one attempt may run.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = Some(millis(timeout));
        self
    }

    /// How long after the submit the job must have ended, whatever its state.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline_ms = Some(millis(deadline));
        self
    }

    /// Unix milliseconds before which the job does not start.
    #[must_use]
    pub fn not_before_ms(mut self, at: i64) -> Self {
        self.not_before_ms = Some(at);
        self
    }

    /// A capability that the worker must have.
    #[must_use]
    pub fn requires(mut self, capability: impl Into<String>) -> Self {
        self.requires.push(capability.into());
        self
    }

    /// What the job may do, in the words of the policy.
    #[must_use]
    pub fn capability(mut self, capability: impl Into<String>) -> Self {
        self.capability = Some(capability.into());
        self
    }

    /// What is risky about the job, in the words of the policy.
    #[must_use]
    pub fn risk_tag(mut self, tag: impl Into<String>) -> Self {
        self.risk_tags.push(tag.into());
        self
    }

    /// Jobs with one key share the limits that `pools.yaml` sets per key.
    #[must_use]
    pub fn concurrency_key(mut self, key: impl Into<String>) -> Self {
        self.concurrency_key = Some(key.into());
        self
    }

    /// The workflow that the job is part of, whose jobs are undone together, and the job that undoes this one: an object with
    /// `topic` and, if needed, `payload`.
    #[must_use]
    pub fn compensated_by(mut self, workflow_id: impl Into<String>, compensation: &impl Serialize) -> Self {
        self.workflow_id = Some(workflow_id.into());
        match to_raw_value(compensation) {
            Ok(json) => self.compensation = Some(json),
            Err(error) => self.fault = Some(error.to_string()),
        }
        self
    }

    /// W3C trace context that the job belongs to.
    #[must_use]
    pub fn traceparent(mut self, context: impl Into<String>) -> Self {
        self.traceparent = Some(context.into());
        self
    }

    /// The message of the contract. Fails if the payload has no JSON form.
    pub fn into_message(self) -> Result<v1::NewJob, ClientError> {
        if let Some(fault) = self.fault {
            return Err(ClientError::invalid("payload", format_args!("is not valid JSON: {fault}")));
        }
        let json = |value: Option<Box<RawValue>>| value.map(|value| Bytes::from(String::from(Box::<str>::from(value))));
        Ok(v1::NewJob {
            job_id: self.job_id.unwrap_or_default(),
            topic: self.topic,
            payload_json: json(self.payload).unwrap_or_default(),
            priority: wire_priority(self.priority).into(),
            labels: self.labels,
            env: self.env,
            idempotency_key: self.idempotency_key.unwrap_or_default(),
            max_attempts: self.max_attempts,
            timeout_ms: self.timeout_ms,
            not_before_ms: self.not_before_ms,
            deadline_ms: self.deadline_ms,
            requires: self.requires,
            trace_id: self.trace_id.unwrap_or_default(),
            capability: self.capability.unwrap_or_default(),
            risk_tags: self.risk_tags,
            workflow_id: self.workflow_id.unwrap_or_default(),
            compensation_json: json(self.compensation).unwrap_or_default(),
            concurrency_key: self.concurrency_key.unwrap_or_default(),
            traceparent: self.traceparent.unwrap_or_default(),
            budget: None,
            retry: self.retry.map(Into::into),
        })
    }
}

impl From<Retries> for v1::RetryPolicy {
    fn from(retries: Retries) -> Self {
        Self {
            base_ms: retries.base_ms,
            factor_percent: retries.factor_percent,
            cap_ms: retries.cap_ms,
            jitter_percent: retries.jitter_percent,
            total_ms: retries.total_ms,
            non_retryable: retries.non_retryable,
            losses: retries.losses,
        }
    }
}

pub(crate) const fn wire_priority(priority: Option<Priority>) -> v1::Priority {
    match priority {
        None => v1::Priority::Unspecified,
        Some(Priority::Critical) => v1::Priority::Critical,
        Some(Priority::High) => v1::Priority::High,
        Some(Priority::Default) => v1::Priority::Default,
        Some(Priority::Low) => v1::Priority::Low,
    }
}

pub(crate) fn priority_word(priority: i32) -> &'static str {
    match v1::Priority::try_from(priority) {
        Ok(v1::Priority::Critical) => Priority::Critical.as_str(),
        Ok(v1::Priority::High) => Priority::High.as_str(),
        Ok(v1::Priority::Low) => Priority::Low.as_str(),
        _ => Priority::Default.as_str(),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_sent() {
        let bare = v1::NewJob { topic: "a".to_owned(), ..v1::NewJob::default() };
        assert_eq!(NewJob::new("a").into_message().unwrap(), bare);
    }

    #[test]
    fn builder_and_json_mean_the_same_job() {
        let built = NewJob::new("mail.send")
            .payload(&[1, 2])
            .idempotency_key("k")
            .job_id("i")
            .priority(Priority::High)
            .label("a", "b")
            .env("c", "d")
            .max_attempts(5)
            .retries(Retries { base_ms: Some(5), ..Retries::default() })
            .timeout(Duration::from_secs(30))
            .deadline(Duration::from_secs(60))
            .not_before_ms(7)
            .requires("gpu")
            .capability("deploy")
            .risk_tag("money")
            .concurrency_key("c")
            .compensated_by("w", &serde_json::json!({"topic": "undo"}))
            .traceparent("t");
        let text = r#"{"topic":"mail.send","payload":[1,2],"idempotency_key":"k","job_id":"i","priority":"high","labels":{"a":"b"},
            "env":{"c":"d"},"max_attempts":5,"retry":{"base_ms":5},"timeout_ms":30000,"deadline_ms":60000,"not_before_ms":7,
            "requires":["gpu"],"capability":"deploy","risk_tags":["money"],"concurrency_key":"c","workflow_id":"w",
            "compensation":{"topic":"undo"},"traceparent":"t"}"#;
        let read: NewJob = serde_json::from_str(text).unwrap();
        assert_eq!(built.into_message().unwrap(), read.into_message().unwrap());
        assert!(serde_json::from_str::<NewJob>(r#"{"topicc":"x"}"#).unwrap_err().to_string().contains("topicc"));
    }

    #[test]
    fn a_payload_without_a_json_form_is_an_error_of_its_field() {
        let keys = std::collections::BTreeMap::from([(vec![1], 2)]);
        let error = NewJob::new("a").payload(&keys).into_message().unwrap_err();
        assert!(error.to_string().starts_with("payload is not valid JSON"), "{error}");
    }
}
