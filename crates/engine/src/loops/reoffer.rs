//! The re-offer loop: how lost knowledge comes back.
//!
//! A row that no index knows is never claimed, so it sinks to the head of its lane. Comparing heads is therefore enough,
//! and costs one short page per lane however long the backlog is. All lanes of the Store are compared more rarely.

use std::sync::Arc;

use lockgate_core::lane::LaneKey;
use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, tick};
use crate::Inner;

/// Rows compared per lane and round.
const HEAD: usize = 32;
/// Lanes compared per round.
const LANES: usize = 1_000;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut all_at = Instant::now() + inner.settings.reoffer_all_every;
    while tick(&mut stop, inner.settings.reoffer_every).await {
        let all = Instant::now() >= all_at;
        if all {
            all_at = Instant::now() + inner.settings.reoffer_all_every;
        }
        if let Err(error) = inner.reoffer_once(all).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("reoffer");
            tracing::warn!(%error, "lanes could not be compared; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn reoffer_once(&self, all: bool) -> Result<(), StoreError> {
        if !self.leads(Lead::Reoffer, self.settings.reoffer_every).await? {
            return Ok(());
        }
        let lanes: Vec<LaneKey> = if all {
            self.ports.store.ready_lanes().await?.into_iter().map(|(lane, _)| lane).collect()
        } else {
            // Lanes that are away are rebuilt as a whole when they are back.
            let Ok(depths) = self.ports.lanes.depths(LANES).await else { return Ok(()) };
            depths.into_iter().map(|depth| depth.lane).collect()
        };
        // One lane's damage must not hide the lanes behind it.
        let mut compared = Ok(());
        for lane in lanes {
            match self.ports.store.ready(&lane, None, HEAD).await {
                Ok(head) => {
                    self.metrics.read_ready(head.len());
                    self.offer(head.into_iter().map(Arc::new).collect()).await;
                }
                Err(error) if error.is_damage() => compared = compared.and(Err(error)),
                Err(error) => return Err(error),
            }
        }
        compared
    }
}
