//! The saga of a run: completed work is undone in reverse order.
//!
//! a node is undone only when all its descendants that need undoing are undone. Independent branches are undone in
//! parallel. A stuck compensation blocks only the nodes before it: all other work is undone while a person deals with it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Dag, Node, NodeIx, NodeKey, NodeRun, NodeState, NodeUndo, UndoState};
use super::RunPlanner;
use super::step::RunStep;
use crate::job::{Failure, JobState, Reason};
use crate::request::RunRef;

/// Progress of the undo. Present while the run is undone and afterwards; derived from the rows like all counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UndoPlan {
    /// For each node, how many children are not settled.
    children: Vec<u32>,
    /// For each node, how many of its own rows are not settled.
    rows: Vec<u32>,
    /// Rows to undo now, because everything after them is settled.
    pub(super) waiting: BTreeSet<NodeKey>,
    /// How many nodes are not settled.
    pub(super) open: u32,
    pub(super) stuck: u32,
}

/// exactly the completed work is undone. A quarantined result is completed work, and so is a late success. A memoised
/// result is never undone here: the loader refuses nodes that both memoise and have a compensation.
pub(super) fn needs_undo(node: &Node, key: NodeKey, row: &NodeRun) -> bool {
    let Some(compensation) = &node.compensation else { return false };
    // A `for_each` node has no job of its own; its items have.
    if node.for_each.is_some() && key.item.is_none() {
        return false;
    }
    let began = row.job.is_some() || row.child.is_some();
    match row.state {
        NodeState::Succeeded => true,
        NodeState::Failed | NodeState::Canceled => {
            began && (compensation.undo_on_failure || was_quarantined(row) || row.late)
        }
        NodeState::Pending | NodeState::Ready | NodeState::Running | NodeState::Skipped => false,
    }
}

pub(in crate::dag) fn was_quarantined(row: &NodeRun) -> bool {
    row.job.is_some() && row.failure.as_ref().is_some_and(|failure| failure.reason == Reason::OutputQuarantined)
}

fn is_settled(row: &NodeRun) -> bool {
    row.undo.as_ref().is_some_and(|undo| undo.state.is_settled())
}

fn is_stuck(row: &NodeRun) -> bool {
    row.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Stuck)
}

impl UndoPlan {
    pub(super) fn of(dag: &Dag, rows: &BTreeMap<NodeKey, NodeRun>) -> Self {
        let mut plan = Self {
            children: dag.nodes.iter().map(|node| u32::try_from(node.children.len()).unwrap_or(u32::MAX)).collect(),
            rows: vec![0; dag.nodes.len()],
            waiting: BTreeSet::new(),
            open: u32::try_from(dag.nodes.len()).unwrap_or(u32::MAX),
            stuck: 0,
        };
        for (key, row) in rows.iter().filter(|(key, row)| needs_undo(dag.node(key.node), **key, row)) {
            plan.rows[key.node as usize] += u32::from(!is_settled(row));
            plan.stuck += u32::from(is_stuck(row));
        }
        for node in (0..plan.open).rev().filter(|node| dag.node(*node).children.is_empty()) {
            plan.reach(dag, rows, node);
        }
        plan
    }

    /// All children of a node are settled: its own rows may be undone.
    fn reach(&mut self, dag: &Dag, rows: &BTreeMap<NodeKey, NodeRun>, node: NodeIx) {
        let mut reached = vec![node];
        while let Some(node) = reached.pop() {
            if self.rows[node as usize] > 0 {
                let owed = |(key, row): &(&NodeKey, &NodeRun)| needs_undo(dag.node(node), **key, row) && row.undo.is_none();
                self.waiting.extend(rows.range(RunPlanner::rows_of(node)).filter(owed).map(|(key, _)| *key));
                continue;
            }
            self.open -= 1;
            for parent in &dag.node(node).needs {
                let open = &mut self.children[*parent as usize];
                *open -= 1;
                if *open == 0 {
                    reached.push(*parent);
                }
            }
        }
    }

    /// A row that needs undoing changed.
    pub(super) fn changed(
        &mut self,
        dag: &Dag,
        rows: &BTreeMap<NodeKey, NodeRun>,
        key: NodeKey,
        old: &NodeRun,
        new: &NodeRun,
    ) {
        if new.undo.is_some() {
            self.waiting.remove(&key);
        }
        self.stuck = self.stuck + u32::from(is_stuck(new)) - u32::from(is_stuck(old));
        let open = &mut self.rows[key.node as usize];
        let was_open = *open;
        *open = was_open + u32::from(!is_settled(new)) - u32::from(!is_settled(old));
        if was_open > 0 && *open == 0 && self.children[key.node as usize] == 0 {
            self.reach(dag, rows, key.node);
        }
    }
}

/// Policy requires an approval before this compensation may run.
pub(in crate::dag) fn waits_for_people() -> Failure {
    Failure::new(Reason::Denied, "policy asks for a person's approval of the job that undoes it")
}

impl RunStep<'_> {
    /// All work has stopped: starts every compensation that may run now.
    pub(super) fn undo(&mut self) {
        while self.has_room() {
            let Some(key) = self.live.undo_plan().waiting.last().copied() else { return };
            self.start_undo(key, 0);
        }
    }

    pub(super) fn start_undo(&mut self, key: NodeKey, round: u32) {
        let (job, made) = self.live.undo_job(key, round);
        let failure = made.as_ref().err().cloned();
        let state = if failure.is_some() { UndoState::Stuck } else { UndoState::Running };
        self.jobs.extend(made.ok());
        self.change(key, |row| row.undo = Some(NodeUndo { state, job, round, failure, resolved_by: None }));
    }

    pub(super) fn hear_undo(&mut self, part: &RunRef, state: JobState, failure: Option<&Failure>) {
        let key = NodeKey { node: part.node, item: part.item };
        let Some(undo) = self.row(key).and_then(|row| row.undo.as_ref()).filter(|undo| undo.round == part.round) else {
            return;
        };
        // A late success overrides the guess: a compensation that was given up as lost and then succeeded is done.
        let done = matches!(state, JobState::Succeeded | JobState::OutputQuarantined);
        let asked = state == JobState::ApprovalRequired;
        match undo.state {
            UndoState::Running if asked => self.end_undo(key, UndoState::Stuck, Some(waits_for_people())),
            _ if !state.is_terminal() => {}
            UndoState::Running | UndoState::Stuck if done => self.end_undo(key, UndoState::Done, None),
            UndoState::Running => self.end_undo(key, UndoState::Stuck, Some(super::hear::or_in_words(failure, state))),
            UndoState::Stuck | UndoState::Done | UndoState::Resolved => {}
        }
    }

    pub(super) fn end_undo(&mut self, key: NodeKey, state: UndoState, failure: Option<Failure>) {
        self.change(key, |row| {
            if let Some(undo) = &mut row.undo {
                undo.state = state;
                undo.failure = failure;
            }
        });
    }
}
