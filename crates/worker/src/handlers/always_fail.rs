//! `job.always_fail`: never succeeds, and ends as a dead letter when its attempts are spent.

use serde::Deserialize;

use crate::error::JobError;
use crate::payload::Payload;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AlwaysFailInput {
    message: Option<String>,
}

pub(super) async fn run(payload: Payload) -> Result<(), JobError> {
    let input: Option<AlwaysFailInput> = payload.json()?;
    Err(JobError::retryable(input.unwrap_or_default().message.as_deref().unwrap_or("this job always fails")))
}
