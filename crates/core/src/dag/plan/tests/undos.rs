//! What was done is undone, the last first.

use serde_json::json;

use super::super::super::{JobTries, NodeKey, UndoState};
use super::super::{OrderRefusal, RunCommand};
use super::*;
use crate::ids::ActorId;
use crate::job::{JobState, Reason};
use crate::lane::Priority;

/// flight → hotel → pay, where paying fails.
fn travel() -> World {
    let nodes = vec![job("flight", &[]).undone(), job("hotel", &[0]).undone(), job("pay", &[1]).on_fail(OnFail::Compensate)];
    let mut world = begin(nodes);
    world.succeed("flight");
    world.succeed("hotel");
    world
}

#[test]
fn a_failure_undoes_what_was_done_in_reverse() {
    let mut world = travel();
    world.fail("pay");
    assert_eq!(world.run_state(), RunState::Compensating);
    assert_eq!((world.undo_state("hotel"), world.undo_state("flight")), (Some(UndoState::Running), None));
    world.end_undo("hotel", JobState::Succeeded);
    assert_eq!(world.undo_state("flight"), Some(UndoState::Running));
    world.end_undo("flight", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::Compensated);
    assert_eq!(world.undo_state("pay"), None);
    assert_eq!(world.committed.head.ended_at, Some(world.now));
}

#[test]
fn an_undo_is_critical_and_known_by_its_labels() {
    let mut world = travel();
    world.fail("pay");
    let undo = &world.jobs[&world.row("hotel").undo.as_ref().unwrap().job].request;
    assert_eq!(undo.priority, Some(Priority::Critical));
    let texts = |entries: &std::collections::BTreeMap<String, String>| serde_json::to_value(entries).unwrap();
    let labels = json!({
        "saga_compensation": "true", "is_compensation": "true", "saga_workflow_id": "run-1", "workflow_id": "test",
    });
    assert_eq!(texts(&undo.labels), labels);
    assert_eq!(texts(&undo.env), json!({ "saga_compensation": "true", "saga_workflow_id": "run-1" }));
    assert!(undo.run.as_ref().unwrap().undo);
    assert!(undo.job_id.as_str().starts_with("comp-") && undo.job_id.as_str().ends_with("~0"), "{}", undo.job_id);
}

/// The sibling of the failed node completes although it was told to stop.
#[test]
fn a_sibling_that_completes_meanwhile_is_undone_too() {
    for (end, undone) in [(JobState::Succeeded, true), (JobState::OutputQuarantined, true), (JobState::Cancelled, false)] {
        let mut world = begin(vec![job("a", &[]).on_fail(OnFail::Compensate), job("b", &[]).undone()]);
        world.fail("a");
        assert!(world.stopped.contains(world.row("b").job.as_ref().unwrap()));
        assert_eq!(world.undo_state("b"), None);
        world.end("b", end);
        assert_eq!(world.undo_state("b").is_some(), undone, "{end}");
        let over = if undone { RunState::Compensating } else { RunState::Compensated };
        assert_eq!(world.run_state(), over);
    }
}

#[test]
fn half_done_work_is_undone_if_its_node_says_so() {
    let mut world = begin(vec![job("a", &[]).undone_on_failure().on_fail(OnFail::Compensate), job("b", &[0]).undone()]);
    world.fail("a");
    assert_eq!(world.undo_state("a"), Some(UndoState::Running));
    assert_eq!(world.undo_state("b"), None);
}

#[test]
fn branches_that_do_not_depend_on_each_other_are_undone_at_once() {
    let mut world = begin(vec![
        job("root", &[]).undone(),
        job("left", &[0]).undone(),
        job("right", &[0]).undone(),
        job("end", &[1, 2]).on_fail(OnFail::Compensate),
    ]);
    for name in ["root", "left", "right"] {
        world.succeed(name);
    }
    world.fail("end");
    assert_eq!((world.undo_state("left"), world.undo_state("right")), (Some(UndoState::Running), Some(UndoState::Running)));
    world.end_undo("left", JobState::Succeeded);
    assert_eq!(world.undo_state("root"), None);
    world.crash();
    world.end_undo("right", JobState::Succeeded);
    assert_eq!(world.undo_state("root"), Some(UndoState::Running));
}

/// A node without an undo passes on that what came after it is undone.
#[test]
fn the_order_holds_across_nodes_that_have_nothing_to_undo() {
    let nodes = vec![
        job("a", &[]).undone(),
        job("middle", &[0]),
        job("c", &[1]).undone(),
        job("end", &[2]).on_fail(OnFail::Compensate),
    ];
    let mut world = begin(nodes);
    for name in ["a", "middle", "c"] {
        world.succeed(name);
    }
    world.fail("end");
    assert_eq!(world.undo_state("a"), None);
    world.end_undo("c", JobState::Succeeded);
    assert_eq!(world.undo_state("a"), Some(UndoState::Running));
}

#[test]
fn an_undo_that_fails_is_stuck_until_somebody_resolves_it() {
    for end in [JobState::Failed, JobState::Denied, JobState::Timeout, JobState::Cancelled] {
        let mut world = travel();
        world.fail("pay");
        world.end_undo("hotel", end);
        assert_eq!(world.run_state(), RunState::CompensationStuck);
        assert_eq!(world.undo_state("flight"), None);
        let key = world.key("hotel");
        world.order(RunCommand::Resolve { key, actor: ActorId::from("bob") }).unwrap();
        assert_eq!(world.row("hotel").undo.as_ref().unwrap().resolved_by, Some(ActorId::from("bob")));
        assert_eq!(world.run_state(), RunState::Compensating);
        world.end_undo("flight", JobState::Succeeded);
        assert_eq!(world.run_state(), RunState::Compensated);
        let again = world.order(RunCommand::Resolve { key, actor: ActorId::from("bob") });
        assert_eq!(again, Err(OrderRefusal::NotStuck));
    }
}

#[test]
fn an_undo_that_is_stuck_can_be_tried_again() {
    let mut world = travel();
    world.fail("pay");
    let first = world.row("hotel").undo.as_ref().unwrap().job.clone();
    world.end_undo("hotel", JobState::Failed);
    world.order(RunCommand::Retry { key: world.key("hotel") }).unwrap();
    let second = world.row("hotel").undo.as_ref().unwrap().job.clone();
    assert_ne!(first, second);
    assert_eq!(world.run_state(), RunState::Compensating);
    // What is told of the first once more is old.
    world.end_job(&first, JobState::Failed);
    assert_eq!(world.run_state(), RunState::Compensating);
    world.end_undo("hotel", JobState::Succeeded);
    assert_eq!(world.undo_state("flight"), Some(UndoState::Running));
}

#[test]
fn a_stuck_undo_holds_up_only_what_came_before_it() {
    let mut world = begin(vec![
        job("a", &[]).undone(),
        job("b", &[0]).undone(),
        job("c", &[]).undone(),
        job("d", &[2]).undone(),
        job("end", &[1, 3]).on_fail(OnFail::Compensate),
    ]);
    for name in ["a", "b", "c", "d"] {
        world.succeed(name);
    }
    world.fail("end");
    world.end_undo("b", JobState::Failed);
    world.end_undo("d", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::CompensationStuck);
    assert_eq!((world.undo_state("a"), world.undo_state("c")), (None, Some(UndoState::Running)));
}

/// Trap: crash between undo start and finish.
#[test]
fn an_undo_that_got_lost_is_stuck() {
    let mut world = travel();
    world.fail("pay");
    let key = world.key("hotel");
    assert_eq!(world.live.waits().len(), 1);
    let next = world.live.lost(&[key], world.now);
    world.take(next);
    assert_eq!(world.run_state(), RunState::CompensationStuck);
    assert_eq!(world.row("hotel").undo.as_ref().unwrap().failure.as_ref().unwrap().reason, Reason::Orphaned);
    // It did end well after all.
    world.end_undo("hotel", JobState::Succeeded);
    assert_eq!(world.undo_state("flight"), Some(UndoState::Running));
}

#[test]
fn an_undo_that_cannot_be_made_is_stuck() {
    let mut nodes = vec![job("a", &[]).undone(), job("b", &[0]).on_fail(OnFail::Compensate)];
    nodes[0].compensation.as_mut().unwrap().labels.insert("_mine".into(), Template::constant(json!("x")));
    let mut world = begin(nodes);
    world.succeed("a");
    world.fail("b");
    assert_eq!(world.run_state(), RunState::CompensationStuck);
    let failure = world.row("a").undo.as_ref().unwrap().failure.clone().unwrap();
    assert!(failure.message.contains("labels"), "{}", failure.message);
}

/// Stored before whole numbers had to lie within 2^53: its work was done with this very number.
#[test]
fn an_undo_reads_a_number_that_was_stored_before_the_rule_as_it_was_written() {
    let text = r#"version: 1
dag: old
nodes:
  a: {topic: job.noop, compensation: {topic: undo, payload: {id: "${nodes.a.output.id}", size: "${nodes.a.output.size}"}}}
  b: {needs: [a], topic: job.noop, on_fail: compensate}
"#;
    let mut world = World::begin(Dag::load("old.yaml", text).unwrap());
    world.end_with("a", r#"{"id":9007199254740993,"size":18446744073709551615}"#);
    world.fail("b");
    assert_eq!(world.run_state(), RunState::Compensating);
    let undo = &world.jobs[&world.row("a").undo.as_ref().unwrap().job];
    assert_eq!(undo.request.payload.as_str(), r#"{"id":9007199254740993,"size":18446744073709551615}"#);
}

#[test]
fn every_item_that_completed_is_undone_before_what_came_before() {
    let nodes =
        vec![job("first", &[]).undone(), job("each", &[0]).each(&json!([7, 8, 9])).undone().on_fail(OnFail::Compensate)];
    let mut world = begin(nodes);
    world.succeed("first");
    for (at, end) in [(0, JobState::Succeeded), (1, JobState::Failed), (2, JobState::Succeeded)] {
        world.end_at(NodeKey::item(1, at), end);
    }
    let undone: Vec<u32> = (0..3).filter(|at| world.committed.nodes[&NodeKey::item(1, *at)].undo.is_some()).collect();
    assert_eq!(undone, [0, 2]);
    for at in undone {
        assert_eq!(world.undo_state("first"), None);
        let id = world.committed.nodes[&NodeKey::item(1, at)].undo.as_ref().unwrap().job.clone();
        world.end_job(&id, JobState::Succeeded);
    }
    assert_eq!(world.undo_state("first"), Some(UndoState::Running));
}

#[test]
fn undos_keep_to_the_limits_of_the_run() {
    let mut nodes: Vec<Node> = (0..6).map(|at| job(&format!("n{at}"), &[]).undone()).collect();
    nodes.push(job("end", &[0, 1, 2, 3, 4, 5]).on_fail(OnFail::Compensate));
    let mut dag = dag(nodes);
    dag.max_parallelism = Some(2);
    let mut world = World::begin(dag);
    (0..6).for_each(|at| world.succeed(&format!("n{at}")));
    world.fail("end");
    while world.run_state() == RunState::Compensating {
        assert!((1..=2).contains(&world.open_jobs().len()));
        let id = world.open_jobs().remove(0);
        world.end_job(&id, JobState::Succeeded);
    }
    assert_eq!(world.run_state(), RunState::Compensated);
}

#[test]
fn a_failure_that_asks_for_an_undo_gets_it_whichever_failure_was_first() {
    for order in [["stop", "undo"], ["undo", "stop"]] {
        let mut world =
            begin(vec![job("done", &[]).undone(), job("stop", &[]), job("undo", &[]).on_fail(OnFail::Compensate)]);
        world.succeed("done");
        order.into_iter().for_each(|name| world.fail(name));
        assert_eq!(world.run_state(), RunState::Compensating);
    }
}

#[test]
fn a_node_keeps_how_often_its_job_was_tried_as_last_heard() {
    let mut world = begin(vec![job("a", &[])]);
    assert_eq!(world.row("a").tries, None);
    let mut told = world.news_of("a", JobState::Succeeded);
    let super::super::RunMessage::Job { tries, .. } = &mut told else { panic!("{told:?}") };
    *tries = JobTries { attempts: 4, losses: 2 };
    world.hear(std::slice::from_ref(&told));
    world.hear(&[told]);
    assert_eq!(world.row("a").tries, Some(JobTries { attempts: 4, losses: 2 }));
}

/// It has no compensation, for a definition that gives it one is refused: what an earlier run did is that run's to undo.
#[test]
fn a_node_that_took_over_what_was_done_before_is_passed_over_by_the_undoing() {
    let nodes = vec![job("a", &[]).undone(), job("b", &[0]), job("c", &[1]).on_fail(OnFail::Compensate)];
    let mut world = begin(nodes);
    world.succeed("a");
    let mut told = world.news_of("b", JobState::Succeeded);
    if let super::super::RunMessage::Job { memo_of, .. } = &mut told {
        *memo_of = Some("run-0.1~0".into());
    }
    world.hear(std::slice::from_ref(&told));
    world.hear(&[told]);
    assert_eq!((world.state("b"), world.row("b").memo_of.clone()), (NodeState::Succeeded, Some("run-0.1~0".into())));
    world.fail("c");
    world.end_undo("a", JobState::Succeeded);
    assert_eq!((world.run_state(), world.undo_state("b")), (RunState::Compensated, None));
}
