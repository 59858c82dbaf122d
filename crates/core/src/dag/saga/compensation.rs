//! The compensation of a plain job, as its client submits it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lane::Priority;
use crate::request::{FieldError, JobBudget, Json, NewJob, refusals};

/// Bounded, because the text is stored twice for as long as its workflow is remembered.
const BYTES_MAX: usize = 64 * 1024;

/// The job that undoes another job's work.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SagaCompensation {
    pub topic: String,
    pub payload: Option<Box<RawValue>>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub budget: JobBudget,
    /// Replaces the idempotency key that would be derived from the undone job.
    pub idempotency_key: Option<String>,
    /// Compensate the job also if it failed, since it may have done part of its work.
    #[serde(default)]
    pub undo_on_failure: bool,
}

impl SagaCompensation {
    pub fn read(text: &Json) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text.as_str())
    }

    /// Every invalid field, by its path.
    pub(crate) fn refusals(text: &Json) -> Vec<FieldError> {
        if text.as_str().len() > BYTES_MAX {
            return vec![FieldError::new("compensation", format_args!("must be at most {BYTES_MAX} bytes of JSON"))];
        }
        match Self::read(text) {
            Ok(undo) => refusals(&undo.as_job()).into_iter().map(prefixed).collect(),
            Err(error) => vec![FieldError::new("compensation", error)],
        }
    }

    pub(super) fn as_job(&self) -> NewJob {
        NewJob {
            topic: self.topic.clone(),
            payload: self.payload.as_ref().map(|raw| Json::trusted(raw.get())),
            priority: Some(Priority::Critical),
            labels: self.labels.clone(),
            env: self.env.clone(),
            max_attempts: self.budget.max_attempts,
            timeout_ms: self.budget.timeout_ms,
            deadline_ms: self.budget.deadline_ms,
            idempotency_key: self.idempotency_key.clone(),
            ..NewJob::default()
        }
    }
}

fn prefixed(error: FieldError) -> FieldError {
    let within = if matches!(&*error.field, "max_attempts" | "timeout_ms" | "deadline_ms") { "budget." } else { "" };
    FieldError { field: format!("compensation.{within}{}", error.field), ..error }
}
