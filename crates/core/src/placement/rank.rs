//! The order in which available workers are chosen.

use std::cmp::Ordering;

use super::slots::SlabKey;

/// The position of an available worker. The smallest rank is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rank<K> {
    /// The worker is over a limit of its pool and gets only what others have no room for.
    pub(super) over: bool,
    pub(super) score: u64,
    pub(super) active: u32,
    pub(super) capacity: u32,
    /// Jobs that it may hold before it counts as full or overloaded; always more than `active`.
    pub(super) limit: u32,
    /// Another process dispatches to the worker: a place on it is a job left to that process.
    pub(super) elsewhere: bool,
    pub(super) given: u64,
    pub(super) key: K,
    pub(super) slot: SlabKey,
}

impl<K: Clone> Rank<K> {
    /// The rank with one more job, if the worker may then hold another.
    pub(super) fn after_one(&self, given: u64, ahead: bool) -> Option<Self> {
        let active = self.active + 1;
        let score = self.score + super::candidate::SCORE_OF_A_JOB;
        (self.room(ahead) > 1).then(|| Self { score, active, given, ..self.clone() })
    }
}

impl<K> Rank<K> {
    /// Jobs that it may get: beyond its slots only with `ahead`.
    pub(super) fn room(&self, ahead: bool) -> u32 {
        let limit = if ahead { self.limit } else { self.limit.min(self.capacity) };
        limit.saturating_sub(self.active)
    }

    /// Compares `active / capacity` of both without a division.
    fn cmp_share(&self, other: &Self) -> Ordering {
        let ours = u64::from(self.active) * u64::from(other.capacity);
        ours.cmp(&(u64::from(other.active) * u64::from(self.capacity)))
    }
}

impl<K: Ord> Ord for Rank<K> {
    /// The key is the last criterion between workers. The fields after it only distinguish two ranks of one worker, as `Eq`
    /// does.
    fn cmp(&self, other: &Self) -> Ordering {
        // Beyond its slots a job would wait in the worker.
        let waits = |rank: &Self| rank.active >= rank.capacity;
        (self.over.cmp(&other.over))
            .then_with(|| waits(self).cmp(&waits(other)))
            .then_with(|| self.score.cmp(&other.score))
            .then_with(|| self.cmp_share(other))
            // Between equally loaded workers each process prefers its own, and one of them claims the job. If each left the
            // job to the other process, no process would claim it.
            .then_with(|| self.elsewhere.cmp(&other.elsewhere))
            .then_with(|| self.given.cmp(&other.given))
            .then_with(|| self.key.cmp(&other.key))
            .then_with(|| {
                let rest = |rank: &Self| (rank.active, rank.capacity, rank.limit, rank.slot);
                rest(self).cmp(&rest(other))
            })
    }
}

impl<K: Ord> PartialOrd for Rank<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
