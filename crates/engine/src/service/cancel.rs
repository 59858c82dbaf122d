//! Cancel: the job ends at once; a worker that holds it is told.

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{Input, JobState};
use lockgate_core::request::Caller;

use super::to_the_end;
use crate::Engine;
use crate::error::ApiError;

impl Engine {
    pub async fn cancel(&self, caller: &Caller, id: &JobId, note: Option<Arc<str>>) -> Result<JobState, ApiError> {
        let job = self.inner.find(caller, id).await?;
        let input = Input::Cancel { actor: caller.actor.clone(), note };
        let inner = self.inner.clone();
        let driven = to_the_end(async move { inner.drive(vec![(job, input)]).await }).await?;
        match driven?.pop() {
            Some(driven) => Ok(driven?.state()),
            None => Err(ApiError::NotFound(id.clone())),
        }
    }
}
