//! Cancel: the job ends at once; a worker that holds it is told.

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{Illegal, Input, JobState};
use lockgate_core::request::Caller;

use crate::Engine;
use crate::error::ApiError;

impl Engine {
    pub async fn cancel(&self, caller: &Caller, id: &JobId, note: Option<Arc<str>>) -> Result<JobState, ApiError> {
        let job = self.inner.find(caller, id).await?;
        let input = Input::Cancel { actor: caller.actor.clone(), note };
        match self.inner.clone().drive_one(caller, job, input).await {
            // A call that is repeated because its answer was lost asks for what has happened.
            Err(ApiError::State(Illegal::Terminal(JobState::Cancelled))) => Ok(JobState::Cancelled),
            driven => Ok(driven?.state()),
        }
    }
}
