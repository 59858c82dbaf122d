//! What happens between two beats.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{free, place, routing};
use crate::lane::Shape;
use crate::placement::Roster;
use crate::worker::Load;

/// Workers of one pool. A queue has no overload limits of its own, a direct pool has 90 percent.
fn roster(dispatch: &str, capacities: &[u32]) -> Roster<u32> {
    let file = format!("{{topics: {{'*': p}}, pools: {{p: {{dispatch: {dispatch}}}}}}}");
    let mut roster = Roster::new(routing(&file, &[]));
    for (key, capacity) in (0..).zip(capacities) {
        roster.insert(key, free(&format!("w{key}"), "p", *capacity));
    }
    roster
}

fn shape() -> Arc<Shape> {
    Arc::new(Shape::of("job.x"))
}

#[test]
fn a_burst_of_1000_is_spread_evenly_over_ten_equal_workers() {
    for batch in [1, 7, 1_000] {
        let mut roster = roster("direct", &[200; 10]);
        let mut left = 1_000;
        while left > 0 {
            let placed = place(&mut roster, &shape(), "p", left.min(batch));
            left -= placed.iter().map(|(_, jobs)| *jobs as usize).sum::<usize>();
        }
        for key in 0..10 {
            assert_eq!(roster.get(&key).map(|w| w.active), Some(100), "worker {key}, {batch} at once");
        }
    }
}

#[test]
fn shares_follow_capacity_under_a_backlog() {
    let capacities = [1, 2, 8];
    let mut roster = roster("queue", &capacities);
    let mut taken = [0u32; 3];
    for round in 0..1_000u32 {
        for (key, jobs) in place(&mut roster, &shape(), "p", 100) {
            taken[key as usize] += jobs;
        }
        // Each job takes equally long, so a worker that holds more jobs finishes more.
        let done = (0..3).find(|key| round % 11 < capacities[..=*key].iter().sum()).unwrap();
        roster.change(&(done as u32), |worker| worker.active -= 1);
    }
    let total: u32 = taken.iter().sum();
    for (share, capacity) in taken.iter().zip(capacities) {
        assert!((share * 11).abs_diff(total * capacity) <= 11 * capacity, "{taken:?}");
    }
}

#[test]
fn one_burst_fills_every_worker_to_its_capacity_and_no_further() {
    let mut roster = roster("queue", &[1, 2, 8]);
    let placed: BTreeMap<u32, u32> = place(&mut roster, &shape(), "p", 100).into_iter().collect();
    assert_eq!(placed, BTreeMap::from([(0, 1), (1, 2), (2, 8)]));
    assert_eq!(place(&mut roster, &shape(), "p", 1), []);
}

#[test]
fn the_overload_limit_on_jobs_bounds_a_burst_too() {
    let mut roster = roster("direct", &[20, 1]);
    let placed: BTreeMap<u32, u32> = place(&mut roster, &shape(), "p", 100).into_iter().collect();
    assert_eq!(placed, BTreeMap::from([(0, 18), (1, 1)]));
}

#[test]
fn the_lower_score_wins_then_the_lower_share_then_who_waited_longest() {
    let mut roster = roster("queue", &[4, 4, 8]);
    let load = |cpu, gpu| Load { cpu: Some(cpu), gpu: Some(gpu), memory: None };
    roster.change(&0, |worker| worker.load = load(30, 31));
    roster.change(&1, |worker| worker.load = load(60, 0));
    roster.change(&2, |worker| worker.load = load(99, 0));
    assert_eq!(roster.plan(&shape(), &"p".into(), 1, false), [(1, 1)], "0.60 is less than 0.61");
    for key in 0..3 {
        roster.change(&key, |worker| (worker.load, worker.active) = (Load::default(), 1));
    }
    assert_eq!(roster.plan(&shape(), &"p".into(), 1, false), [(2, 1)], "one of eight is less than one of four");
    for key in [2, 0, 1] {
        roster.change(&key, |worker| (worker.capacity, worker.active) = (4, 2));
    }
    let order: Vec<u32> = (0..6).flat_map(|_| place(&mut roster, &shape(), "p", 1)).map(|(key, _)| key).collect();
    assert_eq!(order, [2, 0, 1, 2, 0, 1]);
}

#[test]
fn equal_workers_take_turns_within_one_plan_too() {
    let mut roster = roster("queue", &[10, 10]);
    for key in [1, 0] {
        roster.change(&key, |worker| worker.active += 1);
    }
    assert_eq!(roster.plan(&shape(), &"p".into(), 3, false), [(1, 2), (0, 1)]);
}

#[test]
fn places_to_wait_in_are_given_when_nobody_has_a_free_slot() {
    let mut roster = roster("queue", &[1, 4]);
    for key in 0..2 {
        roster.change(&key, |worker| worker.spare = 2);
    }
    let mut slots = roster.plan(&shape(), &"p".into(), 99, false);
    slots.sort_unstable();
    assert_eq!(slots, [(0, 1), (1, 4)]);
    let mut first = roster.plan(&shape(), &"p".into(), 5, true);
    first.sort_unstable();
    assert_eq!(first, slots, "slots before places to wait in");
    let mut all = roster.plan(&shape(), &"p".into(), 99, true);
    all.sort_unstable();
    assert_eq!(all, [(0, 3), (1, 6)]);
}
