//! The re-offer loop: how lost knowledge comes back.
//!
//! A row that no index knows is never claimed, so it sinks to the head of its lane. Comparing heads is therefore enough,
//! and costs one short page per lane however long the backlog is. All lanes of the Store are compared more rarely, and when a
//! gateway died that may have stored what it did not live to offer.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::lane::LaneKey;
use lockgate_core::limits::BATCH_JOBS_MAX;
use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, wait};
use crate::health::{jittered, progress};
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
enum CompareCause {
    /// The lanes may have missed something: those that have jobs are compared.
    Tick,
    /// They may have missed a whole lane: all of the Store's are compared.
    Sweep,
    /// Like `Tick`, at once, because this process saw another one die; the leader of the loop need not know.
    Death,
}

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let Settings { reoffer_every, reoffer_all_every, .. } = inner.settings;
    let mut all_at = Instant::now() + reoffer_all_every;
    let mut rests_until = Instant::now();
    // A process died, and the rows it did not offer were not offered again yet.
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
        if !wait(&mut stop, jittered(reoffer_every), death).await {
            return;
        }
        // Ticks come up to a tenth early, and the next one is too late.
        let all = Instant::now() + reoffer_every / 10 >= all_at;
        let cause = match (all, owed) {
            (false, _) => CompareCause::Tick,
            (true, false) => CompareCause::Sweep,
            (true, true) => CompareCause::Death,
        };
        let compared = inner.reoffer_once(cause, &stop).await;
        if cause != CompareCause::Tick {
            let now = Instant::now();
            if matches!(compared, Ok(true)) {
                (owed, all_at, rests_until) = (false, now + reoffer_all_every, now + reoffer_every);
            } else {
                all_at = now + reoffer_every * AGAIN_AFTER;
            }
        }
        if let Err(error) = compared {
            inner.not_compared(&error);
        }
    }
}

impl Inner {
    fn not_compared(&self, error: &StoreError) {
        self.health.store_failed(error);
        self.metrics.loops.failed("reoffer");
        tracing::warn!(%error, "lanes could not be compared; trying again with the next tick");
    }

    /// Whether it was for this process to do, and went through as far as it can: damage is no less at the next try.
    async fn reoffer_once(&self, cause: CompareCause, stop: &watch::Receiver<bool>) -> Result<bool, StoreError> {
        let leads = self.leadership.leads(Lead::Reoffer, self.settings.reoffer_every).await?;
        if !leads && cause != CompareCause::Death {
            return Ok(false);
        }
        let Some(lanes) = self.to_compare(cause).await? else { return Ok(false) };
        let mut failing = 0;
        for (lane, rows) in lanes {
            progress();
            if *stop.borrow() {
                return Ok(false);
            }
            let Err(error) = self.offer_head(&lane, rows).await else { continue };
            if !error.is_damage() {
                failing += 1;
            }
            if failing == FAILING_MAX {
                return Err(error);
            }
            // One lane must not hide the lanes behind it.
            self.not_compared(&error);
        }
        Ok(failing == 0)
    }

    /// Lanes, and how many rows of each. None if the lanes cannot say what they know.
    async fn to_compare(&self, cause: CompareCause) -> Result<Option<Vec<(LaneKey, usize)>>, StoreError> {
        let listed = if cause == CompareCause::Tick { LANES } else { usize::MAX };
        // Lanes that are away are rebuilt as a whole when they are back.
        let Ok(depths) = self.ports.lanes.depths(listed).await else { return Ok(None) };
        if cause == CompareCause::Tick {
            return Ok(Some(depths.into_iter().map(|depth| (depth.lane, HEAD)).collect()));
        }
        let known: BTreeMap<LaneKey, u64> = depths.into_iter().map(|depth| (depth.lane, depth.waiting)).collect();
        // Ticks pass by a lane that is empty again: where more than a head is missing, a whole batch may be, and must come at once.
        let compared = |(lane, stored): (LaneKey, u64)| {
            let missing = stored.saturating_sub(known.get(&lane).copied().unwrap_or(0));
            let rows = if missing > HEAD as u64 { BATCH_JOBS_MAX } else { HEAD };
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
            // Due by the Store's clock: if that of this process is behind, others need not wait for it.
            self.offer(jobs.into_iter().map(Arc::new).collect()).await;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
