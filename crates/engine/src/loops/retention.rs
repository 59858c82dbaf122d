//! Forgets what ended long ago.

use std::sync::Arc;

use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;
use crate::health::moved;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.prune_every).await {
        if let Err(error) = inner.retention_once().await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("retention");
            tracing::warn!(%error, "ended jobs could not be pruned; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn retention_once(&self) -> Result<(), StoreError> {
        if !self.leads(Lead::Retention, self.settings.prune_every).await? {
            return Ok(());
        }
        while self.ports.store.prune(self.settings.retention, self.settings.batch_max).await? > 0 {
            moved();
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
