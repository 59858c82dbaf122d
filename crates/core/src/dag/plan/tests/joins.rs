//! The truth table, against an oracle that reads the ends one by one.

use super::super::join::{Decided, ParentEnds};
use super::*;
use crate::job::JobState;

const JOINS: [Join; 5] = [Join::AllSuccess, Join::AnySuccess, Join::AllDone, Join::OneFailed, Join::NoneFailed];
const OVER: [NodeState; 4] = [NodeState::Succeeded, NodeState::Failed, NodeState::Canceled, NodeState::Skipped];

/// Whether a node runs whose parents all ended like this.
fn runs(join: Join, ends: &[NodeState]) -> bool {
    let is = |wanted: NodeState| move |end: &NodeState| *end == wanted;
    match join {
        Join::AllSuccess => ends.iter().all(is(NodeState::Succeeded)),
        Join::AnySuccess => ends.is_empty() || ends.iter().any(is(NodeState::Succeeded)),
        Join::AllDone => true,
        Join::OneFailed => ends.is_empty() || ends.iter().any(is(NodeState::Failed)),
        Join::NoneFailed => !ends.iter().any(|end| matches!(end, NodeState::Failed | NodeState::Canceled)),
    }
}

/// Every list of so many ends.
fn combinations(of: &[NodeState], parents: usize) -> Vec<Vec<NodeState>> {
    (0..parents).fold(vec![Vec::new()], |lists, _| {
        lists.iter().flat_map(|list| of.iter().map(|end| [list.as_slice(), &[*end]].concat())).collect()
    })
}

fn decided(join: Join, known: &[NodeState], parents: usize) -> Decided {
    let mut ends = ParentEnds::default();
    known.iter().for_each(|end| ends.count(*end, 1));
    ends.decide(join, parents)
}

#[test]
fn every_join_decides_every_combination_like_the_oracle() {
    let mut looked = 0;
    for join in JOINS {
        for parents in 0..=3 {
            for ends in combinations(&OVER, parents) {
                let expected = if runs(join, &ends) { Decided::Run } else { Decided::Skip };
                assert_eq!(decided(join, &ends, parents), expected, "{join:?} {ends:?}");
                looked += 1;
            }
        }
    }
    assert_eq!(looked, 5 * (1 + 4 + 16 + 64));
}

/// Trap: a decision made early that the rest of the parents could have turned.
#[test]
fn what_is_decided_early_is_right_however_the_rest_ends() {
    for join in JOINS {
        for known in (1..3).flat_map(|known| combinations(&OVER, known)) {
            let early = decided(join, &known, 3);
            let mut possible =
                combinations(&OVER, 3 - known.len()).into_iter().map(|rest| runs(join, &[known.as_slice(), &rest].concat()));
            match early {
                Decided::Run => assert!(possible.all(|runs| runs), "{join:?} {known:?}"),
                Decided::Skip => assert!(possible.all(|runs| !runs), "{join:?} {known:?}"),
                Decided::Wait => {}
            }
            let has = |wanted: &[NodeState]| known.iter().any(|end| wanted.contains(end));
            let at_once = match join {
                Join::AllSuccess | Join::NoneFailed => has(&[NodeState::Failed, NodeState::Canceled]),
                Join::AnySuccess => has(&[NodeState::Succeeded]),
                Join::OneFailed => has(&[NodeState::Failed]),
                Join::AllDone => false,
            };
            assert_eq!(early != Decided::Wait, at_once, "{join:?} {known:?}");
        }
    }
}

/// Every join, through whole runs with the parents ending in every order.
#[test]
fn runs_follow_the_joins_in_whatever_order_the_parents_end() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for join in JOINS {
        for ends in combinations(&[NodeState::Succeeded, NodeState::Failed, NodeState::Skipped], 3) {
            for order in orders {
                let mut world = begin(parents_of_one(join, &ends));
                for at in order.iter().filter(|at| ends[**at] != NodeState::Skipped) {
                    let end = if ends[*at] == NodeState::Succeeded { JobState::Succeeded } else { JobState::Failed };
                    world.end(["a", "b", "c"][*at], end);
                }
                let expected = if runs(join, &ends) { NodeState::Running } else { NodeState::Skipped };
                assert_eq!(world.state("z"), expected, "{join:?} {ends:?} {order:?}");
            }
        }
    }
}

fn parents_of_one(join: Join, ends: &[NodeState]) -> Vec<Node> {
    let parent = |(name, end): (&str, &NodeState)| {
        let node = job(name, &[]).on_fail(OnFail::Continue);
        if *end == NodeState::Skipped { node.when("false") } else { node }
    };
    let mut nodes: Vec<Node> = ["a", "b", "c"].into_iter().zip(ends).map(parent).collect();
    nodes.push(job("z", &[0, 1, 2]).joined(join));
    nodes
}

#[test]
fn a_skipped_branch_does_not_skip_a_join_early() {
    let mut world = begin(vec![job("a", &[]).when("false"), job("b", &[]), job("z", &[0, 1])]);
    states(&world, &[("a", NodeState::Skipped), ("z", NodeState::Pending)]);
    world.succeed("b");
    states(&world, &[("z", NodeState::Skipped)]);
    assert_eq!(&*world.row("z").failure.as_ref().unwrap().message, r#"all_success does not hold: "a" is SKIPPED"#);
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn a_node_that_started_early_is_not_started_again_by_later_parents() {
    let mut world = begin(vec![job("a", &[]), job("b", &[]), job("z", &[0, 1]).joined(Join::AnySuccess)]);
    world.succeed("a");
    assert_eq!(world.state("z"), NodeState::Running);
    world.succeed("z");
    world.succeed("b");
    assert_eq!(world.jobs.len(), 3);
    assert_eq!(world.run_state(), RunState::Succeeded);
}
