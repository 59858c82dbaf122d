//! Seals audit rows into hash-linked blocks. Two sealers are harmless: a block is added only on the head it continues.

use std::sync::Arc;

use lockgate_core::audit::Block;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

/// Rows of one block at most.
const ROWS_MAX: usize = 1_000;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.seal_every).await {
        if let Err(error) = inner.seals_once().await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("seals");
            tracing::warn!(%error, "the audit trail could not be sealed; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn seals_once(&self) -> Result<(), StoreError> {
        if !self.leads(Lead::Seals, self.settings.seal_every).await? {
            return Ok(());
        }
        loop {
            let head = self.ports.store.head().await?;
            let rows = self.ports.store.audit(head.as_ref().map_or(0, |head| head.last), ROWS_MAX).await?;
            let Some(block) = Block::over(head.as_ref(), &rows, self.ports.clock.now()) else { return Ok(()) };
            if !self.ports.store.seal(&block).await? {
                return Ok(());
            }
        }
    }
}
