//! The re-offer loop: how lost knowledge comes back.
//!
//! A row that no index knows is never claimed, so it sinks to the head of its lane. Comparing heads is therefore enough,
//! and costs one short page per lane however long the backlog is. All lanes of the Store are compared more rarely, and when a
//! process died that may have stored what it did not live to offer.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_core::lane::LaneKey;
use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, wait};
use crate::health::drawn;
use crate::{Inner, Settings};

/// Rows compared per lane and round.
const HEAD: usize = 32;
/// Lanes compared per round.
const LANES: usize = 1_000;

/// Why lanes are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The lanes may have missed something: those that have jobs are compared.
    Tick,
    /// They may have missed a whole lane: all of the Store's are compared.
    Sweep,
    /// The same at once, by whoever saw somebody die: who leads the loop need not know of it.
    Death,
}

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let Settings { reoffer_every, reoffer_all_every, .. } = inner.settings;
    let mut all_at = Instant::now() + reoffer_all_every;
    // A death whose offers were not made up for yet.
    let mut owed = false;
    let mut rests_until = Instant::now();
    loop {
        let death = async {
            inner.wake.reoffer.notified().await;
            owed = true;
            // Processes that die one after another do not cost a comparison each.
            tokio::time::sleep_until(rests_until).await;
        };
        if !wait(&mut stop, drawn(reoffer_every), death).await {
            return;
        }
        let cause = match () {
            () if owed => Cause::Death,
            () if Instant::now() >= all_at => Cause::Sweep,
            () => Cause::Tick,
        };
        let compared = inner.reoffer_once(cause).await;
        // What cannot be decoded is no better at the next tick, and all else was offered.
        owed &= compared.as_ref().is_err_and(|error| !error.is_damage());
        if cause != Cause::Tick {
            (rests_until, all_at) = (Instant::now() + reoffer_every, Instant::now() + reoffer_all_every);
        }
        if let Err(error) = compared {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("reoffer");
            tracing::warn!(%error, "lanes could not be compared; trying again with the next tick");
        }
    }
}

impl Inner {
    async fn reoffer_once(&self, cause: Cause) -> Result<(), StoreError> {
        let leads = self.leads(Lead::Reoffer, self.settings.reoffer_every).await?;
        if !leads && cause != Cause::Death {
            return Ok(());
        }
        // One lane's damage must not hide the lanes behind it.
        let mut compared = Ok(());
        for (lane, rows) in self.to_compare(cause).await? {
            match self.ports.store.ready(&lane, None, rows).await {
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

    /// Lanes, and how many rows of each.
    async fn to_compare(&self, cause: Cause) -> Result<Vec<(LaneKey, usize)>, StoreError> {
        if cause == Cause::Tick {
            // Lanes that are away are rebuilt as a whole when they are back.
            let depths = self.ports.lanes.depths(LANES).await.unwrap_or_default();
            return Ok(depths.into_iter().map(|depth| (depth.lane, HEAD)).collect());
        }
        let stored = self.ports.store.ready_lanes().await?;
        let Ok(depths) = self.ports.lanes.depths(usize::MAX).await else {
            // An offer that they do not hear has them rebuilt.
            return Ok(stored.into_iter().map(|(lane, _)| (lane, HEAD)).collect());
        };
        let known: BTreeSet<LaneKey> = depths.into_iter().map(|depth| depth.lane).collect();
        // Ticks pass by a lane that is empty again: what a whole batch left in it comes in one page.
        let compared = |(lane, _): (LaneKey, u64)| {
            let rows = if known.contains(&lane) { HEAD } else { self.settings.batch_max };
            (lane, rows)
        };
        Ok(stored.into_iter().map(compared).collect())
    }
}
