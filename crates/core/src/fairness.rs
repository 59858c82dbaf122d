//! Fair scheduling: two-level deficit round robin over priorities and then tenants.
//!
//! A round has as many turns as the weights of the priorities add up to: 64 critical, 16 high, 4 default and 1 low make 85
//! by default. A priority without eligible work passes its turn and keeps its credit for the round. The bounds: any priority
//! with eligible work is served within the turns of one round (L-2), and a tenant with eligible work within as many claims
//! of its priority as the other active tenants weigh together, plus one (L-3). With strict priorities only the second holds:
//! a priority waits for as long as a higher one has work.

use std::collections::{BTreeMap, BTreeSet};

use crate::lane::Priority;
use crate::pools::PriorityShares;

/// Turns in a round with the default weights.
pub const ROUND: u32 = 85;

const _: () = {
    let [critical, high, default, low] = Priority::ALL;
    assert!(critical.weight() + high.weight() + default.weight() + low.weight() == ROUND);
};

/// The credits of the four priorities in the current round.
#[derive(Clone, Debug)]
pub struct PriorityTurns {
    shares: PriorityShares,
    credit: [u32; 4],
    /// For each priority, since when it has waited without credit while others used up the round. The one that waited
    /// longest goes first in the next round. Otherwise a priority that spent its credit early would wait for the rest of
    /// this round and for most of the next, almost twice the bound.
    passed: [Option<u64>; 4],
    /// Turns so far.
    count: u64,
}

impl Default for PriorityTurns {
    fn default() -> Self {
        Self::new(PriorityShares::Weights(Priority::ALL.map(Priority::weight)))
    }
}

impl PriorityTurns {
    pub fn new(shares: PriorityShares) -> Self {
        // A weight of 0 would starve its priority, so every weight is at least 1.
        let shares = match shares {
            PriorityShares::Weights(weights) => PriorityShares::Weights(weights.map(|weight| weight.max(1))),
            PriorityShares::Strict => PriorityShares::Strict,
        };
        let mut turns = Self { shares, credit: [0; 4], passed: [None; 4], count: 0 };
        turns.begin_round();
        turns
    }

    /// Picks the next priority among those with eligible work and charges it one turn.
    pub fn take(&mut self, eligible: impl Fn(Priority) -> bool) -> Option<Priority> {
        let eligible = Priority::ALL.map(eligible);
        let most_urgent = Priority::ALL.into_iter().find(|p| eligible[*p as usize])?;
        if self.shares == PriorityShares::Strict {
            return Some(most_urgent);
        }
        let next = self.next(eligible).or_else(|| {
            self.begin_round();
            self.next(eligible)
        })?;
        self.count += 1;
        for p in Priority::ALL.map(|p| p as usize) {
            if eligible[p] && self.credit[p] == 0 {
                self.passed[p].get_or_insert(self.count);
            }
        }
        self.passed[next as usize] = None;
        self.credit[next as usize] -= 1;
        Some(next)
    }

    fn begin_round(&mut self) {
        if let PriorityShares::Weights(weights) = self.shares {
            self.credit = weights;
        }
    }

    /// First the priorities that waited without credit, the longest waiting one before the others; then by urgency.
    fn next(&self, eligible: [bool; 4]) -> Option<Priority> {
        let can = |p: &Priority| eligible[*p as usize] && self.credit[*p as usize] > 0;
        let owed = Priority::ALL.into_iter().filter(can).filter_map(|p| Some((self.passed[p as usize]?, p))).min();
        owed.map(|(_, p)| p).or_else(|| Priority::ALL.into_iter().find(can))
    }
}

/// Members that take turns, each with work of one or more kinds. A turn is asked for by kind, so members whose work no
/// worker can take now cost nothing and keep their position.
///
/// Rejected: one queue of members, walked until one can use the turn. Members that cannot would gather at its front, and
/// every turn would walk past all of them.
///
/// A member may have a weight above 1: it keeps its position until it was served that many times.
#[derive(Clone, Debug)]
pub struct TenantRing<M, K> {
    /// The position at the back, for the next member that joins or was served.
    back: u64,
    members: BTreeMap<M, Member<K>>,
    by_kind: BTreeMap<K, BTreeSet<(u64, M)>>,
}

#[derive(Clone, Debug)]
struct Member<K> {
    place: u64,
    /// Turns that it took at this position.
    served: u32,
    kinds: Vec<K>,
}

impl<M, K> Default for TenantRing<M, K> {
    fn default() -> Self {
        Self { back: 0, members: BTreeMap::new(), by_kind: BTreeMap::new() }
    }
}

impl<M: Copy + Ord, K: Copy + Ord> TenantRing<M, K> {
    /// The member has work of this kind from now on. A member that had none joins at the back.
    pub fn join(&mut self, member: M, kind: K) {
        let back = self.back;
        let entry = self.members.entry(member).or_insert_with(|| Member { place: back, served: 0, kinds: Vec::new() });
        if entry.place == back {
            self.back += 1;
        }
        if !entry.kinds.contains(&kind) {
            entry.kinds.push(kind);
            self.by_kind.entry(kind).or_default().insert((entry.place, member));
        }
    }

    /// The member has no more work of this kind.
    pub fn leave(&mut self, member: M, kind: K) {
        let Some(entry) = self.members.get_mut(&member) else { return };
        entry.kinds.retain(|k| *k != kind);
        let place = entry.place;
        if entry.kinds.is_empty() {
            self.members.remove(&member);
        }
        if let Some(queue) = self.by_kind.get_mut(&kind) {
            queue.remove(&(place, member));
            if queue.is_empty() {
                self.by_kind.remove(&kind);
            }
        }
    }

    /// The member whose turn it is among those with work of any of these kinds.
    pub fn first(&self, kinds: impl IntoIterator<Item = K>) -> Option<M> {
        let heads = kinds.into_iter().filter_map(|kind| self.by_kind.get(&kind)?.first());
        heads.min().map(|(_, member)| *member)
    }

    /// Counts a turn of the member, and moves it to the back once it has had as many as its weight. Returns whether it
    /// moved.
    pub fn served(&mut self, member: M, weight: u32) -> bool {
        let Some(entry) = self.members.get_mut(&member) else { return false };
        entry.served += 1;
        if entry.served < weight {
            return false;
        }
        entry.served = 0;
        let before = std::mem::replace(&mut entry.place, self.back);
        self.back += 1;
        for kind in &entry.kinds {
            if let Some(queue) = self.by_kind.get_mut(kind) {
                queue.remove(&(before, member));
                queue.insert((entry.place, member));
            }
        }
        true
    }

    /// The kinds of work that a member has.
    pub fn kinds_of(&self, member: M) -> &[K] {
        self.members.get(&member).map_or(&[], |entry| &entry.kinds)
    }

    /// Whether any member has work of this kind.
    pub fn has(&self, kind: K) -> bool {
        self.by_kind.contains_key(&kind)
    }
}

#[cfg(test)]
mod tests;
