//! Counts derived from the rows of a run, updated row by row so that a step need not look at all of them.
//!
//! the counts depend on the rows alone, never on the order in which they changed. So every process that loads the run
//! computes equal counts and makes equal decisions.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Dag, NodeIx, NodeKey, NodeRun, NodeState, NodeWork, UndoState};
use super::join::ParentEnds;
use crate::time::Timestamp;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunTally {
    /// For each node, how its parents ended.
    pub(super) parents: Vec<ParentEnds>,
    /// For each expanded `for_each` node.
    pub(super) items: BTreeMap<NodeIx, ItemTally>,
    /// Nodes with something to start that takes room within `max_parallelism`.
    pub(super) queue: BTreeSet<NodeIx>,
    /// Nodes to start that take no room: delays and approvals.
    pub(super) free: BTreeSet<NodeIx>,
    pub(super) delays: BTreeSet<(Timestamp, NodeIx)>,
    /// Rows with revoked attempts that workers may still be working on, by when these are over at the latest.
    pub(super) leaving: BTreeSet<(Timestamp, NodeKey)>,
    /// Jobs and sub-runs under way that take room, compensations included.
    pub(super) at_work: u32,
    /// Counts nodes, not items.
    pub(super) over: u32,
    pub(super) failed: u32,
    /// Counts rows, items included.
    pub(super) tainted: u32,
}

/// Progress of the items of one node. Items start in order, so the next to start has the number of those started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ItemTally {
    pub(super) at_work: u32,
    pub(super) succeeded: u32,
    pub(super) failed: u32,
    pub(super) canceled: u32,
}

impl ItemTally {
    pub(super) const fn started(self) -> u32 {
        self.at_work + self.succeeded + self.failed + self.canceled
    }
}

impl RunTally {
    pub(super) fn of(dag: &Dag, rows: &BTreeMap<NodeKey, NodeRun>) -> Self {
        let mut tally = Self { parents: vec![ParentEnds::default(); dag.nodes.len()], ..Self::default() };
        for (key, row) in rows {
            tally.count(dag, *key, row, 1);
        }
        for (key, row) in rows.iter().filter(|(key, _)| key.item.is_none()) {
            tally.queue_up(dag, key.node, Some(row));
        }
        tally
    }

    /// Updates the counts for a changed row. `node` is the row of its node after the change.
    pub(super) fn changed(&mut self, dag: &Dag, key: NodeKey, old: Option<&NodeRun>, new: &NodeRun, node: Option<&NodeRun>) {
        if let Some(old) = old {
            self.count(dag, key, old, -1);
        }
        self.count(dag, key, new, 1);
        self.queue_up(dag, key.node, node);
    }

    fn count(&mut self, dag: &Dag, key: NodeKey, row: &NodeRun, by: i32) {
        let shift = |count: &mut u32, when: bool| {
            if when {
                *count = count.saturating_add_signed(by);
            }
        };
        shift(&mut self.at_work, takes_room(dag, key, row));
        shift(&mut self.at_work, row.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Running));
        shift(&mut self.tainted, row.tainted);
        if let Some(until) = row.left_by() {
            if by > 0 {
                self.leaving.insert((until, key))
            } else {
                self.leaving.remove(&(until, key))
            };
        }
        if key.item.is_some() {
            return self.count_item(key.node, row.state, by);
        }
        shift(&mut self.over, row.state.is_over());
        shift(&mut self.failed, row.state == NodeState::Failed);
        if let (NodeState::Running, Some(at)) = (row.state, row.wakes_at) {
            if by > 0 {
                self.delays.insert((at, key.node))
            } else {
                self.delays.remove(&(at, key.node))
            };
        }
        if row.state.is_over() {
            for child in &dag.node(key.node).children {
                self.parents[*child as usize].count(row.state, by);
            }
        }
    }

    fn count_item(&mut self, node: NodeIx, state: NodeState, by: i32) {
        let items = self.items.entry(node).or_default();
        let count = match state {
            NodeState::Running => Some(&mut items.at_work),
            NodeState::Succeeded => Some(&mut items.succeeded),
            NodeState::Failed => Some(&mut items.failed),
            NodeState::Canceled => Some(&mut items.canceled),
            NodeState::Pending | NodeState::Ready | NodeState::Skipped => None,
        };
        if let Some(count) = count {
            *count = count.saturating_add_signed(by);
        }
        if *items == ItemTally::default() {
            self.items.remove(&node);
        }
    }

    fn queue_up(&mut self, dag: &Dag, node: NodeIx, row: Option<&NodeRun>) {
        let queue = if is_free(&dag.node(node).work) { &mut self.free } else { &mut self.queue };
        let starts = match row {
            Some(row) if row.state == NodeState::Ready => true,
            Some(row) if row.state == NodeState::Running => row.items.as_ref().is_some_and(|items| {
                let tally = self.items.get(&node).copied().unwrap_or_default();
                let concurrency = dag.node(node).for_each.as_ref().and_then(|each| each.concurrency).unwrap_or(u32::MAX);
                tally.started() < items.count && tally.at_work < concurrency.max(1)
            }),
            _ => false,
        };
        if starts {
            queue.insert(node)
        } else {
            queue.remove(&node)
        };
    }
}

/// Whether the work needs no worker and takes no room from work that does.
pub(super) const fn is_free(work: &NodeWork) -> bool {
    matches!(work, NodeWork::Delay(_) | NodeWork::Approval(_))
}

fn takes_room(dag: &Dag, key: NodeKey, row: &NodeRun) -> bool {
    let waits = row.job.is_some() || row.child.is_some();
    waits && row.state == NodeState::Running && !is_free(&dag.node(key.node).work)
}
