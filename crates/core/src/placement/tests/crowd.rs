//! What jobs wait for, and who has a slot all the same.

use std::sync::Arc;

use super::{candidate, free, names, profile, routing};
use crate::lane::Shape;
use crate::placement::{Candidate, Roster, Unavailable, WaitsFor};
use crate::pools::Closed;

const FILE: &str = "{topics: {job.*: [p, q], bound.*: r}, pools: {p: {}, q: {}, r: {max_concurrent: 2}}}";

fn plain() -> Arc<Shape> {
    Arc::new(Shape::of("job.x"))
}

fn gpu() -> Arc<Shape> {
    Arc::new(Shape { requires: names(&["gpu"]), ..Shape::of("job.x") })
}

#[test]
fn what_is_waited_for_is_told_apart() {
    let mut roster = Roster::new(routing(FILE, &[]));
    let look = |roster: &mut Roster<u32>| roster.look_over(&[(gpu(), 1), (plain(), 3)]);
    assert_eq!(look(&mut roster), [WaitsFor::Anyone, WaitsFor::Anyone]);
    roster.insert(1, free("w", "p", 2));
    assert_eq!(look(&mut roster), [WaitsFor::Fit, WaitsFor::Slot]);
    roster.insert(2, free("v", "q", 1));
    assert_eq!(look(&mut roster), [WaitsFor::Fit, WaitsFor::Nothing], "the second pool has the third slot");
    roster.change(&2, |worker| worker.active = 1);
    assert_eq!(look(&mut roster), [WaitsFor::Fit, WaitsFor::Slot]);
    roster.change(&2, |worker| (worker.active, worker.away) = (0, Some(Unavailable::Elsewhere)));
    assert_eq!(look(&mut roster), [WaitsFor::Fit, WaitsFor::Nothing], "whoever gives it jobs");
    for key in [1, 2] {
        roster.change(&key, |worker| worker.away = Some(Unavailable::Detached));
    }
    assert_eq!(look(&mut roster), [WaitsFor::Anyone, WaitsFor::Anyone]);
    roster.change(&1, |worker| worker.away = None);
    roster.adopt(routing(FILE, &[("p", Closed::Paused)]));
    assert_eq!(look(&mut roster), [WaitsFor::Anyone, WaitsFor::Anyone]);
}

#[test]
fn slots_beyond_the_limit_of_their_pool_are_not_free() {
    let mut roster = Roster::new(routing(FILE, &[]));
    roster.insert(1, free("w", "r", 10));
    let bound = Arc::new(Shape::of("bound.x"));
    assert_eq!(roster.look_over(&[(bound.clone(), 2)]), [WaitsFor::Nothing]);
    assert!(roster.has_slot(&bound, 1) && !roster.has_slot(&bound, 2));
    roster.change(&1, |worker| worker.active = 1);
    assert_eq!(roster.look_over(&[(bound, 2)]), [WaitsFor::Slot]);
}

#[test]
fn a_slot_that_others_wait_for_is_nobody_elses() {
    let mut roster = Roster::new(routing(FILE, &[]));
    let mut able = profile("g", "p", &["*"]);
    able.capabilities = names(&["gpu"]);
    roster.insert(1, Candidate { active: 1, ..candidate(able, 1) });
    roster.insert(2, free("w", "p", 2));
    assert_eq!(roster.look_over(&[(gpu(), 5)]), [WaitsFor::Slot]);
    assert!(!roster.has_slot(&gpu(), 0));
    assert!(roster.has_slot(&plain(), 1) && !roster.has_slot(&plain(), 2));
    // Between two jobs of a crowd.
    roster.change(&1, |worker| worker.active = 0);
    assert!(!roster.has_slot(&gpu(), 0));
    assert_eq!(roster.look_over(&[]), []);
    assert!(roster.has_slot(&gpu(), 0), "nobody waits any more");
}
