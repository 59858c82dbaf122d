//! Runs that nothing will ever move again.

use std::time::Duration;

use super::super::super::{Standstill, Unmoved, end_without_plan, orphaned};
use super::*;
use crate::job::{Failure, Reason};

const AFTER: Duration = Duration::from_secs(300);

fn still(age: u64) -> Standstill {
    Standstill { why: Unmoved::NothingFollows, awaits: false, age: Duration::from_secs(age) }
}

fn failure() -> Failure {
    Failure::new(Reason::Orphaned, "nothing followed")
}

/// A row as a faulty step would leave it: it is RUNNING and has no job.
fn forgotten(world: &mut World, name: &str) {
    let key = world.key(name);
    world.committed.nodes.get_mut(&key).unwrap().job = None;
    world.crash();
    assert!(world.live.replan(world.now).0.is_none(), "the sweep cannot help");
}

#[test]
fn only_a_run_that_nothing_can_move_is_orphaned_and_only_after_a_while() {
    let world = begin(vec![job("a", &[])]);
    let head = &world.committed.head;
    let found = orphaned(head, still(300), AFTER).unwrap();
    assert_eq!(found.reason, Reason::Orphaned);
    assert_eq!(&*found.message, "nothing was under way and nothing followed for 300 s, at version 1");
    assert_eq!(orphaned(head, still(299), AFTER), None);
    assert_eq!(orphaned(head, Standstill { awaits: true, ..still(900) }, AFTER), None);
}

#[test]
fn people_and_time_are_waited_for_as_long_as_there_is_a_plan() {
    let mut head = begin(vec![job("a", &[])]).committed.head;
    let no_plan = Standstill { why: Unmoved::NoPlan, ..still(300) };
    for state in [RunState::Paused, RunState::Compensating, RunState::CompensationStuck] {
        head.state = state;
        assert_eq!(orphaned(&head, still(900), AFTER), None);
        assert!(orphaned(&head, no_plan, AFTER).is_some());
    }
    head.state = RunState::Running;
    head.wakes_at = Some(crate::time::Timestamp::from_millis(1));
    assert_eq!(orphaned(&head, still(900), AFTER), None);
    assert!(orphaned(&head, no_plan, AFTER).is_some());
    head.state = RunState::Failed;
    assert_eq!(orphaned(&head, no_plan, AFTER), None);
}

#[test]
fn an_orphaned_run_fails_and_what_it_never_began_is_cancelled() {
    let mut world = begin(vec![job("a", &[]), job("b", &[0])]);
    assert!(world.live.clone().orphaned(&failure(), world.now).is_none(), "its job is under way");
    forgotten(&mut world, "a");
    let next = world.live.orphaned(&failure(), world.now);
    world.take(next);
    states(&world, &[("a", NodeState::Failed), ("b", NodeState::Canceled)]);
    assert_eq!(world.run_state(), RunState::Failed);
    assert_eq!(world.committed.head.failure, Some(failure()));
}

#[test]
fn an_orphaned_run_undoes_what_was_done_if_a_failure_would() {
    let mut world = begin(vec![job("a", &[]).undone(), job("b", &[0]).on_fail(OnFail::Compensate)]);
    world.succeed("a");
    forgotten(&mut world, "b");
    let next = world.live.orphaned(&failure(), world.now);
    world.take(next);
    assert_eq!(world.run_state(), RunState::Compensating);
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensated);
}

#[test]
fn without_a_plan_a_run_ends_as_it_stands() {
    let mut world = begin(vec![job("a", &[]), job("b", &[]), job("c", &[0])]);
    world.succeed("a");
    let (flow, next) = end_without_plan(world.committed.clone(), failure(), world.now);
    assert_eq!(flow.run().head, next.head);
    let head = &next.head;
    assert_eq!((head.state, head.version, head.ended_at), (RunState::Failed, 3, Some(world.now)));
    assert_eq!(head.failure, Some(failure()));
    let rows: Vec<_> = next.nodes.iter().map(|(key, row)| (key.node, row.state)).collect();
    assert_eq!(rows, [(1, NodeState::Failed), (2, NodeState::Failed)], "what was over stays as it was");
}
