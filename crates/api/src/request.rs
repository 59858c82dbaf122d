//! A job as a client sends it.

use lockgate_core::json::JsonError;
use lockgate_core::request::{FieldError, JobBudget, Json, NewJob};
use lockgate_core::time::Timestamp;

use crate::names::known_priority;
use crate::retry;
use lockgate_proto::v1;

/// Takes a request off the wire. Names every field that cannot be taken; the rest is checked where requests are frozen.
pub fn new_job(wire: v1::NewJob) -> Result<NewJob, Vec<FieldError>> {
    let mut errors = Vec::new();
    let priority = known_priority(wire.priority).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    let payload = json("payload", &wire.payload_json).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    let compensation = json("compensation", &wire.compensation_json).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut job = NewJob {
        job_id: present(wire.job_id),
        topic: wire.topic,
        payload,
        priority,
        labels: wire.labels.into_iter().collect(),
        env: wire.env.into_iter().collect(),
        idempotency_key: present(wire.idempotency_key),
        max_attempts: wire.max_attempts,
        retry: wire.retry.map(retry::settings).unwrap_or_default(),
        timeout_ms: wire.timeout_ms,
        not_before: wire.not_before_ms.map(Timestamp::from_millis),
        deadline_ms: wire.deadline_ms,
        requires: wire.requires.into_iter().collect(),
        capability: present(wire.capability),
        risk_tags: wire.risk_tags.into_iter().collect(),
        trace_id: present(wire.trace_id),
        traceparent: present(wire.traceparent),
        concurrency_key: present(wire.concurrency_key),
        workflow_id: present(wire.workflow_id),
        compensation,
    };
    if let Some(v1::JobBudget { max_attempts, timeout_ms, deadline_ms }) = wire.budget {
        errors = JobBudget { max_attempts, timeout_ms, deadline_ms }.apply(&mut job);
    }
    if errors.is_empty() { Ok(job) } else { Err(errors) }
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

/// proto3 has no absent text; an empty one means absent.
pub(crate) fn present(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
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
