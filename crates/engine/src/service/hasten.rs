//! Force retry: a job that waits for its next attempt is due now.

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{Input, JobState};
use lockgate_core::request::Caller;

use crate::Engine;
use crate::error::ApiError;

impl Engine {
    pub async fn force_retry(&self, caller: &Caller, id: &JobId, note: Option<Arc<str>>) -> Result<JobState, ApiError> {
        let job = self.inner.find(caller, id).await?;
        let input = Input::Hasten { actor: caller.actor.clone(), note };
        Ok(self.inner.clone().drive_one(caller, job, input).await?.state())
    }
}
