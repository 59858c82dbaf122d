//! Before the first claim: a lease for this edge, the end of what surely died, lanes rebuilt from the Store.

use std::sync::Arc;

use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::tick;
use crate::Inner;

/// The engine was told to stop before it could start.
pub(crate) struct RecoveryStopped;

/// The time before which everything due is in the rebuilt lanes.
pub(crate) async fn recover(inner: &Arc<Inner>, stop: &mut watch::Receiver<bool>) -> Result<Timestamp, RecoveryStopped> {
    loop {
        let began = inner.ports.clock.now();
        match inner.recover_once().await {
            // The lanes may have been laid out before, when the first configuration was read.
            Ok(()) => return Ok(inner.config.laid_out_at().map_or(began, |at| at.min(began))),
            Err(error) => tracing::error!(%error, "startup recovery failed; trying again"),
        }
        if !tick(stop, inner.settings.idle_claim).await {
            return Err(RecoveryStopped);
        }
    }
}

impl Inner {
    async fn recover_once(&self) -> Result<(), StoreError> {
        if self.settings.roles.gateway {
            self.ports.store.renew_edge(&self.edge.id(), self.settings.edge_ttl).await?;
        }
        if self.settings.exclusive_store {
            for row in self.ports.store.open_sessions().await? {
                if row.profile.in_process && row.edge != self.edge.id() {
                    self.close_and_lose(&row.session, row.epoch).await?;
                }
            }
        }
        self.policies_once().await?;
        self.configs_once().await
    }
}
