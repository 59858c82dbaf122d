//! A person lets a quarantined result go.

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{Input, Job};
use lockgate_core::request::Caller;

use crate::Engine;
use crate::error::ApiError;

impl Engine {
    pub async fn release(&self, caller: &Caller, id: &JobId, note: Option<Arc<str>>) -> Result<Job, ApiError> {
        let job = self.inner.find(caller, id).await?;
        let input = Input::Release { actor: caller.actor.clone(), note };
        let released = self.inner.clone().drive_one(caller, job, input).await?;
        Ok(Job::clone(&released))
    }
}
