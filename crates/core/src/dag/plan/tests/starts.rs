//! What starts, when, and as what.

use serde_json::json;

use std::time::Duration;

use super::super::super::{Closing, DEPTH_MAX, DagRef, NodeKey, RunParent};
use super::super::{APPROVAL_TOPIC, Awaited};
use super::*;
use crate::job::{Failure, JobState, Reason};
use crate::request::ApprovalGate;
use crate::verdict::ApprovalTerms;

#[test]
fn no_more_run_than_the_dag_allows_and_the_first_of_the_graph_goes_first() {
    let mut nodes = dag(vec![job("a", &[]), job("b", &[]), job("c", &[]), job("d", &[0])]);
    nodes.max_parallelism = Some(2);
    let mut world = World::begin(nodes);
    states(&world, &[("a", NodeState::Running), ("b", NodeState::Running), ("c", NodeState::Ready)]);
    world.succeed("a");
    states(&world, &[("c", NodeState::Running), ("d", NodeState::Ready)]);
    world.succeed("b");
    states(&world, &[("d", NodeState::Running)]);
}

/// Trap: crash between "ready" and "enqueued".
#[test]
fn what_was_ready_before_a_crash_starts_after_it() {
    let mut nodes = dag(vec![job("a", &[]), job("b", &[])]);
    nodes.max_parallelism = Some(1);
    let mut world = World::begin(nodes);
    assert_eq!(world.state("b"), NodeState::Ready);
    world.crash();
    world.succeed("a");
    assert_eq!(world.state("b"), NodeState::Running);
}

#[test]
fn delays_and_questions_to_people_take_no_room() {
    let question = NodeWork::Approval(ApprovalGate { reason: "go?".into(), terms: ApprovalTerms::default(), only: false });
    let mut nodes =
        dag(vec![delay("wait", &[], 50), Node { work: question, ..job("ask", &[]) }, job("a", &[]), job("b", &[])]);
    nodes.max_parallelism = Some(1);
    let world = World::begin(nodes);
    states(&world, &[("wait", NodeState::Running), ("ask", NodeState::Running), ("a", NodeState::Running)]);
    assert_eq!(world.state("b"), NodeState::Ready);
    let asked = &world.jobs[world.row("ask").job.as_ref().unwrap()].request;
    assert_eq!(asked.topic.as_str(), APPROVAL_TOPIC);
    assert!(asked.gate.as_ref().unwrap().only);
}

#[test]
fn a_delay_is_over_when_its_time_has_come() {
    let mut world = begin(vec![delay("wait", &[], 1_000), job("a", &[0])]);
    assert_eq!(world.committed.head.wakes_at, world.row("wait").wakes_at);
    world.wait(999);
    states(&world, &[("wait", NodeState::Running), ("a", NodeState::Pending)]);
    world.wait(1);
    states(&world, &[("wait", NodeState::Succeeded), ("a", NodeState::Running)]);
    assert_eq!(world.committed.head.wakes_at, None);
}

#[test]
fn a_delay_that_began_by_a_wrong_clock_is_counted_from_now() {
    let mut world = begin(vec![delay("wait", &[], 120_000), job("a", &[0])]);
    let right = world.now - Duration::from_secs(600);
    assert!(world.live.bring_back(world.now).is_none());
    let next = world.live.bring_back(right);
    assert!(next.is_some(), "it began in the future");
    world.now = right;
    world.take(next);
    assert_eq!(world.row("wait").wakes_at, Some(right + Duration::from_secs(120)));
    assert_eq!((world.committed.head.wakes_at, world.committed.head.began_at), (world.row("wait").wakes_at, right));
    assert!(world.live.bring_back(right).is_none(), "the second look moves nothing");
    world.wait(120_000);
    states(&world, &[("wait", NodeState::Succeeded), ("a", NodeState::Running)]);
}

#[test]
fn a_delay_until_a_time_takes_moments_and_refuses_the_rest() {
    let until = |value: serde_json::Value| {
        let work = NodeWork::Delay(Delay::Until(Template::constant(value)));
        begin(vec![Node { work, ..job("wait", &[]) }])
    };
    let at = |world: &World| world.row("wait").wakes_at.map(crate::time::Timestamp::as_millis);
    assert_eq!(at(&until(json!("1970-01-01T00:20:00Z"))), Some(1_200_000));
    assert_eq!(at(&until(json!(1_300_000))), Some(1_300_000));
    assert_eq!(until(json!("1970-01-01T00:00:00Z")).state("wait"), NodeState::Succeeded);
    for wrong in [json!("tomorrow"), json!({}), json!("2030-01-01T00:00:00Z")] {
        let world = until(wrong);
        assert_eq!(world.state("wait"), NodeState::Failed);
        assert_eq!(world.run_state(), RunState::Failed);
    }
}

#[test]
fn a_condition_that_is_false_skips_and_one_that_is_nonsense_fails() {
    let world = begin(vec![job("a", &[]).when("true"), job("b", &[]).when("false"), job("c", &[]).when("true")]);
    states(&world, &[("a", NodeState::Running), ("b", NodeState::Skipped), ("c", NodeState::Running)]);
    let world = begin(vec![job("a", &[]).when("3")]);
    assert_eq!(world.run_state(), RunState::Failed);
    assert!(world.row("a").failure.as_ref().unwrap().message.starts_with("when: "));
}

#[test]
fn a_request_that_is_not_valid_fails_its_node() {
    let mut node = job("a", &[]).on_fail(OnFail::Continue);
    if let NodeWork::Job(template) = &mut node.work {
        template.payload = Template::constant(json!("x".repeat(crate::limits::PAYLOAD_BYTES_MAX)));
        template.labels.insert("deep".into(), Template::constant(json!(7)));
    }
    let mut wrong = node.clone();
    if let NodeWork::Job(template) = &mut wrong.work {
        template.labels.insert("deep".into(), Template::constant(json!({})));
    }
    wrong.name = "b".into();
    let world = begin(vec![node, wrong]);
    assert_eq!(world.run_state(), RunState::SucceededWithFailures);
    let message = |name| world.row(name).failure.as_ref().unwrap().message.clone();
    assert!(message("a").contains("payload: must be at most"), "{}", message("a"));
    assert!(message("b").contains("labels.deep: it must be a text"), "{}", message("b"));
    assert!(world.jobs.is_empty());
}

#[test]
fn a_run_inside_of_a_run_is_waited_for() {
    let mut world = begin(vec![sub_dag("sub", &[]).read(), job("a", &[0])]);
    let child = world.row("sub").child.clone().unwrap();
    assert_eq!((&*world.runs[&child].dag, world.runs[&child].parent.depth), ("other", 1));
    assert_eq!(world.live.waits(), [(world.key("sub"), Awaited::Run(child.clone()))]);
    // Whether the sub-run began is unknown: the sweep names it again, and never another one.
    let (next, implied) = world.live.replan(world.now);
    assert!(next.is_none());
    assert_eq!(implied.runs.iter().map(|run| &run.id).collect::<Vec<_>>(), [&child]);
    world.end_run("sub", RunState::SucceededWithFailures);
    assert_eq!(world.state("a"), NodeState::Running);
}

#[test]
fn a_run_inside_of_a_run_that_fails_fails_its_node() {
    for state in [RunState::Failed, RunState::Canceled, RunState::Compensated] {
        let mut world = begin(vec![sub_dag("sub", &[])]);
        world.end_run("sub", RunState::CompensationStuck);
        assert_eq!(world.state("sub"), NodeState::Running);
        world.end_run("sub", state);
        assert_eq!(world.run_state(), RunState::Failed);
    }
}

#[test]
fn runs_do_not_nest_without_end() {
    let parent = RunParent { run: "run-0".into(), node: 0, item: None, depth: DEPTH_MAX };
    let of = DagRef { name: "test".into(), version: 1 };
    let caller = crate::request::Caller::new("acme", "ann");
    let dag = std::sync::Arc::new(dag(vec![sub_dag("sub", &[])]));
    let now = crate::time::Timestamp::ZERO;
    let start =
        super::super::Start { id: "run-9".into(), of, params: json!({}), parent: Some(parent), fresh: false, timeout: None };
    let (live, next) = super::super::begin(&dag, start, &caller, now);
    assert_eq!(live.run().head.state, RunState::Failed);
    assert!(next.runs.is_empty());
}

#[test]
fn what_waits_for_nothing_any_more_is_orphaned() {
    let mut world = begin(vec![job("a", &[]).on_fail(OnFail::Continue), job("b", &[0]).joined(Join::OneFailed)]);
    let key = world.key("a");
    let next = world.live.lost(&[key], world.now);
    world.take(next);
    assert_eq!(world.row("a").failure.as_ref().unwrap().reason, Reason::Orphaned);
    assert_eq!(world.state("b"), NodeState::Running);
    let again = world.live.lost(&[key], world.now);
    assert!(again.is_none());
    world.end("b", JobState::Succeeded);
    assert_eq!(world.run_state(), RunState::SucceededWithFailures);
}

#[test]
fn what_could_not_begin_says_why() {
    let mut world = begin(vec![sub_dag("sub", &[])]);
    let failure = Failure::new(Reason::Failed, "there is no DAG \"other\"");
    let next = world.live.refused(world.key("sub"), failure, world.now);
    world.take(next);
    assert_eq!(world.run_state(), RunState::Failed);
    let message = &world.committed.head.failure.as_ref().unwrap().message;
    assert_eq!(&**message, r#"node "sub": there is no DAG "other""#);
}

/// Rows as a faulty step would leave them.
#[test]
fn the_sweep_finishes_what_a_step_has_left() {
    let mut world = begin(vec![job("a", &[]), job("b", &[0]), job("each", &[]).each(&json!([1])), job("d", &[2])]);
    for key in [world.key("a"), NodeKey::item(2, 0)] {
        world.committed.nodes.get_mut(&key).unwrap().state = NodeState::Succeeded;
    }
    world.crash();
    let stepped = world.live.clone().step(&[], world.now);
    assert!(stepped.is_none_or(|next| next.jobs.is_empty()), "a step looks only at what news touch");
    let (next, _) = world.live.replan(world.now);
    world.take(next);
    states(&world, &[("b", NodeState::Running), ("each", NodeState::Succeeded), ("d", NodeState::Running)]);

    world.committed.head.closing = Some(Closing::Fail);
    world.committed.nodes.get_mut(&world.dag.index("b").map(NodeKey::of).unwrap()).unwrap().state = NodeState::Ready;
    world.crash();
    let (next, implied) = world.live.replan(world.now);
    assert_eq!(implied.stop_jobs, [world.row("d").job.clone().unwrap()]);
    world.take(next);
    assert_eq!(world.state("b"), NodeState::Canceled);
}
