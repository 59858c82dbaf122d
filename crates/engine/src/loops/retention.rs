//! Forgets what ended long ago.

use std::sync::Arc;

use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::round::Round;
use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.prune_every).await {
        if let Err(error) = inner.retention_once(&stop).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("retention");
            tracing::warn!(%error, "ended jobs could not be pruned; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn retention_once(&self, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        let every = self.settings.prune_every;
        let Some(mut round) = Round::begin(&self.leadership, stop, Lead::Retention, every).await? else { return Ok(()) };
        // What is deleted does not come back when the Store's clock is right again.
        let _ = self.store_time().await?;
        if self.clocks.store_jumped() {
            return Ok(());
        }
        while round.goes_on().await? && self.ports.store.prune(self.settings.retention, self.settings.batch_max).await? > 0 {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
