//! Demand against supply: whether the jobs of a shape wait for a free slot, for a worker that fits, or for any worker at
//! all.
//!
//! Only shapes that wait for a slot make later jobs wait. Free slots are counted in the candidate indexes, so an update
//! costs as much as there are shapes and workers, and a query costs one lookup.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Roster;
use super::candidate_index::IndexId;
use crate::ids::PoolName;
use crate::lane::Shape;

/// What the jobs of one shape wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Nothing: there are as many free slots as jobs, which are about to be claimed.
    Nothing,
    /// All workers that fit are busy.
    Slot,
    /// Workers are attached in the shape's pools, but none that fits.
    Fit,
    /// No worker is attached in any pool of the shape, or its pools are closed.
    Anyone,
}

/// The outcome of the latest update, valid until the next.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Indexes with more waiting jobs than free slots. A slot that becomes free there belongs to these jobs.
    benches: BTreeSet<IndexId>,
    /// For each pool with a limit of its own, how many more jobs it may hold.
    left: BTreeMap<PoolName, u64>,
}

impl<K: Ord + Clone> Roster<K> {
    /// Updates the demand from all shapes with claimable jobs and the number of jobs of each.
    pub fn look_over(&mut self, waiting: &[(Arc<Shape>, u64)]) -> Vec<WaitsFor> {
        let manned = self.count_by_pool();
        waiting.iter().map(|(shape, jobs)| self.waits_for(shape, *jobs, &manned)).collect()
    }

    /// Whether more than `taken` slots that fit the shape are free and not owed to waiting jobs.
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

    /// Starts an update: finds the pools with attached workers.
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

    /// The open pools of a shape, with its index in each.
    fn stops(&mut self, shape: &Arc<Shape>) -> Vec<(PoolName, IndexId)> {
        self.ask(shape, |outlook| {
            let stops = outlook.way.as_ref().map_or(&[][..], |way| &way.stops);
            stops.iter().map(|stop| (stop.pool.clone(), stop.bench)).collect()
        })
    }
}
