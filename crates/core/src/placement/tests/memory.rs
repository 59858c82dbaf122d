//! What is remembered between questions, and for how long.

use std::sync::Arc;

use super::{candidate, free, labels, place, profile, routing};
use crate::lane::Shape;
use crate::placement::memory::Bounds;
use crate::placement::{Candidate, Roster};

const FILE: &str = "{topics: {job.*: [p, q]}, pools: {p: {}, q: {}}}";

fn asked(roster: &mut Roster<u32>, topic: &str) -> Vec<(u32, u32)> {
    roster.plan(&Arc::new(Shape::of(topic)), &"p".into(), 1, false)
}

#[test]
fn topics_that_the_same_workers_serve_share_a_bench() {
    let mut roster = Roster::new(routing(FILE, &[]));
    roster.insert(1, candidate(profile("w", "p", &["job.a", "job.b"]), 1));
    for topic in ["job.a", "job.b", "job.c", "job.d"] {
        asked(&mut roster, topic);
    }
    assert_eq!(roster.benches.len(), 3, "served in p, served by nobody in p, and in q");
    roster.insert(2, candidate(profile("v", "p", &["job.b"]), 1));
    roster.change(&1, |worker| worker.active = 1);
    assert_eq!(asked(&mut roster, "job.a"), []);
    assert_eq!(asked(&mut roster, "job.b"), [(2, 1)]);
}

#[test]
fn a_list_of_topics_that_went_with_its_pool_says_nothing_about_the_next() {
    let mut roster = Roster::new(routing(FILE, &[]));
    roster.insert(1, candidate(profile("w", "p", &["job.a"]), 1));
    assert_eq!(asked(&mut roster, "job.a"), [(1, 1)]);
    roster.remove(&1);
    roster.insert(2, candidate(profile("w", "p", &["job.b"]), 1));
    assert_eq!(asked(&mut roster, "job.a"), []);
    assert_eq!(asked(&mut roster, "job.b"), [(2, 1)]);
}

#[test]
fn the_shapes_asked_for_least_recently_are_forgotten_with_their_benches() {
    let mut roster = Roster::new(routing(FILE, &[]));
    roster.bounds = Bounds { shapes: 8, seats: usize::MAX };
    roster.insert(1, free("w", "p", 1_000));
    let host = |n: u32| Shape { placement: labels(&[("node.host", &n.to_string())]), ..Shape::of("job.a") };
    for n in 0..100 {
        roster.plan(&Arc::new(host(n)), &"p".into(), 1, false);
        assert_eq!(asked(&mut roster, "job.a").len(), 1);
        assert!(roster.shapes.len() <= 8 && roster.benches.len() <= 16, "{n}");
        assert!(roster.shapes.contains_key(&host(n)) && roster.shapes.contains_key(&Shape::of("job.a")), "{n}");
    }
    place(&mut roster, &Arc::new(Shape::of("job.a")), "p", 1);
    let worker = roster.workers.get(0).unwrap();
    assert_eq!(worker.benches.len(), 1, "what was forgotten is struck out");
}

#[test]
fn places_on_benches_are_bounded_too() {
    let mut roster = Roster::new(routing(FILE, &[]));
    roster.bounds = Bounds { shapes: usize::MAX, seats: 40 };
    for key in 0..10 {
        roster.insert(key, candidate(profile("w", "p", &[&format!("job.{key}"), "job.all*"]), 1));
    }
    for n in 0..50 {
        assert_eq!(asked(&mut roster, &format!("job.all.{n}")).len(), 1);
        let shape = Shape { placement: labels(&[("node.n", &n.to_string())]), ..Shape::of("job.all") };
        roster.plan(&Arc::new(shape), &"p".into(), 1, false);
        assert!(roster.benches.seats() <= 40);
    }
    for key in 10..60 {
        roster.insert(key, free("w", "p", 1));
        assert!(roster.benches.seats() <= 40 || roster.shapes.len() == 1);
    }
}

#[test]
fn a_worker_with_another_profile_is_another_worker() {
    let mut roster = Roster::new(routing(FILE, &[]));
    roster.insert(1, candidate(profile("w", "p", &["job.a"]), 1));
    assert_eq!(asked(&mut roster, "job.a"), [(1, 1)]);
    roster.change(&1, |worker| worker.profile = Arc::new(profile("w", "p", &["job.b"])));
    assert_eq!((asked(&mut roster, "job.a"), asked(&mut roster, "job.b")), (vec![], vec![(1, 1)]));
}

#[test]
fn an_adopted_configuration_changes_what_workers_may_take() {
    let mut roster = Roster::new(routing(FILE, &[]));
    roster.insert(1, Candidate { active: 9, ..free("w", "p", 10) });
    assert_eq!(asked(&mut roster, "job.a"), [(1, 1)]);
    roster.adopt(routing("{topics: {job.*: p}, pools: {p: {dispatch: direct}}}", &[]));
    assert_eq!(asked(&mut roster, "job.a"), []);
    roster.adopt(routing("{topics: {job.*: q}, pools: {q: {}}}", &[]));
    assert_eq!(asked(&mut roster, "job.a"), []);
    roster.adopt(routing(FILE, &[]));
    assert_eq!(asked(&mut roster, "job.a"), [(1, 1)]);
}
