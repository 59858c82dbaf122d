//! Looks after lanes that several processes share: they may lose their memory, miss something, or be out of reach. Nothing is
//! lost by that, for the Store has it all; it must only be offered again.

use std::sync::Arc;

use lockgate_ports::{Condition, StoreError};
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.lanes_every).await {
        if let Err(error) = inner.lanes_once().await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("lanes");
            tracing::warn!(%error, "the lanes could not be rebuilt; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn lanes_once(&self) -> Result<(), StoreError> {
        let condition = self.ports.lanes.condition().await;
        let before = std::mem::replace(&mut *self.lanes.lock(), condition.clone());
        if before != condition {
            self.metrics.sharing.lanes_are(&condition);
            tracing::warn!(?before, now = ?condition, "lanes condition changed");
        }
        if !matches!(condition, Condition::Behind | Condition::Blank) || !self.leads_rebuild().await? {
            return Ok(());
        }
        let _one_at_a_time = self.config.changing.lock().await;
        // Another process may have been faster.
        match self.ports.lanes.condition().await {
            Condition::Blank => self.lay_out_anew(self.pools_version()).await?,
            Condition::Behind => {
                let counted = self.fill_lanes().await?;
                self.free_ended(counted).await;
            }
            Condition::Sound | Condition::Away(_) => return Ok(()),
        }
        self.metrics.sharing.rebuilt();
        tracing::info!(was = ?condition, "lanes rebuilt from the Store");
        Ok(())
    }

    async fn leads_rebuild(&self) -> Result<bool, StoreError> {
        self.leadership.leads(Lead::Rebuild, self.settings.lanes_every * 3).await
    }
}
