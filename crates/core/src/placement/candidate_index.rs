//! An index of the workers of one pool that meet certain requirements, the least loaded first. Local names call it a bench.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rank::Rank;
use super::topic_offers::OfferId;
use crate::ids::PoolName;
use crate::lane::Shape;
use crate::pools::Pool;
use crate::worker::WorkerProfile;

/// Identifies an index. Never reused.
pub(super) type IndexId = u64;

/// The part of a shape that decides which workers fit. Every worker of the pool treats shapes with equal requirements alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requirements {
    pub(super) pool: PoolName,
    pub(super) offers: BTreeSet<OfferId>,
    /// Without the capabilities that every worker of the pool has.
    requires: BTreeSet<Arc<str>>,
    placement: BTreeMap<Arc<str>, Arc<str>>,
}

/// A worker's entry in its indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Availability<K> {
    /// The position in the order of choice; None while the worker may not get a job.
    pub(super) rank: Option<Rank<K>>,
    /// The worker is used only when no worker of this process has room.
    pub(super) last: bool,
    /// Whether the worker is attached, to this or another process.
    pub(super) here: bool,
    /// Its free slots, whichever process dispatches to it.
    pub(super) free: u32,
}

#[derive(Debug)]
pub(super) struct CandidateIndex<K> {
    need: Requirements,
    /// Workers that can take a job now.
    pub(super) ready: BTreeSet<Rank<K>>,
    /// Workers that get what those in `ready` have no room for: workers of other processes first, then workers of this
    /// process that are over a limit.
    pub(super) last: BTreeSet<Rank<K>>,
    /// How many workers fit, available or not.
    pub(super) fit: usize,
    /// How many of them are attached.
    pub(super) here: usize,
    /// How many free slots these have.
    pub(super) free: u64,
    /// How many remembered shapes use the index. It is dropped with the last one.
    users: usize,
}

#[derive(Debug)]
pub(super) struct CandidateIndexes<K> {
    by_id: BTreeMap<IndexId, CandidateIndex<K>>,
    by_need: BTreeMap<Requirements, IndexId>,
    made: IndexId,
    /// Entries of workers in all indexes together.
    seats: usize,
}

impl<K> Default for CandidateIndexes<K> {
    fn default() -> Self {
        Self { by_id: BTreeMap::new(), by_need: BTreeMap::new(), made: 0, seats: 0 }
    }
}

impl Requirements {
    pub(super) fn of(shape: &Shape, pool: &Pool, offers: BTreeSet<OfferId>) -> Self {
        Self {
            pool: pool.name.clone(),
            offers,
            requires: shape.requires.difference(&pool.capabilities).cloned().collect(),
            placement: shape.placement.clone(),
        }
    }

    /// Whether a worker that serves the topic meets the requirements.
    pub(super) fn is_met(&self, profile: &WorkerProfile, pool: Option<&Pool>) -> bool {
        profile.lacks_of(&self.requires, &self.placement, pool).next().is_none()
    }
}

impl<K: Ord + Clone> CandidateIndex<K> {
    fn ranks(&mut self, stand: &Availability<K>) -> &mut BTreeSet<Rank<K>> {
        if stand.last { &mut self.last } else { &mut self.ready }
    }

    fn count_in(&mut self, stand: &Availability<K>) {
        self.ranks(stand).extend(stand.rank.clone());
        self.here += usize::from(stand.here);
        self.free += u64::from(stand.free);
    }

    fn count_out(&mut self, stand: &Availability<K>) {
        if let Some(rank) = &stand.rank {
            self.ranks(stand).remove(rank);
        }
        self.here -= usize::from(stand.here);
        self.free -= u64::from(stand.free);
    }
}

impl<K: Ord + Clone> CandidateIndexes<K> {
    pub(super) fn get(&self, id: IndexId) -> Option<&CandidateIndex<K>> {
        self.by_id.get(&id)
    }

    pub(super) fn seats(&self) -> usize {
        self.seats
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The index for these requirements, if there is one, with one more user.
    pub(super) fn share(&mut self, need: &Requirements) -> Option<IndexId> {
        let id = *self.by_need.get(need)?;
        self.by_id.get_mut(&id)?.users += 1;
        Some(id)
    }

    /// The id that the next index will get.
    pub(super) fn next_id(&self) -> IndexId {
        self.made
    }

    /// A new index with one user and all workers that fit.
    pub(super) fn open(&mut self, need: Requirements, stands: &[Availability<K>]) -> IndexId {
        let id = self.made;
        self.made += 1;
        let fit = stands.len();
        self.seats += fit;
        self.by_need.insert(need.clone(), id);
        let mut bench =
            CandidateIndex { need, ready: BTreeSet::new(), last: BTreeSet::new(), fit, here: 0, free: 0, users: 1 };
        stands.iter().for_each(|stand| bench.count_in(stand));
        self.by_id.insert(id, bench);
        id
    }

    /// A remembered shape no longer uses the index.
    pub(super) fn release(&mut self, id: IndexId) {
        let Some(bench) = self.by_id.get_mut(&id) else { return };
        bench.users -= 1;
        if bench.users == 0 {
            self.seats -= bench.fit;
            self.by_need.remove(&bench.need);
            self.by_id.remove(&id);
        }
    }

    /// Adds a new worker to every index that it fits.
    pub(super) fn seat(
        &mut self,
        profile: &WorkerProfile,
        pool: Option<&Pool>,
        offer: OfferId,
        stand: &Availability<K>,
    ) -> Vec<IndexId> {
        let mut seated = Vec::new();
        for (id, bench) in &mut self.by_id {
            let need = &bench.need;
            if need.pool == profile.pool && need.offers.contains(&offer) && need.is_met(profile, pool) {
                bench.fit += 1;
                self.seats += 1;
                bench.count_in(stand);
                seated.push(*id);
            }
        }
        seated
    }

    pub(super) fn leave(&mut self, id: IndexId, stand: &Availability<K>) {
        if let Some(bench) = self.by_id.get_mut(&id) {
            bench.count_out(stand);
            bench.fit -= 1;
            self.seats -= 1;
        }
    }

    /// Updates a worker's entry. False if the index no longer exists.
    pub(super) fn move_on(&mut self, id: IndexId, before: &Availability<K>, after: &Availability<K>) -> bool {
        let Some(bench) = self.by_id.get_mut(&id) else { return false };
        bench.count_out(before);
        bench.count_in(after);
        true
    }
}
