//! `job.noop`: does nothing, whatever the payload. What is left is the cost of the scheduler.

use crate::error::JobError;

pub(super) async fn run() -> Result<(), JobError> {
    Ok(())
}
