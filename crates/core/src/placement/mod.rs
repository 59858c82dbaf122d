//! Placement: which workers get the next jobs of a shape, and if none does, why.
//!
//! A decision must walk neither the workers that cannot take the job nor all those that can. So workers that fit are kept in
//! order of load in an index (a *bench* in local names), one for each distinct set of requirements that was used lately, and
//! a change of a worker updates only the indexes that contain it. Shapes share an index if no worker can tell them apart:
//! topics that the same workers serve, with equal requirements. So a hundred topics of one fleet cost as much as one.
//!
//! [`Roster::explain`] uses no index. It checks every worker for a person who asks, and thereby tests the indexes too.

mod advice;
mod candidate;
mod candidate_index;
mod crowd;
mod explain;
mod gate;
mod memory;
mod plan;
mod rank;
mod slots;
#[cfg(test)]
mod tests;
mod topic_offers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use candidate::{Candidate, Measure, Unavailable, Unready};
pub use crowd::WaitsFor;
pub use explain::{Obstacle, Placement, PoolLook, Refusal, WORKERS_SHOWN_MAX, WorkerLook};

use crate::ids::{PoolName, WorkerId};
use crate::lane::Shape;
use crate::pools::{DispatchMode, Overload, Routing};
use candidate_index::{Availability, CandidateIndexes, IndexId};
use crowd::Crowd;
use memory::{Bounds, Outlook};
use rank::Rank;
use slots::{Slab, SlabKey};
use topic_offers::{OfferId, TopicOffers};

/// The workers that an engine knows, each under its session `K`.
#[derive(Debug)]
pub struct Roster<K> {
    routing: Arc<Routing>,
    workers: Slab<RosterWorker<K>>,
    by_key: BTreeMap<K, SlabKey>,
    /// A worker's name is not unique: its old session may still exist beside the new one.
    by_name: BTreeMap<WorkerId, BTreeSet<SlabKey>>,
    crews: BTreeMap<PoolName, TopicOffers>,
    /// How many distinct lists of topics were seen in all pools; the source of `OfferId`s.
    offers: OfferId,
    benches: CandidateIndexes<K>,
    shapes: BTreeMap<Arc<Shape>, Outlook>,
    crowd: Crowd,
    bounds: Bounds,
    /// Counts dispatched jobs: the clock that "least recently" refers to.
    given: u64,
    /// Counts queries: the clock by which shapes are forgotten.
    asked: u64,
}

#[derive(Debug)]
struct RosterWorker<K> {
    key: K,
    candidate: Candidate,
    /// The overload limits of its pool.
    overload: Overload,
    dispatch: DispatchMode,
    /// When it last got a job, by `Roster::given`; 0 for never.
    given: u64,
    stand: Availability<K>,
    /// The indexes that contain the worker. May name dropped indexes; they are removed at the next change.
    benches: Vec<IndexId>,
}

impl<K: Ord + Clone> Roster<K> {
    pub fn new(routing: Arc<Routing>) -> Self {
        Self {
            routing,
            workers: Slab::default(),
            by_key: BTreeMap::new(),
            by_name: BTreeMap::new(),
            crews: BTreeMap::new(),
            offers: 0,
            benches: CandidateIndexes::default(),
            shapes: BTreeMap::new(),
            crowd: Crowd::default(),
            bounds: Bounds::default(),
            given: 0,
            asked: 0,
        }
    }

    /// The configuration by which workers are chosen.
    pub fn routing(&self) -> &Arc<Routing> {
        &self.routing
    }

    /// Applies a new configuration. The workers stay; routes and indexes of the old one are dropped and computed when
    /// needed.
    pub fn adopt(&mut self, routing: Arc<Routing>) {
        self.routing = routing;
        self.shapes.clear();
        self.benches = CandidateIndexes::default();
        self.crowd = Crowd::default();
        for (slot, worker) in self.workers.iter_mut() {
            worker.benches.clear();
            worker.overload = overload(&self.routing, &worker.candidate.profile.pool);
            worker.dispatch = dispatch(&self.routing, &worker.candidate.profile.pool);
            worker.stand = worker.stands(slot);
        }
    }

    /// Adds a worker, replacing one under the same key.
    pub fn insert(&mut self, key: K, candidate: Candidate) {
        self.remove(&key);
        let profile = candidate.profile.clone();
        let overload = overload(&self.routing, &profile.pool);
        let stand = Availability { rank: None, last: false, here: false, free: 0 };
        let dispatch = dispatch(&self.routing, &profile.pool);
        let worker = RosterWorker { key: key.clone(), candidate, overload, dispatch, given: 0, stand, benches: Vec::new() };
        let slot = self.workers.insert(worker);
        self.by_key.insert(key, slot);
        self.by_name.entry(profile.worker.clone()).or_default().insert(slot);
        let joined = self.crews.entry(profile.pool.clone()).or_default().join(&profile.topics, slot, self.offers);
        if joined.is_new {
            self.offers += 1;
            self.forget_served(&profile.pool, &profile.topics);
        }
        if let Some(worker) = self.workers.get_mut(slot) {
            worker.stand = worker.stands(slot);
            let pool = self.routing.pools.pool(&profile.pool);
            worker.benches = self.benches.seat(&profile, pool, joined.offer, &worker.stand);
        }
        self.forget_excess();
    }

    /// Removes a worker.
    pub fn remove(&mut self, key: &K) {
        let Some(slot) = self.by_key.remove(key) else { return };
        let Some(worker) = self.workers.remove(slot) else { return };
        for bench in &worker.benches {
            self.benches.leave(*bench, &worker.stand);
        }
        let profile = &worker.candidate.profile;
        if let Some(crew) = self.crews.get_mut(&profile.pool) {
            crew.leave(&profile.topics, slot);
            if crew.is_empty() {
                self.crews.remove(&profile.pool);
            }
        }
        if let Some(slots) = self.by_name.get_mut(&profile.worker) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.by_name.remove(&profile.worker);
            }
        }
    }

    /// Updates the state of a worker: its jobs, its load, whether it is attached. A worker with another profile is removed
    /// and added anew, because other indexes contain it.
    pub fn change(&mut self, key: &K, change: impl FnOnce(&mut Candidate)) {
        let Some(slot) = self.by_key.get(key).copied() else { return };
        let Some(worker) = self.workers.get_mut(slot) else { return };
        let (profile, active) = (worker.candidate.profile.clone(), worker.candidate.active);
        change(&mut worker.candidate);
        if !Arc::ptr_eq(&profile, &worker.candidate.profile) {
            let candidate = worker.candidate.clone();
            worker.candidate.profile = profile;
            return self.insert(key.clone(), candidate);
        }
        if worker.candidate.active > active {
            self.given += 1;
            worker.given = self.given;
        }
        let stand = worker.stands(slot);
        if stand != worker.stand {
            let before = std::mem::replace(&mut worker.stand, stand);
            let (benches, after) = (&mut self.benches, &worker.stand);
            worker.benches.retain(|bench| benches.move_on(*bench, &before, after));
        }
    }

    /// The pool in which the worker of this name has a free slot, whichever process dispatches to it.
    pub fn ready_in(&self, worker: &WorkerId) -> Option<&PoolName> {
        let mut sessions = self.by_name.get(worker)?.iter().filter_map(|slot| Some((*slot, self.workers.get(*slot)?)));
        let free =
            |(slot, worker): &(SlabKey, &RosterWorker<K>)| worker.healthy(*slot).is_some_and(|rank| rank.room(false) > 0);
        sessions.find(free).map(|(_, worker)| &worker.candidate.profile.pool)
    }

    /// Jobs that a worker of this process may get now: its free slots, and with `ahead` also room to wait.
    pub fn room(&self, key: &K, ahead: bool) -> u32 {
        let worker = self.by_key.get(key).and_then(|slot| self.workers.get(*slot));
        worker.and_then(|worker| worker.stand.rank.as_ref()).map_or(0, |rank| rank.room(ahead))
    }

    /// Whether other processes compare this worker with theirs and therefore need its load.
    pub fn is_compared(&self, key: &K) -> bool {
        let worker = self.by_key.get(key).and_then(|slot| self.workers.get(*slot));
        worker.is_some_and(|worker| worker.dispatch == DispatchMode::Direct || worker.overload.is_set())
    }

    pub fn get(&self, key: &K) -> Option<&Candidate> {
        Some(&self.workers.get(*self.by_key.get(key)?)?.candidate)
    }
}

impl<K: Ord + Clone> RosterWorker<K> {
    fn stands(&self, slot: SlabKey) -> Availability<K> {
        let (here, free) = (self.candidate.is_here(), self.candidate.free(&self.overload));
        let elsewhere = self.candidate.is_elsewhere();
        // In a direct pool the least loaded worker of the fleet is chosen. In a queue pool every process claims what its own
        // workers have room for; workers of other processes only come before its own ones that are over a limit.
        let compared = match self.dispatch {
            DispatchMode::Direct => true,
            DispatchMode::Queue => !elsewhere || self.overload.is_set() && self.candidate.over(&self.overload).is_none(),
        };
        let rank = self.ranked(slot).filter(|_| compared);
        let last = rank.as_ref().is_some_and(|rank| rank.over || elsewhere && self.dispatch == DispatchMode::Queue);
        Availability { rank, last, here, free }
    }

    /// Its rank if it can take a job and is over no limit, whichever process dispatches to it.
    fn healthy(&self, slot: SlabKey) -> Option<Rank<K>> {
        self.ranked(slot).filter(|rank| !rank.over)
    }

    fn ranked(&self, slot: SlabKey) -> Option<Rank<K>> {
        if !self.candidate.may_hold(&self.overload) {
            return None;
        }
        Some(Rank {
            over: self.candidate.over(&self.overload).is_some(),
            score: self.candidate.score(),
            active: self.candidate.active,
            capacity: self.candidate.capacity,
            limit: self.candidate.limit(&self.overload),
            elsewhere: self.candidate.is_elsewhere(),
            given: self.given,
            key: self.key.clone(),
            slot,
        })
    }
}

fn overload(routing: &Routing, pool: &PoolName) -> Overload {
    routing.pools.pool(pool).map(|pool| pool.overload).unwrap_or_default()
}

fn dispatch(routing: &Routing, pool: &PoolName) -> DispatchMode {
    routing.pools.pool(pool).map(|pool| pool.dispatch).unwrap_or_default()
}
