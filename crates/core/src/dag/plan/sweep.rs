//! What a run is looked over for now and then, although nothing happened.

use std::collections::BTreeMap;

use super::super::{NodeKey, NodeRun, NodeState, UndoState};
use super::make::Made;
use super::step::Step;
use super::tally::Tally;
use super::{Live, Next, SubRun};
use crate::ids::{JobId, RunId};
use crate::time::Timestamp;

/// Effects that the rows imply, whether or not they were acted on before.
#[derive(Clone, Debug, Default)]
pub struct Implied {
    pub runs: Vec<SubRun>,
    pub stop_jobs: Vec<JobId>,
    pub stop_runs: Vec<RunId>,
}

/// What a node, or the undo of its work, waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    Job(JobId),
    Run(RunId),
}

impl Live {
    /// The sweep: forgets what was counted, counts anew, and plans over all nodes. Whatever a step has left is in the
    /// decision; what the rows imply is told again even if there is none.
    pub fn replan(&mut self, now: Timestamp) -> (Option<Next>, Implied) {
        self.tally = Tally::of(&self.dag, &self.run.nodes);
        (self.undo, self.expanded) = (None, BTreeMap::new());
        let total = self.total();
        let mut step = Step::of(self, now);
        if step.live.run.head.closing.is_some() {
            step.still();
        }
        let each = (0..total).filter(|node| step.state(*node) == NodeState::Running).collect::<Vec<_>>();
        each.into_iter().for_each(|node| step.settle_items(node));
        step.touch(0..total);
        let next = step.go_on();
        (next, self.implied())
    }

    /// Jobs and runs this run is waiting for.
    pub fn waits(&self) -> Vec<(NodeKey, Awaited)> {
        self.run.nodes.iter().filter_map(|(key, row)| Some((*key, awaited(row)?))).collect()
    }

    pub(super) fn to_stop(&self) -> (Vec<JobId>, Vec<RunId>) {
        let running = || self.run.nodes.values().filter(|row| row.state == NodeState::Running);
        (running().filter_map(|row| row.job.clone()).collect(), running().filter_map(|row| row.child.clone()).collect())
    }

    /// Effects that the rows imply, whether or not they were acted on before.
    pub fn implied(&mut self) -> Implied {
        if self.run.head.closing.is_some() {
            let (stop_jobs, stop_runs) = self.to_stop();
            return Implied { stop_jobs, stop_runs, runs: Vec::new() };
        }
        let begun = |(_, row): &(&NodeKey, &NodeRun)| row.state == NodeState::Running && row.child.is_some();
        let keys: Vec<NodeKey> = self.run.nodes.iter().filter(begun).map(|(key, _)| *key).collect();
        // One that cannot be made again is either there or lost: whoever sees that it is not there says so.
        let made = keys.into_iter().filter_map(|key| match self.make(key) {
            Ok(Made::Run(run)) => Some(run),
            _ => None,
        });
        Implied { runs: made.collect(), ..Implied::default() }
    }
}

pub(in crate::dag) fn awaited(row: &NodeRun) -> Option<Awaited> {
    if let Some(undo) = row.undo.as_ref().filter(|undo| undo.state == UndoState::Running) {
        return Some(Awaited::Job(undo.job.clone()));
    }
    let job = row.job.clone().map(Awaited::Job);
    job.or_else(|| row.child.clone().map(Awaited::Run)).filter(|_| row.state == NodeState::Running)
}
