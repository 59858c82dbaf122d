//! A new policy calls back attempts that are on their way and that it does not allow.

use std::sync::Arc;

use lockgate_core::job::{Input, JobState};
use lockgate_ports::StoreError;

use crate::Inner;
use crate::commit::Undriven;

impl Inner {
    /// How many were called back. Those that had not started may be about to: a caller that promises more waits for that moment to
    /// pass. Repeated by the next tick until it went through.
    pub(crate) async fn recall(&self, in_force: &Arc<str>) -> Result<usize, StoreError> {
        let unstarted = self.edge.look(|edge| edge.unstarted());
        let driven = self.drive(unstarted.into_iter().map(|job| (job, Input::Judged)).collect()).await?;
        // One that the Store did not take may start all the same: it is called back again with the next tick.
        if let Some(Err(Undriven::Refused(why))) = driven.iter().find(|one| one.as_ref().is_err_and(Undriven::is_refused)) {
            return Err(StoreError::Refused(why.clone()));
        }
        let recalled = driven.iter().flatten().filter(|job| job.state() != JobState::Dispatched).count();
        *self.recalled.lock() = in_force.clone();
        Ok(recalled)
    }

    /// Until none of so many that were called back can start any more.
    pub(crate) async fn let_recalled_pass(&self, recalled: usize) {
        if recalled > 0 {
            tokio::time::sleep(self.settings.recall_within).await;
        }
    }
}
