//! Whose turn it is: two-level deficit round robin, priority first, then tenant.
//!
//! A round of priorities has as many turns as their weights together: 64 critical, 16 high, 4 default and 1 low make 85
//! unless configured. A priority without eligible work yields its turn and keeps its credit for the round. The bounds are:
//! any priority with eligible work is served within the turns of one round (L-2), and a tenant with eligible work within as
//! many claims of its priority as the other active tenants weigh together, and one (L-3). With strict priorities only the
//! second holds: a priority waits for as long as a higher one has work.

use std::collections::{BTreeMap, BTreeSet};

use crate::lane::Priority;
use crate::pools::PriorityShares;

/// Turns in a round of the weights that hold unless configured.
pub const ROUND: u32 = 85;

const _: () = {
    let [critical, high, default, low] = Priority::ALL;
    assert!(critical.weight() + high.weight() + default.weight() + low.weight() == ROUND);
};

/// Credits of the four priorities in the current round.
#[derive(Clone, Debug)]
pub struct PriorityTurns {
    shares: PriorityShares,
    credit: [u32; 4],
    /// Since when a priority has waited without credit while others used up the round. Whoever did so longest goes first
    /// in the next one: a priority that spent its credit early would otherwise wait for the rest of this round and for
    /// most of the next, almost twice the bound.
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
        // Without a turn in the round a priority would never be served: what is asked for is at least one.
        let shares = match shares {
            PriorityShares::Weights(weights) => PriorityShares::Weights(weights.map(|weight| weight.max(1))),
            PriorityShares::Strict => PriorityShares::Strict,
        };
        let mut turns = Self { shares, credit: [0; 4], passed: [None; 4], count: 0 };
        turns.begin_round();
        turns
    }

    /// Picks the next priority among those that have eligible work and charges it one turn.
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

    /// First those that were passed over, the one that waited longest before the others; then by urgency.
    fn next(&self, eligible: [bool; 4]) -> Option<Priority> {
        let can = |p: &Priority| eligible[*p as usize] && self.credit[*p as usize] > 0;
        let owed = Priority::ALL.into_iter().filter(can).filter_map(|p| Some((self.passed[p as usize]?, p))).min();
        owed.map(|(_, p)| p).or_else(|| Priority::ALL.into_iter().find(can))
    }
}

/// Members that take turns, each with work of one or more kinds. A turn is asked for by kind, so members whose work
/// nobody can take now cost nothing and keep their place.
///
/// Rejected: one queue of members, walked until one can use the turn. Members that cannot gather at its front, and every
/// turn walks past all of them.
///
/// A member may weigh more than one: it keeps its place until it was served as often as it weighs.
#[derive(Clone, Debug)]
pub struct TenantRing<M, K> {
    /// Place at the back, given to the next member that joins or was served.
    back: u64,
    members: BTreeMap<M, Member<K>>,
    by_kind: BTreeMap<K, BTreeSet<(u64, M)>>,
}

#[derive(Clone, Debug)]
struct Member<K> {
    place: u64,
    /// Turns it had at this place.
    served: u32,
    kinds: Vec<K>,
}

impl<M, K> Default for TenantRing<M, K> {
    fn default() -> Self {
        Self { back: 0, members: BTreeMap::new(), by_kind: BTreeMap::new() }
    }
}

impl<M: Copy + Ord, K: Copy + Ord> TenantRing<M, K> {
    /// The member has work of this kind from now on. A member that had none waits for everyone already in the ring.
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

    /// Whose turn it is among the members with work of any of these kinds.
    pub fn first(&self, kinds: impl IntoIterator<Item = K>) -> Option<M> {
        let heads = kinds.into_iter().filter_map(|kind| self.by_kind.get(&kind)?.first());
        heads.min().map(|(_, member)| *member)
    }

    /// The member had a turn. When these were as many as it weighs it moves to the back. Whether it moved.
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

    /// The kinds of work a member has.
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
