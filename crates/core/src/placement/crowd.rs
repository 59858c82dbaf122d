//! What jobs wait for: a slot, a worker that fits, or anybody at all.
//!
//! Only those that wait for a slot make others wait. How many slots are free is counted on the benches, so a look costs what
//! there are of shapes and workers, and whoever asks for a slot costs a lookup.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Roster;
use super::candidate_index::IndexId;
use crate::ids::PoolName;
use crate::lane::Shape;

/// What jobs of one shape wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// There are as many free slots as jobs: they are about to be taken.
    Nothing,
    /// Whoever fits is busy.
    Slot,
    /// Somebody works there, but nobody that fits.
    Fit,
    /// Nobody works in any pool that may take them, or those pools are closed.
    Anyone,
}

/// What the latest look found. It holds until the next.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Where more wait than there are free slots. A slot that becomes free there is theirs.
    benches: BTreeSet<IndexId>,
    /// How much of its own limit a pool has left, where it has one.
    left: BTreeMap<PoolName, u64>,
}

impl<K: Ord + Clone> Roster<K> {
    /// Looks at all shapes with claimable jobs, and how many jobs each has.
    pub fn look_over(&mut self, waiting: &[(Arc<Shape>, u64)]) -> Vec<WaitsFor> {
        let manned = self.count_by_pool();
        waiting.iter().map(|(shape, jobs)| self.waits_for(shape, *jobs, &manned)).collect()
    }

    /// Whether more than `taken` slots are free for the shape that nobody waits for.
    pub fn has_slot(&mut self, shape: &Arc<Shape>, taken: u64) -> bool {
        let mut stops = self.stops(shape);
        stops.retain(|(_, bench)| !self.crowd.benches.contains(bench));
        self.free_at(&stops) > taken
    }

    fn waits_for(&mut self, shape: &Arc<Shape>, jobs: u64, manned: &BTreeSet<PoolName>) -> WaitsFor {
        let stops = self.stops(shape);
        let here = |id: IndexId| self.benches.get(id).is_some_and(|bench| bench.here > 0);
        if !stops.iter().any(|(_, bench)| here(*bench)) {
            return if stops.iter().any(|(pool, _)| manned.contains(pool)) { WaitsFor::Fit } else { WaitsFor::Anyone };
        }
        if jobs <= self.free_at(&stops) {
            return WaitsFor::Nothing;
        }
        self.crowd.benches.extend(stops.into_iter().map(|(_, bench)| bench));
        WaitsFor::Slot
    }

    /// Begins a look: which pools have somebody who works.
    fn count_by_pool(&mut self) -> BTreeSet<PoolName> {
        let bounded = |name: &PoolName| self.routing.pools.pool(name).and_then(|pool| pool.max_concurrent);
        let (mut manned, mut left) = (BTreeSet::new(), BTreeMap::new());
        for worker in self.workers.values() {
            let pool = &worker.candidate.profile.pool;
            if worker.stand.here && !manned.contains(pool) {
                manned.insert(pool.clone());
            }
            if let Some(max) = bounded(pool) {
                let left = left.entry(pool.clone()).or_insert_with(|| u64::from(max));
                *left = left.saturating_sub(u64::from(worker.candidate.active));
            }
        }
        self.crowd = Crowd { benches: BTreeSet::new(), left };
        manned
    }

    fn free_at(&self, stops: &[(PoolName, IndexId)]) -> u64 {
        let free = |(pool, bench): &(PoolName, IndexId)| {
            let free = self.benches.get(*bench).map_or(0, |bench| bench.free);
            self.crowd.left.get(pool).map_or(free, |left| free.min(*left))
        };
        stops.iter().map(free).sum()
    }

    /// The open pools of a shape, with its bench in each.
    fn stops(&mut self, shape: &Arc<Shape>) -> Vec<(PoolName, IndexId)> {
        self.ask(shape, |outlook| {
            let stops = outlook.way.as_ref().map_or(&[][..], |way| &way.stops);
            stops.iter().map(|stop| (stop.pool.clone(), stop.bench)).collect()
        })
    }
}
