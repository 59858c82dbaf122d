//! The order in which ready workers are chosen.

use std::cmp::Ordering;

use super::slots::SlabKey;

/// Where a ready worker stands among others. The smallest is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rank<K> {
    /// It is over a limit of its pool, and takes what others have no place for.
    pub(super) over: bool,
    pub(super) score: u64,
    pub(super) active: u32,
    pub(super) capacity: u32,
    /// Jobs it may hold before it counts as full or overloaded; always more than `active`.
    pub(super) limit: u32,
    /// Another process gives it jobs: a place with it is one that is left alone here.
    pub(super) elsewhere: bool,
    pub(super) given: u64,
    pub(super) key: K,
    pub(super) slot: SlabKey,
}

impl<K: Clone> Rank<K> {
    /// How the worker stands once it holds one job more, if it may then hold another.
    pub(super) fn after_one(&self, given: u64, ahead: bool) -> Option<Self> {
        let active = self.active + 1;
        let score = self.score + super::candidate::SCORE_OF_A_JOB;
        (self.room(ahead) > 1).then(|| Self { score, active, given, ..self.clone() })
    }
}

impl<K> Rank<K> {
    /// Jobs it may be given: beyond its slots only with `ahead`.
    pub(super) fn room(&self, ahead: bool) -> u32 {
        let limit = if ahead { self.limit } else { self.limit.min(self.capacity) };
        limit.saturating_sub(self.active)
    }

    /// `active / capacity` of both, compared without a division.
    fn cmp_share(&self, other: &Self) -> Ordering {
        let ours = u64::from(self.active) * u64::from(other.capacity);
        ours.cmp(&(u64::from(other.active) * u64::from(self.capacity)))
    }
}

impl<K: Ord> Ord for Rank<K> {
    /// The key decides last between workers. What follows it only tells two ranks of one worker apart, as `Eq` does.
    fn cmp(&self, other: &Self) -> Ordering {
        // A place beyond the slots is a place to wait in.
        let waits = |rank: &Self| rank.active >= rank.capacity;
        (self.over.cmp(&other.over))
            .then_with(|| waits(self).cmp(&waits(other)))
            .then_with(|| self.score.cmp(&other.score))
            .then_with(|| self.cmp_share(other))
            // Of two workers that are as loaded every process may give a job to its own: one of them claims it. If each left
            // it to the other, it would wait.
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
