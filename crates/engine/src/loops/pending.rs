//! PENDING jobs are the wait-list of the kernel: judged when due, page by page, until it fails to answer.

use std::sync::Arc;

use lockgate_core::job::{Input, JobState};
use lockgate_core::lane::ReadyKey;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.pending_once().await {
            inner.health.store_answered(false);
            tracing::warn!(%error, "pending jobs could not be judged; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn pending_once(&self) -> Result<(), StoreError> {
        if !self.leads(Lead::Pending, self.settings.expire_every).await? {
            return Ok(());
        }
        let mut after = ReadyKey::default();
        // While the kernel is away the rows are the wait-list: nobody asks one by one, and nothing is written.
        while self.ports.kernel.ready() {
            let jobs = self.ports.store.pending(after, self.settings.batch_max).await?;
            let Some(last) = jobs.last() else { return Ok(()) };
            after = last.ready_key();
            let inputs = jobs.into_iter().map(|job| (Arc::new(job), Input::Judged)).collect();
            let driven = self.drive(inputs).await?;
            if driven.iter().flatten().all(|job| job.state() == JobState::Pending) {
                return Ok(());
            }
        }
        Ok(())
    }
}
