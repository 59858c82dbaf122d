//! Whose turn it is: two-level deficit round robin, priority first, then tenant.
//!
//! A round has 85 turns: 64 critical, 16 high, 4 default, 1 low. A priority without eligible work yields its turn and
//! keeps its credit for the round. The bounds are: any priority with eligible work is served within 85 claims (L-2), and a tenant
//! with eligible work within as many claims of its priority as there are active tenants in it (L-3).

use std::collections::{BTreeMap, BTreeSet};

use crate::lane::Priority;

/// Turns in a round.
pub const ROUND: u32 = 85;

const _: () = {
    let [critical, high, default, low] = Priority::ALL;
    assert!(critical.weight() + high.weight() + default.weight() + low.weight() == ROUND);
};

/// Credits of the four priorities in the current round.
#[derive(Clone, Debug)]
pub struct PriorityTurns {
    credit: [u32; 4],
    /// Waited while others used up the round. Goes first in the next one: a priority that spent its credit early would
    /// otherwise wait for the rest of this round and for most of the next, almost twice the bound.
    passed: [bool; 4],
}

impl Default for PriorityTurns {
    fn default() -> Self {
        Self { credit: Priority::ALL.map(Priority::weight), passed: [false; 4] }
    }
}

impl PriorityTurns {
    /// Picks the next priority among those that have eligible work and charges it one turn.
    pub fn take(&mut self, eligible: impl Fn(Priority) -> bool) -> Option<Priority> {
        let eligible = Priority::ALL.map(eligible);
        if eligible == [false; 4] {
            return None;
        }
        let next = self.next(eligible).or_else(|| {
            self.credit = Priority::ALL.map(Priority::weight);
            self.next(eligible)
        })?;
        for p in Priority::ALL.map(|p| p as usize) {
            self.passed[p] |= eligible[p] && self.credit[p] == 0;
        }
        self.passed[next as usize] = false;
        self.credit[next as usize] -= 1;
        Some(next)
    }

    /// First those that were passed over, the lowest before the others since it waited longest; then by urgency.
    fn next(&self, eligible: [bool; 4]) -> Option<Priority> {
        let can = |p: &Priority| eligible[*p as usize] && self.credit[*p as usize] > 0;
        let owed = Priority::ALL.into_iter().rev().find(|p| can(p) && self.passed[*p as usize]);
        owed.or_else(|| Priority::ALL.into_iter().find(can))
    }
}

/// Members that take turns, each with work of one or more kinds. A turn is asked for by kind, so members whose work
/// nobody can take now cost nothing and keep their place.
///
/// Rejected: one queue of members, walked until one can use the turn. Members that cannot gather at its front, and every
/// turn walks past all of them.
#[derive(Clone, Debug)]
pub struct Ring<M, K> {
    /// Place at the back, given to the next member that joins or was served.
    back: u64,
    members: BTreeMap<M, Member<K>>,
    by_kind: BTreeMap<K, BTreeSet<(u64, M)>>,
}

#[derive(Clone, Debug)]
struct Member<K> {
    place: u64,
    kinds: Vec<K>,
}

impl<M, K> Default for Ring<M, K> {
    fn default() -> Self {
        Self { back: 0, members: BTreeMap::new(), by_kind: BTreeMap::new() }
    }
}

impl<M: Copy + Ord, K: Copy + Ord> Ring<M, K> {
    /// The member has work of this kind from now on. A member that had none waits for everyone already in the ring.
    pub fn join(&mut self, member: M, kind: K) {
        let back = self.back;
        let entry = self.members.entry(member).or_insert_with(|| Member { place: back, kinds: Vec::new() });
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

    /// Moves the member that had its turn to the back.
    pub fn served(&mut self, member: M) {
        let Some(entry) = self.members.get_mut(&member) else { return };
        let before = std::mem::replace(&mut entry.place, self.back);
        self.back += 1;
        for kind in &entry.kinds {
            if let Some(queue) = self.by_kind.get_mut(kind) {
                queue.remove(&(before, member));
                queue.insert((entry.place, member));
            }
        }
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
mod tests {
    use super::*;

    #[test]
    fn low_is_served_once_in_85_claims_of_a_steady_critical_stream() {
        let mut turns = PriorityTurns::default();
        let both = |p| matches!(p, Priority::Critical | Priority::Low);
        let served: Vec<Priority> = (0..650).filter_map(|_| turns.take(both)).collect();
        let longest_gap = served.split(|p| *p == Priority::Low).map(<[_]>::len).max();
        assert!(longest_gap <= Some(84), "{longest_gap:?}");
        assert_eq!(served.iter().filter(|p| **p == Priority::Low).count(), 10);
    }

    #[test]
    fn a_full_round_follows_the_weights() {
        let mut turns = PriorityTurns::default();
        let mut counts = [0; 4];
        for _ in 0..85 {
            if let Some(p) = turns.take(|_| true) {
                counts[p as usize] += 1;
            }
        }
        assert_eq!(counts, [64, 16, 4, 1]);
    }

    #[test]
    fn a_fresh_critical_job_is_first() {
        let mut turns = PriorityTurns::default();
        for _ in 0..1_000 {
            assert_eq!(turns.take(|p| p == Priority::Low), Some(Priority::Low));
        }
        assert_eq!(turns.take(|_| true), Some(Priority::Critical));
    }

    #[test]
    fn a_priority_that_spent_its_credit_early_still_waits_at_most_one_round() {
        let mut turns = PriorityTurns::default();
        assert_eq!(turns.take(|p| p == Priority::Low), Some(Priority::Low));
        let until_low = (1..).find(|_| turns.take(|_| true) == Some(Priority::Low));
        assert_eq!(until_low, Some(ROUND));
    }

    proptest::proptest! {
        /// L-2 under any pattern of work coming and going.
        #[test]
        fn whoever_has_work_is_served_within_a_round(pattern in proptest::collection::vec((0u8..16, 1usize..100), 1..40)) {
            let mut turns = PriorityTurns::default();
            let mut waited = [0; 4];
            for (eligible, claims) in pattern {
                let has_work = |p: Priority| eligible & (1 << p as u8) != 0;
                for _ in 0..claims {
                    let served = turns.take(has_work);
                    for p in Priority::ALL {
                        let waits = has_work(p) && served != Some(p);
                        waited[p as usize] = if waits { waited[p as usize] + 1 } else { 0 };
                        proptest::prop_assert!(waited[p as usize] < ROUND, "{p} waited {waited:?}");
                    }
                }
            }
        }
    }

    fn turn(ring: &mut Ring<&'static str, u8>, kinds: &[u8]) -> Option<&'static str> {
        let member = ring.first(kinds.iter().copied())?;
        ring.served(member);
        Some(member)
    }

    #[test]
    fn tenants_take_turns_and_those_that_cannot_keep_their_place() {
        let mut ring = Ring::default();
        for (tenant, kind) in [("a", 1), ("b", 2), ("c", 1)] {
            ring.join(tenant, kind);
        }
        let order: Vec<&str> = (0..5).filter_map(|_| turn(&mut ring, &[1])).collect();
        assert_eq!(order, ["a", "c", "a", "c", "a"]);
        assert_eq!(turn(&mut ring, &[1, 2]), Some("b"));
        assert_eq!(turn(&mut ring, &[1, 2]), Some("c"));
    }

    #[test]
    fn a_newcomer_waits_for_everyone_already_there() {
        let mut ring = Ring::default();
        ring.join("a", 1);
        ring.join("b", 1);
        assert_eq!(turn(&mut ring, &[1]), Some("a"));
        ring.join("c", 1);
        assert_eq!(turn(&mut ring, &[1]), Some("b"));
        assert_eq!(turn(&mut ring, &[1]), Some("a"));
        assert_eq!(turn(&mut ring, &[1]), Some("c"));
    }

    #[test]
    fn a_second_kind_of_work_gives_no_second_turn() {
        let mut ring = Ring::default();
        ring.join("a", 1);
        ring.join("b", 1);
        ring.join("a", 2);
        assert_eq!(turn(&mut ring, &[1, 2]), Some("a"));
        assert_eq!(turn(&mut ring, &[1, 2]), Some("b"));
        assert_eq!(ring.kinds_of("a"), [1, 2]);
    }

    #[test]
    fn a_member_without_work_has_no_turn() {
        let mut ring = Ring::default();
        ring.join("a", 1);
        ring.leave("a", 1);
        ring.leave("a", 1);
        assert!(!ring.has(1));
        assert_eq!(ring.first([1]), None);
        assert_eq!(ring.kinds_of("a"), [0u8; 0]);
    }
}
