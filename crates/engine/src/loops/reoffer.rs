//! The re-offer loop: how lost knowledge comes back.
//!
//! A row that no index knows is never claimed, so it sinks to the head of its lane. Comparing heads is therefore enough,
//! and costs one short page per lane however long the backlog is. All lanes of the Store are compared more rarely, and when a
//! gateway died that may have stored what it did not live to offer.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_core::lane::LaneKey;
use lockgate_core::limits::BATCH_JOBS_MAX;
use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, wait};
use crate::health::{drawn, moved};
use crate::{Inner, Settings};

/// Rows compared per lane and round.
const HEAD: usize = 32;
/// Lanes compared per round.
const LANES: usize = 1_000;
/// Rounds after which all lanes are compared again if that did not go through.
const AGAIN_AFTER: u32 = 4;
/// Lanes of one round that may fail, before it is the Store that fails.
const FAILING_MAX: usize = 3;

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
    let mut rests_until = Instant::now();
    // Somebody died, and what it did not offer was not made up for yet.
    let mut owed = false;
    loop {
        let death = async {
            if !owed {
                inner.wake.reoffer.notified().await;
                // Gateways that die one after another do not cost a comparison each.
                (owed, all_at) = (true, rests_until);
            }
            tokio::time::sleep_until(all_at).await;
        };
        if !wait(&mut stop, drawn(reoffer_every), death).await {
            return;
        }
        // Ticks come up to a tenth early, and the next one is too late.
        let all = Instant::now() + reoffer_every / 10 >= all_at;
        let cause = match (all, owed) {
            (false, _) => Cause::Tick,
            (true, false) => Cause::Sweep,
            (true, true) => Cause::Death,
        };
        let compared = inner.reoffer_once(cause, &stop).await;
        if cause != Cause::Tick {
            let now = Instant::now();
            if matches!(compared, Ok(true)) {
                (owed, all_at, rests_until) = (false, now + reoffer_all_every, now + reoffer_every);
            } else {
                all_at = now + reoffer_every * AGAIN_AFTER;
            }
        }
        if let Err(error) = compared {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("reoffer");
            tracing::warn!(%error, "lanes could not be compared; trying again with the next tick");
        }
    }
}

impl Inner {
    /// Whether it was for this process to do, and went through.
    async fn reoffer_once(&self, cause: Cause, stop: &watch::Receiver<bool>) -> Result<bool, StoreError> {
        let leads = self.leads(Lead::Reoffer, self.settings.reoffer_every).await?;
        if !leads && cause != Cause::Death {
            return Ok(false);
        }
        let Some(lanes) = self.to_compare(cause).await? else { return Ok(false) };
        // One lane's damage must not hide the lanes behind it.
        let mut failed = Vec::new();
        for (lane, rows) in lanes {
            moved();
            if *stop.borrow() {
                return Ok(false);
            }
            failed.extend(self.offer_head(&lane, rows).await.err());
            if failed.len() == FAILING_MAX {
                break;
            }
        }
        failed.into_iter().next().map_or(Ok(true), Err)
    }

    /// Lanes, and how many rows of each. None if the lanes cannot say what they know.
    async fn to_compare(&self, cause: Cause) -> Result<Option<Vec<(LaneKey, usize)>>, StoreError> {
        let listed = if cause == Cause::Tick { LANES } else { usize::MAX };
        // Lanes that are away are rebuilt as a whole when they are back.
        let Ok(depths) = self.ports.lanes.depths(listed).await else { return Ok(None) };
        let known: BTreeSet<LaneKey> = depths.into_iter().map(|depth| depth.lane).collect();
        if cause == Cause::Tick {
            return Ok(Some(known.into_iter().map(|lane| (lane, HEAD)).collect()));
        }
        // Ticks pass by a lane that is empty again: what a whole batch left in it must come at once.
        let compared = |(lane, _): (LaneKey, u64)| {
            let rows = if known.contains(&lane) { HEAD } else { BATCH_JOBS_MAX };
            (lane, rows)
        };
        let stored = self.ports.store.ready_lanes().await?;
        Ok(Some(stored.into_iter().map(compared).collect()))
    }

    /// Offers the first jobs of a lane, so many at most.
    async fn offer_head(&self, lane: &LaneKey, rows: usize) -> Result<(), StoreError> {
        let (mut after, mut left) = (None, rows);
        while left > 0 {
            let page = left.min(self.settings.batch_max);
            let jobs = self.ports.store.ready(lane, after, page).await?;
            let more = jobs.len() == page;
            (after, left) = (jobs.last().map(|job| job.ready_key()).or(after), left - page);
            self.metrics.read_ready(jobs.len());
            self.offer(jobs.into_iter().map(Arc::new).collect()).await;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
