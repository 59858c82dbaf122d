//! One node, many jobs.

use serde_json::json;

use std::sync::Arc;

use super::super::super::{Dag, DagRef, ITEMS_MAX, MinSuccess, NodeKey};
use super::*;
use crate::job::JobState;
use crate::request::Caller;
use crate::time::Timestamp;

fn item(at: u32) -> NodeKey {
    NodeKey::item(0, at)
}

fn each(count: u32, concurrency: Option<u32>, min_success: Option<MinSuccess>) -> Node {
    let list: Vec<u32> = (0..count).collect();
    let mut node = job("each", &[]).each(&json!(list)).read();
    let for_each = node.for_each.as_mut().unwrap();
    (for_each.concurrency, for_each.min_success) = (concurrency, min_success);
    node
}

#[test]
fn every_item_is_a_job_and_the_output_is_the_list_of_theirs() {
    let mut world = begin(vec![each(3, None, None), job("after", &[0])]);
    assert_eq!(world.jobs.keys().map(|id| id.as_str()).collect::<Vec<_>>(), ["run-1.0.0~0", "run-1.0.1~0", "run-1.0.2~0"]);
    for at in [2, 0, 1] {
        assert_eq!(world.state("each"), NodeState::Running);
        world.end_at(item(at), JobState::Succeeded);
    }
    assert_eq!(world.row("each").output.as_ref().unwrap().as_str(), "[1,1,1]");
    assert_eq!(world.state("after"), NodeState::Running);
    assert_eq!(world.committed.head.done, 1);
}

/// Trap: an empty list.
#[test]
fn no_items_are_a_success_with_an_empty_list() {
    let world = begin(vec![each(0, None, Some(MinSuccess::Count(1))), job("after", &[0])]);
    states(&world, &[("each", NodeState::Succeeded), ("after", NodeState::Running)]);
    assert_eq!(world.row("each").output.as_ref().unwrap().as_str(), "[]");
}

#[test]
fn what_is_not_a_list_or_too_long_fails_with_the_numbers() {
    let world = begin(vec![job("each", &[]).each(&json!("no"))]);
    assert_eq!(&*world.row("each").failure.as_ref().unwrap().message, "for_each: it is not a list");
    let text = "version: 1\ndag: t\nparams: {list: list}\nnodes:\n  each: {for_each: params.list, topic: job.echo}\n";
    let dag = Arc::new(Dag::load("t.yaml", text).unwrap());
    let of = DagRef { name: "t".into(), version: 1 };
    let params = json!({ "list": vec![0; ITEMS_MAX + 1] });
    let caller = Caller::new("acme", "ann");
    let start = crate::dag::plan::Start { id: "run-1".into(), of, params, parent: None, fresh: false, timeout: None };
    let (live, next) = crate::dag::plan::begin(&dag, start, &caller, Timestamp::ZERO);
    let message = &live.run().nodes[&NodeKey::of(0)].failure.as_ref().unwrap().message;
    assert_eq!(&**message, "for_each: the list has 10001 items, at most 10000 are possible");
    assert!(next.jobs.is_empty());
}

#[test]
fn items_start_in_order_within_their_limit_and_the_runs() {
    let mut nodes = dag(vec![each(5, Some(2), None), job("other", &[])]);
    nodes.max_parallelism = Some(3);
    let mut world = World::begin(nodes);
    assert_eq!(world.open_jobs().len(), 3);
    assert_eq!(world.state("other"), NodeState::Running);
    world.end_at(item(1), JobState::Succeeded);
    assert_eq!(world.committed.nodes[&item(2)].state, NodeState::Running);
    assert!(!world.committed.nodes.contains_key(&item(3)));
    world.crash();
    world.end_at(item(0), JobState::Succeeded);
    assert_eq!(world.committed.nodes[&item(3)].state, NodeState::Running);
}

#[test]
fn enough_successes_are_a_success() {
    for (min_success, failures, expected) in [
        (None, 1, NodeState::Failed),
        (Some(MinSuccess::Count(3)), 1, NodeState::Succeeded),
        (Some(MinSuccess::Count(3)), 2, NodeState::Failed),
        (Some(MinSuccess::Percent(75)), 1, NodeState::Succeeded),
        (Some(MinSuccess::Percent(76)), 1, NodeState::Failed),
        (Some(MinSuccess::Percent(0)), 4, NodeState::Succeeded),
    ] {
        let mut world = begin(vec![each(4, None, min_success)]);
        for at in 0..4 {
            world.end_at(item(at), if at < failures { JobState::Failed } else { JobState::Succeeded });
        }
        assert_eq!(world.state("each"), expected, "{min_success:?}, {failures} failed");
    }
}

#[test]
fn items_that_failed_are_null_in_the_list() {
    let mut world = begin(vec![each(2, None, Some(MinSuccess::Count(1)))]);
    world.end_at(item(0), JobState::Failed);
    world.end_at(item(1), JobState::Succeeded);
    assert_eq!(world.row("each").output.as_ref().unwrap().as_str(), "[null,1]");
    assert_eq!(world.run_state(), RunState::Succeeded);
}

/// Trap: cancel during the expansion.
#[test]
fn a_cancel_between_two_items_starts_no_more() {
    let mut world = begin(vec![each(4, Some(1), None)]);
    world.end_at(item(0), JobState::Succeeded);
    world.cancel(false).unwrap();
    assert_eq!(world.state("each"), NodeState::Running);
    world.end_at(item(1), JobState::Cancelled);
    assert_eq!((world.state("each"), world.run_state()), (NodeState::Canceled, RunState::Canceled));
    assert!(!world.committed.nodes.contains_key(&item(2)));
}

#[test]
fn a_cancel_while_no_item_is_under_way_ends_the_node() {
    let mut nodes = dag(vec![job("first", &[]), job("each", &[]).each(&json!([1, 2])), job("last", &[])]);
    nodes.max_parallelism = Some(1);
    let mut world = World::begin(nodes);
    world.order(super::super::RunCommand::Pause).unwrap();
    world.succeed("first");
    world.cancel(false).unwrap();
    states(&world, &[("each", NodeState::Canceled), ("last", NodeState::Canceled)]);
    assert_eq!(world.run_state(), RunState::Canceled);
}

#[test]
fn items_may_be_runs() {
    let mut world = begin(vec![sub_dag("each", &[]).each(&json!([1, 2]))]);
    let children: Vec<_> = world.runs.keys().cloned().collect();
    assert_eq!(children.len(), 2);
    for child in &children {
        let news = world.run_news(child, RunState::Succeeded);
        world.hear(&[news]);
    }
    assert_eq!(world.run_state(), RunState::Succeeded);
}
