//! Seals audit rows into hash-linked blocks. Two sealers are harmless: a block is added only on the head it continues.

use std::sync::Arc;

use lockgate_core::audit::Block;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::round::Round;
use super::{Lead, tick};
use crate::Inner;

/// Rows of one block at most.
const ROWS_MAX: usize = 1_000;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.seal_every).await {
        if let Err(error) = inner.seals_once(&stop).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("seals");
            tracing::warn!(%error, "the audit trail could not be sealed; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn seals_once(&self, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        let every = self.settings.seal_every;
        let Some(mut round) = Round::begin(self, stop, Lead::Seals, every).await? else { return Ok(()) };
        while round.goes_on().await? {
            let head = self.ports.store.head().await?;
            let rows = self.ports.store.audit(head.as_ref().map_or(0, |head| head.last), ROWS_MAX).await?;
            let Some(block) = Block::over(head.as_ref(), &rows, self.ports.clock.now()) else { break };
            if !self.ports.store.seal(&block).await? {
                break;
            }
        }
        Ok(())
    }
}
