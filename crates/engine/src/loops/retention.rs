//! Forgets what ended long ago.

use std::sync::Arc;

use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::tick;
use crate::Inner;

const RETENTION: &str = "lockgate:retention";

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.prune_every).await {
        if let Err(error) = inner.retention_once().await {
            inner.health.store_answered(false);
            tracing::warn!(%error, "ended jobs could not be pruned; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn retention_once(&self) -> Result<(), StoreError> {
        let ttl = self.settings.prune_every * 2;
        if self.ports.store.acquire(RETENTION, self.edge.id().as_str(), ttl).await?.is_none() {
            return Ok(());
        }
        while self.ports.store.prune(self.settings.retention, self.settings.batch_max).await? > 0 {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
