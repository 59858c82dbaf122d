//! `job.noop`: does nothing, whatever the payload, so that only the scheduler's cost remains.

use crate::error::JobError;

pub(super) async fn run() -> Result<(), JobError> {
    Ok(())
}
