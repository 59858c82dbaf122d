//! What follows a failure.

use super::*;
use crate::job::{JobState, Reason};

const BAD: [JobState; 5] =
    [JobState::Failed, JobState::Timeout, JobState::Denied, JobState::Cancelled, JobState::OutputQuarantined];

/// Trap: a failed middle node whose sinks never start still ends the run.
#[test]
fn a_failed_node_that_stops_ends_the_run() {
    for end in BAD {
        let mut world = begin(vec![job("a", &[]), job("b", &[0]), job("c", &[1]), job("d", &[2])]);
        world.succeed("a");
        world.end("b", end);
        states(&world, &[("b", NodeState::Failed), ("c", NodeState::Canceled), ("d", NodeState::Canceled)]);
        assert_eq!(world.run_state(), RunState::Failed);
        assert_eq!(world.committed.head.done, 4);
        assert!(world.committed.head.failure.as_ref().unwrap().message.starts_with(r#"node "b": "#));
    }
}

#[test]
fn a_sibling_that_runs_is_stopped_and_waited_for() {
    let mut world = begin(vec![job("a", &[]), job("b", &[]), delay("wait", &[], 1_000), sub_dag("sub", &[])]);
    world.fail("a");
    assert_eq!(world.run_state(), RunState::Running);
    assert!(world.stopped.contains(world.row("b").job.as_ref().unwrap()));
    assert!(world.stopped_runs.contains(world.row("sub").child.as_ref().unwrap()));
    states(&world, &[("b", NodeState::Running), ("wait", NodeState::Canceled)]);
    let (_, implied) = world.live.replan(world.now);
    assert_eq!((implied.stop_jobs.len(), implied.stop_runs.len(), implied.runs.len()), (1, 1, 0));
    world.end("b", JobState::Cancelled);
    assert_eq!(world.run_state(), RunState::Running);
    world.end_run("sub", RunState::Canceled);
    states(&world, &[("b", NodeState::Canceled), ("sub", NodeState::Canceled)]);
    assert_eq!(world.run_state(), RunState::Failed);
}

/// Trap: the state of the run is honest.
#[test]
fn a_failure_that_is_allowed_does_not_stop_the_rest() {
    let mut world = begin(vec![
        job("a", &[]).on_fail(OnFail::Continue),
        job("b", &[]),
        job("after", &[0]),
        job("rescue", &[0]).joined(Join::OneFailed),
    ]);
    world.fail("a");
    states(&world, &[("after", NodeState::Skipped), ("rescue", NodeState::Running)]);
    let cause = world.row("after").failure.clone().unwrap();
    assert_eq!(cause.reason, Reason::Upstream);
    assert_eq!(&*cause.message, r#"all_success does not hold: "a" is FAILED"#);
    world.succeed("b");
    world.succeed("rescue");
    assert_eq!(world.run_state(), RunState::SucceededWithFailures);
    assert_eq!(world.committed.head.failure, None);
}

#[test]
fn the_first_failure_is_the_runs() {
    let mut world = begin(vec![job("a", &[]), job("b", &[])]);
    world.fail("a");
    world.fail("b");
    assert!(world.committed.head.failure.as_ref().unwrap().message.contains(r#""a""#));
}

#[test]
fn a_run_that_takes_too_long_fails() {
    let mut nodes = dag(vec![job("a", &[]), job("b", &[0])]);
    nodes.timeout_ms = Some(1_000);
    let mut world = World::begin(nodes);
    assert_eq!(world.committed.head.wakes_at, world.committed.head.deadline_at);
    world.wait(1_000);
    assert_eq!(world.committed.head.failure.as_ref().unwrap().reason, Reason::DeadlineExceeded);
    assert_eq!((world.run_state(), world.committed.head.wakes_at), (RunState::Running, None));
    world.end("a", JobState::Cancelled);
    assert_eq!(world.run_state(), RunState::Failed);
}

/// Trap: the last node ended in time, and the run took its next step only after its timeout.
#[test]
fn a_run_whose_work_is_done_is_not_late() {
    let mut nodes = dag(vec![job("a", &[]), job("b", &[0]).joined(Join::OneFailed)]);
    nodes.timeout_ms = Some(1_000);
    let mut world = World::begin(nodes);
    world.now = world.now + std::time::Duration::from_secs(2);
    world.succeed("a");
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn a_run_that_takes_too_long_undoes_its_work_if_a_failure_would() {
    let mut nodes = dag(vec![job("a", &[]).undone(), job("b", &[0]).on_fail(OnFail::Compensate)]);
    nodes.timeout_ms = Some(1_000);
    let mut world = World::begin(nodes);
    world.succeed("a");
    world.wait(1_000);
    world.end("b", JobState::Cancelled);
    assert_eq!(world.run_state(), RunState::Compensating);
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensated);
}
