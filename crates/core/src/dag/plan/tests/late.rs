//! News that come after the fact.

use std::time::Duration;

use serde_json::json;

use super::super::super::{MinSuccess, NodeKey, RunParent, UndoState};
use super::super::{RunCommand, RunMessage};
use super::*;
use crate::job::{JobState, Leaving, Reason};
use crate::request::Json;

#[test]
fn a_result_quarantined_before_anybody_used_it_fails_its_node() {
    let mut nodes = dag(vec![job("a", &[]), job("b", &[]), job("c", &[0, 1])]);
    nodes.nodes[0].on_fail = OnFail::Continue;
    let mut world = World::begin(nodes);
    world.succeed("a");
    world.end("a", JobState::OutputQuarantined);
    states(&world, &[("a", NodeState::Failed), ("c", NodeState::Skipped)]);
    assert_eq!(world.row("a").failure.as_ref().unwrap().reason, Reason::OutputQuarantined);
    assert!(!world.committed.head.tainted);
}

/// The child was ready and had no room yet: it has not used anything.
#[test]
fn a_child_that_was_ready_is_not_any_more() {
    let nodes = vec![
        job("a", &[]).on_fail(OnFail::Continue),
        job("b", &[]),
        job("busy", &[]),
        job("c", &[0, 1]).joined(Join::AnySuccess),
    ];
    let mut dag = dag(nodes);
    dag.max_parallelism = Some(3);
    let mut world = World::begin(dag);
    world.order(super::super::RunCommand::Pause).unwrap();
    world.succeed("a");
    assert_eq!(world.state("c"), NodeState::Ready);
    world.end("a", JobState::OutputQuarantined);
    assert_eq!(world.state("c"), NodeState::Pending);
    world.order(super::super::RunCommand::Resume).unwrap();
    world.succeed("b");
    assert_eq!(world.state("c"), NodeState::Running);
}

#[test]
fn a_result_quarantined_after_it_was_used_taints_the_run() {
    let mut world = begin(vec![job("a", &[]).read().undone(), job("b", &[0])]);
    world.succeed("a");
    world.end("a", JobState::OutputQuarantined);
    states(&world, &[("a", NodeState::Succeeded), ("b", NodeState::Running)]);
    assert!(world.row("a").tainted && world.committed.head.tainted);
    assert_eq!(world.row("a").shown_output(), None);
    world.succeed("b");
    assert_eq!(world.run_state(), RunState::Succeeded);
    assert_eq!(world.committed.head.shown_output(), None);
    // Released by a person.
    world.end("a", JobState::Succeeded);
    assert!(!world.row("a").tainted && !world.committed.head.tainted);
    assert!(world.row("a").shown_output().is_some());
}

#[test]
fn a_released_result_counts_as_long_as_nobody_decided_without_it() {
    let nodes = || vec![job("a", &[]).on_fail(OnFail::Continue), job("b", &[]), job("c", &[0, 1]).joined(Join::AllDone)];
    let mut world = begin(nodes());
    world.end("a", JobState::OutputQuarantined);
    assert_eq!(world.state("a"), NodeState::Failed);
    world.end("a", JobState::Succeeded);
    assert_eq!(world.state("a"), NodeState::Succeeded);
    world.succeed("b");
    assert_eq!(world.state("c"), NodeState::Running);

    let mut world = begin(nodes());
    world.end("a", JobState::OutputQuarantined);
    world.succeed("b");
    world.end("a", JobState::Succeeded);
    assert_eq!(world.state("a"), NodeState::Failed);
}

#[test]
fn a_run_that_is_over_stays_as_it_ended() {
    let mut world = begin(vec![job("a", &[]), job("b", &[])]);
    world.fail("a");
    world.end("b", JobState::Cancelled);
    for state in [JobState::Succeeded, JobState::OutputQuarantined, JobState::Failed] {
        let news = world.news_of("b", state);
        assert!(world.live.step(&[news], world.now).is_none());
    }
    assert_eq!(world.run_state(), RunState::Failed);
}

/// A job was given up as lost, everything was undone, and then it turns out that it was done.
#[test]
fn a_late_success_of_a_closed_saga_is_undone() {
    let mut world = begin(vec![job("a", &[]).undone(), job("b", &[]).undone(), job("c", &[]).on_fail(OnFail::Compensate)]);
    world.succeed("a");
    let next = world.live.lost(&[world.key("b")], world.now);
    world.take(next);
    world.end("c", JobState::Cancelled);
    assert_eq!(world.run_state(), RunState::Failed, "b stops the run, and nothing asked for an undo");

    let nodes = vec![job("a", &[]).undone(), job("b", &[]).undone().on_fail(OnFail::Compensate)];
    let mut world = begin(nodes);
    world.succeed("a");
    let next = world.live.lost(&[world.key("b")], world.now);
    world.take(next);
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensated);
    world.end("b", JobState::Succeeded);
    assert_eq!((world.run_state(), world.committed.head.ended_at), (RunState::Compensating, None));
    assert_eq!(world.undo_state("b"), Some(UndoState::Running));
    world.end_undo("b", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensated);
}

#[test]
fn what_was_undone_before_it_was_done_is_undone_again() {
    let mut world = begin(vec![job("a", &[]).undone_on_failure().on_fail(OnFail::Compensate)]);
    let next = world.live.lost(&[world.key("a")], world.now);
    world.take(next);
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensated);
    world.end("a", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensating);
    assert_eq!(world.row("a").undo.as_ref().unwrap().round, 1);
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensated);
}

#[test]
fn the_success_of_a_job_that_was_given_up_counts_while_the_run_goes_on() {
    let nodes = vec![job("a", &[]).on_fail(OnFail::Continue), job("b", &[]), job("c", &[0, 1]).joined(Join::AllDone)];
    let mut world = begin(nodes);
    let next = world.live.lost(&[world.key("a")], world.now);
    world.take(next);
    assert_eq!(world.state("a"), NodeState::Failed);
    world.succeed("a");
    assert_eq!(world.state("a"), NodeState::Succeeded);
}

#[test]
fn a_redacted_result_replaces_the_one_that_was_kept() {
    let mut world = begin(vec![job("a", &[]).read(), job("b", &[0])]);
    world.end_with("a", r#""secret""#);
    world.end_with("a", r#""***""#);
    assert_eq!(world.row("a").output.as_ref().unwrap().as_str(), r#""***""#);
}

#[test]
fn an_item_quarantined_late_can_fail_its_node() {
    let nodes = || {
        let mut each = job("each", &[]).each(&json!([1, 2])).read().on_fail(OnFail::Continue);
        each.for_each.as_mut().unwrap().min_success = Some(MinSuccess::Count(1));
        vec![each, job("b", &[]), job("c", &[0, 1])]
    };
    let (first, second) = (NodeKey::item(0, 0), NodeKey::item(0, 1));
    let mut world = begin(nodes());
    world.end_at(first, JobState::Succeeded);
    world.end_at(second, JobState::Succeeded);
    world.end_at(first, JobState::OutputQuarantined);
    assert_eq!(world.state("each"), NodeState::Succeeded);
    assert_eq!(world.row("each").output.as_ref().unwrap().as_str(), "[null,1]");
    world.end_at(second, JobState::OutputQuarantined);
    states(&world, &[("each", NodeState::Failed), ("c", NodeState::Skipped)]);

    let mut world = begin(nodes());
    world.end_at(first, JobState::Succeeded);
    world.end_at(second, JobState::Succeeded);
    world.succeed("b");
    world.end_at(first, JobState::OutputQuarantined);
    assert_eq!(world.state("each"), NodeState::Succeeded);
    assert!(world.row("each").tainted && world.committed.head.tainted);
    world.end_at(first, JobState::Succeeded);
    assert!(!world.row("each").tainted && !world.committed.head.tainted);
}

#[test]
fn a_run_inside_that_is_tainted_taints_its_node() {
    let mut world = begin(vec![sub_dag("sub", &[]).read(), job("a", &[0])]);
    let child = world.row("sub").child.clone().unwrap();
    for tainted in [false, true, false] {
        let mut news = world.run_news(&child, RunState::Succeeded);
        if let RunMessage::Run(head) = &mut news {
            (head.tainted, head.output) = (tainted, Some(Json::trusted("5")));
        }
        world.hear(&[news]);
        assert_eq!((world.row("sub").tainted, world.committed.head.tainted), (tainted, tainted));
        assert_eq!(world.row("sub").shown_output().is_some(), !tainted);
    }
}

/// A result is quarantined while its own undo still waits for its turn.
#[test]
fn a_taint_does_not_take_an_undo_off_the_list() {
    let mut nodes = dag(vec![job("a", &[]).undone(), job("b", &[]).undone(), job("c", &[0, 1]).on_fail(OnFail::Compensate)]);
    nodes.max_parallelism = Some(1);
    let mut world = World::begin(nodes);
    world.succeed("a");
    world.succeed("b");
    world.fail("c");
    assert_eq!((world.undo_state("b"), world.undo_state("a")), (Some(UndoState::Running), None));
    world.end("a", JobState::OutputQuarantined);
    world.end_undo("b", JobState::Succeeded);
    assert_eq!(world.undo_state("a"), Some(UndoState::Running));
}

/// A worker finished although it had been told to stop.
#[test]
fn what_was_cancelled_and_done_all_the_same_is_undone_once() {
    for compensated_before in [false, true] {
        let nodes = vec![job("a", &[]).undone(), job("b", &[]).undone(), job("c", &[]).on_fail(OnFail::Compensate)];
        let mut world = begin(nodes);
        world.succeed("a");
        world.fail("c");
        world.end("b", JobState::Cancelled);
        if compensated_before {
            world.end_undo("a", JobState::Succeeded);
            assert_eq!(world.run_state(), RunState::Compensated);
        }
        world.done_late("b");
        world.done_late("b");
        assert_eq!((world.run_state(), world.undo_state("b")), (RunState::Compensating, Some(UndoState::Running)));
        world.end_undo("b", JobState::Succeeded);
        world.done_late("b");
        if !compensated_before {
            world.end_undo("a", JobState::Succeeded);
        }
        assert_eq!(world.run_state(), RunState::Compensated);
        let undos = world.jobs.values().filter(|job| job.request.run.as_ref().unwrap().undo).count();
        assert_eq!(undos, 2, "each once");
    }
}

#[test]
fn what_was_done_late_in_a_run_that_goes_on_is_undone_if_that_is_rolled_back_later() {
    let nodes = vec![
        job("a", &[]).undone().on_fail(OnFail::Continue),
        job("b", &[0]).joined(Join::AllDone),
        job("plain", &[]).on_fail(OnFail::Continue),
    ];
    let mut world = begin(nodes);
    world.end("a", JobState::Cancelled);
    world.done_late("a");
    assert_eq!((world.state("a"), world.row("a").late), (NodeState::Failed, true), "its end is what it was");
    world.fail("plain");
    world.done_late("plain");
    assert!(!world.row("plain").late, "nothing could undo it");
    world.cancel(true).unwrap();
    world.end("b", JobState::Cancelled);
    assert_eq!(world.undo_state("a"), Some(UndoState::Running));
    world.done_late("a");
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensated);
}

#[test]
fn what_was_done_late_in_a_run_that_was_merely_cancelled_stays() {
    let mut world = begin(vec![job("a", &[]).undone()]);
    world.cancel(false).unwrap();
    world.end("a", JobState::Cancelled);
    world.done_late("a");
    assert_eq!((world.run_state(), world.undo_state("a")), (RunState::Canceled, None));
}

/// What the run hears when its job is cancelled under a worker that has not answered yet.
fn cancelled_at_work(world: &World, name: &str) -> RunMessage {
    let mut told = world.news_of(name, JobState::Cancelled);
    if let RunMessage::Job { leaving, .. } = &mut told {
        *leaving = vec![Leaving { session: "s1".into(), until: world.now + Duration::from_secs(60), scan: false }];
    }
    told
}

/// `b` needs `a` and is cancelled while a worker has it; `f` failed.
fn closed_while_b_is_at_work() -> World {
    let nodes = vec![job("a", &[]).undone(), job("b", &[0]).undone(), job("f", &[0]).on_fail(OnFail::Compensate)];
    let mut world = begin(nodes);
    world.succeed("a");
    world.fail("f");
    let told = cancelled_at_work(&world, "b");
    world.hear(&[told]);
    assert_eq!((world.state("b"), world.run_state()), (NodeState::Canceled, RunState::Compensating));
    assert_eq!((world.undo_state("a"), world.undo_state("b")), (None, None), "b may be done yet");
    assert_eq!(world.committed.head.wakes_at, Some(world.now + Duration::from_secs(60)));
    world
}

/// As [`closed_while_b_is_at_work`], and then the worker reported a success that the scan holds.
fn closed_while_b_is_scanned() -> World {
    let mut world = closed_while_b_is_at_work();
    let mut told = cancelled_at_work(&world, "b");
    if let RunMessage::Job { leaving, .. } = &mut told {
        leaving[0].scan = true;
    }
    world.hear(&[told]);
    world
}

/// A scanner may never answer, and then only an operator can let the rollback go on.
#[test]
fn an_operator_ends_the_wait_for_a_scan() {
    let mut world = closed_while_b_is_scanned();
    let resolve = || RunCommand::Resolve { key: NodeKey::of(1), actor: "ann".into() };
    world.order(resolve()).unwrap();
    assert_eq!((world.undo_state("a"), world.undo_state("b")), (Some(UndoState::Running), None));
    assert!(world.order(resolve()).is_err(), "nothing of it is stuck");
}

/// R-5: the worker's session closes before the scan is over.
#[test]
fn a_closed_session_does_not_end_the_wait_for_the_scan_of_what_it_reported() {
    let mut world = closed_while_b_is_scanned();
    assert!(world.live.leaving().is_empty(), "no session is waited for");
    let next = world.live.left(&["s1".into()].into(), world.now);
    assert!(next.is_none(), "{next:?}");
    assert_eq!((world.undo_state("a"), world.undo_state("b")), (None, None), "b was done, and is undone first");
    let part = world.part_of("b");
    let told = [world.news_of("b", JobState::Cancelled), RunMessage::Late { part, output: None }];
    world.hear(&told);
    assert_eq!((world.undo_state("a"), world.undo_state("b")), (None, Some(UndoState::Running)));
}

#[test]
fn nothing_is_undone_before_a_cancelled_job_is_heard_of_and_then_in_order() {
    let mut world = closed_while_b_is_at_work();
    world.end("b", JobState::Cancelled);
    assert_eq!((world.undo_state("a"), world.undo_state("b")), (Some(UndoState::Running), None), "it was not done");

    let mut world = closed_while_b_is_at_work();
    let part = world.part_of("b");
    let told = [world.news_of("b", JobState::Cancelled), RunMessage::Late { part, output: None }];
    world.hear(&told);
    assert_eq!((world.state("b"), world.row("b").late), (NodeState::Canceled, true), "as its job says");
    assert_eq!((world.undo_state("a"), world.undo_state("b")), (None, Some(UndoState::Running)));
}

#[test]
fn a_worker_that_never_answers_is_waited_for_until_its_session_is_closed_or_its_time_is_over() {
    let mut world = closed_while_b_is_at_work();
    assert_eq!(world.live.leaving().len(), 1);
    let next = world.live.left(&["s1".into()].into(), world.now);
    world.take(next);
    assert_eq!(world.undo_state("a"), Some(UndoState::Running));

    let mut world = closed_while_b_is_at_work();
    world.now = world.now + Duration::from_secs(59);
    assert!(world.live.step(&[], world.now).is_none());
    world.now = world.now + Duration::from_secs(1);
    world.hear(&[]);
    assert_eq!(world.undo_state("a"), Some(UndoState::Running));
}

/// R-5: as soon as it is over, the run around it may undo what the work of `a` used.
#[test]
fn a_run_inside_another_is_over_only_when_its_workers_let_go() {
    let mut world = begin(vec![job("a", &[]), job("f", &[])]);
    let parent = RunParent { run: "run-0".into(), node: 0, item: None, depth: 1 };
    world.live.run.head.parent = Some(parent);
    world.fail("f");
    let told = cancelled_at_work(&world, "a");
    world.hear(&[told]);
    assert_eq!(world.run_state(), RunState::Running, "a worker is at work on a");
    assert_eq!(world.committed.head.wakes_at, Some(world.now + Duration::from_secs(60)));
    world.end("a", JobState::Cancelled);
    assert_eq!(world.run_state(), RunState::Failed);
}

#[test]
fn a_run_that_undoes_nothing_does_not_wait_for_workers() {
    let mut world = begin(vec![job("a", &[]), job("f", &[])]);
    world.fail("f");
    let told = cancelled_at_work(&world, "a");
    world.hear(&[told]);
    assert_eq!(world.run_state(), RunState::Failed);
}
