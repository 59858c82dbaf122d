//! What people ask of a run.

use serde_json::{Map, json};

use super::super::super::{Closing, NodeKey};
use super::super::{OrderRefusal, RunCommand};
use super::*;
use crate::job::{JobState, Reason};

#[test]
fn a_paused_run_starts_nothing_new() {
    let mut world = begin(vec![job("a", &[]), job("b", &[0]), delay("wait", &[], 100), job("c", &[2])]);
    world.order(RunCommand::Pause).unwrap();
    assert_eq!(world.run_state(), RunState::Paused);
    world.succeed("a");
    world.wait(1_000);
    states(&world, &[("b", NodeState::Ready), ("wait", NodeState::Running), ("c", NodeState::Pending)]);
    assert_eq!(world.committed.head.wakes_at, None);
    world.crash();
    world.order(RunCommand::Pause).unwrap();
    world.order(RunCommand::Resume).unwrap();
    states(&world, &[("b", NodeState::Running), ("wait", NodeState::Succeeded), ("c", NodeState::Running)]);
    assert_eq!(world.run_state(), RunState::Running);
}

#[test]
fn a_paused_run_still_ends_in_time() {
    let mut nodes = dag(vec![job("a", &[]), job("b", &[0])]);
    nodes.timeout_ms = Some(1_000);
    let mut world = World::begin(nodes);
    world.order(RunCommand::Pause).unwrap();
    world.succeed("a");
    world.wait(1_000);
    assert_eq!(world.run_state(), RunState::Failed);
}

#[test]
fn a_run_whose_last_node_ends_while_it_is_paused_is_over() {
    let mut world = begin(vec![job("a", &[])]);
    world.order(RunCommand::Pause).unwrap();
    world.succeed("a");
    assert_eq!(world.run_state(), RunState::Succeeded);
    assert_eq!(world.order(RunCommand::Resume), Err(OrderRefusal::Over("SUCCEEDED")));
}

#[test]
fn a_cancelled_run_stops_what_runs_and_says_who_asked() {
    let mut world = begin(vec![job("a", &[]), job("b", &[0])]);
    let actor = crate::ids::ActorId::from("bob");
    world.order(RunCommand::Cancel { actor, note: Some("wrong file".into()), compensate: false }).unwrap();
    assert!(world.stopped.contains(world.row("a").job.as_ref().unwrap()));
    assert_eq!(world.order(RunCommand::Pause), Err(OrderRefusal::Closing));
    // Once more is no mistake.
    world.cancel(false).unwrap();
    world.end("a", JobState::Cancelled);
    assert_eq!(world.run_state(), RunState::Canceled);
    let failure = world.committed.head.failure.as_ref().unwrap();
    assert_eq!((failure.reason, &*failure.message), (Reason::Cancelled, "cancelled by bob: wrong file"));
    assert_eq!(world.cancel(false), Err(OrderRefusal::Over("CANCELED")));
}

#[test]
fn cancelling_undoes_only_if_asked() {
    for compensate in [false, true] {
        let mut world = begin(vec![job("a", &[]).undone(), job("b", &[0])]);
        world.succeed("a");
        world.order(RunCommand::Pause).unwrap();
        world.cancel(compensate).unwrap();
        world.end("b", JobState::Cancelled);
        assert_eq!(world.row("a").undo.is_some(), compensate);
        if compensate {
            assert_eq!(world.cancel(false), Err(OrderRefusal::Compensating));
            world.end_undo("a", JobState::Succeeded);
            assert_eq!(world.run_state(), RunState::Compensated);
        } else {
            assert_eq!(world.run_state(), RunState::Canceled);
        }
    }
}

#[test]
fn an_undo_can_be_asked_for_until_all_is_still() {
    let mut world = begin(vec![job("a", &[]).undone(), job("b", &[0]), job("c", &[])]);
    world.succeed("a");
    world.fail("c");
    world.cancel(true).unwrap();
    assert_eq!(world.committed.head.closing, Some(Closing::CancelAndCompensate));
    world.end("b", JobState::Cancelled);
    assert_eq!(world.run_state(), RunState::Compensating);
}

#[test]
fn a_cancel_fits_everywhere() {
    let nodes = || {
        vec![
            job("a", &[]).undone(),
            job("each", &[0]).each(&json!([1, 2, 3])).undone(),
            delay("wait", &[0], 1_000),
            sub_dag("sub", &[0]).undone(),
            job("z", &[1, 2, 3]).joined(Join::AllDone),
        ]
    };
    for point in 0..8 {
        for compensate in [false, true] {
            let mut world = begin(nodes());
            let moves: [fn(&mut World); 7] = [
                |world| world.succeed("a"),
                |world| world.end_at(NodeKey::item(1, 0), JobState::Succeeded),
                |world| world.end_at(NodeKey::item(1, 2), JobState::Succeeded),
                |world| world.end_run("sub", RunState::Succeeded),
                |world| world.wait(1_000),
                |world| world.end_at(NodeKey::item(1, 1), JobState::Succeeded),
                |world| world.crash(),
            ];
            moves.iter().take(point).for_each(|go| go(&mut world));
            world.cancel(compensate).unwrap();
            world.drain();
            let expected = if compensate { RunState::Compensated } else { RunState::Canceled };
            assert_eq!(world.run_state(), expected, "cancelled at {point}");
        }
    }
}

fn rerun(world: &mut World, from: &str, params: &serde_json::Value) -> Result<(), OrderRefusal> {
    let from = vec![world.dag.index(from).unwrap()];
    let params: Map<_, _> = params.as_object().cloned().unwrap();
    world.order(RunCommand::Rerun { from, params, fresh: false })
}

#[test]
fn a_rerun_keeps_what_was_good_and_repeats_the_rest() {
    let mut world = begin(vec![job("a", &[]).read(), job("b", &[0]), job("c", &[1]), job("d", &[0])]);
    world.succeed("a");
    world.succeed("d");
    world.fail("b");
    assert_eq!(world.run_state(), RunState::Failed);
    let old = world.news_of("b", JobState::Succeeded);
    rerun(&mut world, "b", &json!({ "size": 2 })).unwrap();
    assert_eq!(world.run_state(), RunState::Running);
    let head = &world.committed.head;
    assert_eq!((head.params.as_str(), &head.failure, head.closing, head.ended_at), (r#"{"size":2}"#, &None, None, None));
    states(&world, &[("a", NodeState::Succeeded), ("b", NodeState::Running), ("c", NodeState::Pending)]);
    assert_eq!(world.row("b").job.as_ref().unwrap().as_str(), "run-1.1~1");
    // What is told of the round before is old.
    world.hear(&[old]);
    assert_eq!(world.state("b"), NodeState::Running);
    world.succeed("b");
    world.succeed("c");
    assert_eq!(world.run_state(), RunState::Succeeded);
    assert_eq!((world.jobs.len(), world.committed.head.done), (5, 4));
}

/// The operator names a node other than the one that failed.
#[test]
fn a_rerun_repeats_what_ended_the_run_too() {
    let mut world = begin(vec![job("a", &[]), job("b", &[]), job("c", &[]).on_fail(OnFail::Continue), job("d", &[0])]);
    world.succeed("a");
    world.fail("c");
    world.fail("b");
    world.end("d", JobState::Cancelled);
    rerun(&mut world, "a", &json!({})).unwrap();
    states(&world, &[("a", NodeState::Running), ("b", NodeState::Running), ("c", NodeState::Failed)]);
    for name in ["a", "b", "d"] {
        world.succeed(name);
    }
    assert_eq!(world.run_state(), RunState::SucceededWithFailures);
}

#[test]
fn a_rerun_evaluates_its_lists_anew() {
    let mut world = begin(vec![job("each", &[]).each(&json!([1, 2]))]);
    for at in 0..2 {
        world.end_at(NodeKey::item(0, at), JobState::Failed);
    }
    rerun(&mut world, "each", &json!({})).unwrap();
    assert_eq!(world.committed.nodes[&NodeKey::item(0, 1)].job.as_ref().unwrap().as_str(), "run-1.0.1~1");
    for at in 0..2 {
        world.end_at(NodeKey::item(0, at), JobState::Succeeded);
    }
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn a_rerun_that_does_not_fit_is_refused() {
    let mut world = begin(vec![job("a", &[]).undone(), job("b", &[0])]);
    assert_eq!(rerun(&mut world, "a", &json!({})), Err(OrderRefusal::NotAgain("RUNNING")));
    world.succeed("a");
    world.cancel(true).unwrap();
    world.end("b", JobState::Cancelled);
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(rerun(&mut world, "a", &json!({})), Err(OrderRefusal::NotAgain("COMPENSATED")));
    let mut world = begin(vec![job("a", &[])]);
    world.succeed("a");
    assert_eq!(
        rerun(&mut world, "a", &json!({ "siz": 1 })),
        Err(OrderRefusal::Params("the DAG has no parameter \"siz\"".into()))
    );
    assert_eq!(
        world.order(RunCommand::Rerun { from: vec![1], params: Map::new(), fresh: false }),
        Err(OrderRefusal::NoSuchNode)
    );
    assert_eq!(
        world.order(RunCommand::Rerun { from: Vec::new(), params: Map::new(), fresh: false }),
        Err(OrderRefusal::NoSuchNode)
    );
    let before = world.committed.clone();
    assert_eq!(world.live.run, before, "a refusal changes nothing");
}

#[test]
fn a_run_inside_of_another_is_rerun_through_that_one() {
    let mut world = begin(vec![job("a", &[])]);
    world.succeed("a");
    let parent = super::super::super::RunParent { run: "run-0".into(), node: 0, item: None, depth: 1 };
    world.committed.head.parent = Some(parent);
    world.crash();
    assert_eq!(rerun(&mut world, "a", &json!({})), Err(OrderRefusal::Child("run-0".into())));
}
