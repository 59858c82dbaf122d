//! Bounds, in turns.

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

#[test]
fn equal_weights_take_turns_in_one_order() {
    let mut turns = PriorityTurns::new(PriorityShares::Weights([1; 4]));
    let served: Vec<Priority> = (0..12).filter_map(|_| turns.take(|_| true)).collect();
    assert_eq!(served, [Priority::ALL; 3].concat());
}

#[test]
fn a_weight_of_nothing_still_has_one_turn_in_a_round() {
    let mut turns = PriorityTurns::new(PriorityShares::Weights([3, 0, 0, 0]));
    let served: Vec<Priority> = (0..6).filter_map(|_| turns.take(|_| true)).collect();
    assert_eq!(served[..3], [Priority::Critical; 3]);
    assert_eq!(served[3..], [Priority::High, Priority::Default, Priority::Low]);
}

#[test]
fn strict_priorities_serve_the_most_urgent_however_often_it_was() {
    let mut turns = PriorityTurns::new(PriorityShares::Strict);
    for _ in 0..1_000 {
        assert_eq!(turns.take(|p| p != Priority::Critical), Some(Priority::High));
    }
    assert_eq!(turns.take(|p| p == Priority::Low), Some(Priority::Low));
    assert_eq!(turns.take(|_| false), None);
}

/// L-2 under a pattern of work coming and going.
fn nobody_waits_longer_than_a_round(weights: [u32; 4], pattern: Vec<(u8, usize)>) {
    let mut turns = PriorityTurns::new(PriorityShares::Weights(weights));
    let round: u32 = weights.iter().sum();
    let mut waited = [0; 4];
    for (eligible, claims) in pattern {
        let has_work = |p: Priority| eligible & (1 << p as u8) != 0;
        for _ in 0..claims {
            let served = turns.take(has_work);
            for p in Priority::ALL {
                let waits = has_work(p) && served != Some(p);
                waited[p as usize] = if waits { waited[p as usize] + 1 } else { 0 };
                assert!(waited[p as usize] < round, "{p} waited {waited:?}");
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn whoever_has_work_is_served_within_a_round(pattern in proptest::collection::vec((0u8..16, 1usize..100), 1..40)) {
        nobody_waits_longer_than_a_round(Priority::ALL.map(Priority::weight), pattern);
    }

    #[test]
    fn whoever_has_work_is_served_within_a_round_of_any_weights(
        weights in [1u32..9, 1u32..9, 1u32..9, 1u32..9],
        pattern in proptest::collection::vec((0u8..16, 1usize..12), 1..80),
    ) {
        nobody_waits_longer_than_a_round(weights, pattern);
    }

    /// L-3: the others' weights together, and one.
    #[test]
    fn a_member_is_served_within_the_weights_of_the_others_and_one(
        weights in proptest::collection::vec(1u32..5, 1..6),
        pattern in proptest::collection::vec(proptest::bits::u8::ANY, 1..200),
    ) {
        let mut ring = TenantRing::default();
        let members: Vec<(u32, u32)> = (0u32..).zip(weights).collect();
        for (member, _) in &members {
            ring.join(*member, *member);
        }
        let mut waited = vec![0; members.len()];
        for seats in pattern {
            let fits = |member: u32| seats & (1 << member) != 0;
            let Some(served) = ring.first(members.iter().map(|(member, _)| *member).filter(|member| fits(*member))) else {
                continue;
            };
            ring.served(served, members[served as usize].1);
            for (member, _) in &members {
                let waits = fits(*member) && *member != served;
                let others = members.iter().filter(|(other, _)| other != member).map(|(_, weight)| weight).sum::<u32>();
                waited[*member as usize] = if waits { waited[*member as usize] + 1 } else { 0 };
                assert!(waited[*member as usize] <= others, "{member} waited {waited:?}");
            }
        }
    }
}

fn turn(ring: &mut TenantRing<&'static str, u8>, kinds: &[u8]) -> Option<&'static str> {
    let member = ring.first(kinds.iter().copied())?;
    ring.served(member, 1);
    Some(member)
}

#[test]
fn tenants_take_turns_and_those_that_cannot_keep_their_place() {
    let mut ring = TenantRing::default();
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
    let mut ring = TenantRing::default();
    ring.join("a", 1);
    ring.join("b", 1);
    assert_eq!(turn(&mut ring, &[1]), Some("a"));
    ring.join("c", 1);
    assert_eq!(turn(&mut ring, &[1]), Some("b"));
    assert_eq!(turn(&mut ring, &[1]), Some("a"));
    assert_eq!(turn(&mut ring, &[1]), Some("c"));
}

#[test]
fn a_round_follows_the_weights_of_the_members() {
    let mut ring = TenantRing::default();
    for tenant in ["a", "b", "c"] {
        ring.join(tenant, 1u8);
    }
    let weight = |tenant| if tenant == "b" { 3 } else { 1 };
    let mut order = Vec::new();
    while let Some(tenant) = ring.first([1]).filter(|_| order.len() < 10) {
        ring.served(tenant, weight(tenant));
        order.push(tenant);
    }
    assert_eq!(order, ["a", "b", "b", "b", "c", "a", "b", "b", "b", "c"]);
}

#[test]
fn a_second_kind_of_work_gives_no_second_turn() {
    let mut ring = TenantRing::default();
    ring.join("a", 1);
    ring.join("b", 1);
    ring.join("a", 2);
    assert_eq!(turn(&mut ring, &[1, 2]), Some("a"));
    assert_eq!(turn(&mut ring, &[1, 2]), Some("b"));
    assert_eq!(ring.kinds_of("a"), [1, 2]);
}

#[test]
fn a_member_without_work_has_no_turn() {
    let mut ring = TenantRing::default();
    ring.join("a", 1);
    ring.leave("a", 1);
    ring.leave("a", 1);
    assert!(!ring.has(1));
    assert_eq!(ring.first([1]), None);
    assert_eq!(ring.kinds_of("a"), [0u8; 0]);
}
