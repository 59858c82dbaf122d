//! `job.echo`: the payload is the result.

use crate::error::JobError;
use crate::payload::Payload;

pub(super) async fn run(payload: Payload) -> Result<Payload, JobError> {
    Ok(payload)
}
