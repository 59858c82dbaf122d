//! The sweep: a periodic look at a whole run, in case a message or an effect was lost.

use std::collections::BTreeMap;

use super::super::{Delay, NodeIx, NodeKey, NodeRun, NodeState, NodeWork, UndoState};
use super::make::Made;
use super::step::RunStep;
use super::tally::RunTally;
use super::{RunPlanner, RunTransition, SubRun};
use crate::clock_guard::stamped_ahead;
use crate::ids::{JobId, RunId};
use crate::time::Timestamp;

/// Effects that follow from the rows, including those that were performed before.
#[derive(Clone, Debug, Default)]
pub struct Implied {
    pub runs: Vec<SubRun>,
    pub stop_jobs: Vec<JobId>,
    pub stop_runs: Vec<RunId>,
}

/// The job or run that a node, or its compensation, waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    Job(JobId),
    Run(RunId),
}

impl RunPlanner {
    /// The sweep: computes all counts anew and decides all nodes. Whatever a step has missed is in the transition; effects
    /// that follow from the rows are returned again even without a transition.
    pub fn replan(&mut self, now: Timestamp) -> (Option<RunTransition>, Implied) {
        self.tally = RunTally::of(&self.dag, &self.run.nodes);
        (self.undo, self.expanded) = (None, BTreeMap::new());
        let total = self.total();
        let mut step = RunStep::of(self, now);
        if step.live.run.head.closing.is_some() {
            step.still();
        }
        let each = (0..total).filter(|node| step.state(*node) == NodeState::Running).collect::<Vec<_>>();
        each.into_iter().for_each(|node| step.settle_items(node));
        step.touch(0..total);
        let next = step.go_on();
        (next, self.implied())
    }

    /// Restamps a run that a clock ahead of the right time stamped: its deadline and the delays of its nodes move back by as
    /// much as their stamps lie in the future. None if none does.
    pub fn bring_back(&mut self, right: Timestamp) -> Option<RunTransition> {
        let mut step = RunStep::of(self, right);
        if step.bring_back() { step.go_on() } else { None }
    }

    /// Jobs and runs that the run waits for.
    pub fn waits(&self) -> Vec<(NodeKey, Awaited)> {
        self.run.nodes.iter().filter_map(|(key, row)| Some((*key, awaited(row)?))).collect()
    }

    pub(super) fn to_stop(&self) -> (Vec<JobId>, Vec<RunId>) {
        let running = || self.run.nodes.values().filter(|row| row.state == NodeState::Running);
        (running().filter_map(|row| row.job.clone()).collect(), running().filter_map(|row| row.child.clone()).collect())
    }

    /// Effects that follow from the rows, including those that were performed before.
    pub fn implied(&mut self) -> Implied {
        if self.run.head.closing.is_some() {
            let (stop_jobs, stop_runs) = self.to_stop();
            return Implied { stop_jobs, stop_runs, runs: Vec::new() };
        }
        let begun = |(_, row): &(&NodeKey, &NodeRun)| row.state == NodeState::Running && row.child.is_some();
        let keys: Vec<NodeKey> = self.run.nodes.iter().filter(begun).map(|(key, _)| *key).collect();
        // A sub-run that can no longer be made either exists or is lost; the check for lost sub-runs reports the latter.
        let made = keys.into_iter().filter_map(|key| match self.make(key) {
            Ok(Made::Run(run)) => Some(run),
            _ => None,
        });
        Implied { runs: made.collect(), ..Implied::default() }
    }
}

impl RunStep<'_> {
    fn bring_back(&mut self) -> bool {
        let right = self.now;
        let head = self.head();
        let born = stamped_ahead(head.began_at, right);
        if let Some(born) = born {
            head.began_at = right;
            head.deadline_at = head.deadline_at.map(|at| at - born);
        }
        let mut moved = born.is_some();
        let waiting: Vec<NodeIx> = self.live.tally.delays.iter().map(|(_, node)| *node).collect();
        for node in waiting {
            // A moment that the DAG names was not computed from a stamp.
            let counted = matches!(self.live.dag.node(node).work, NodeWork::Delay(Delay::For { .. }));
            let began_at = self.row(NodeKey::of(node)).and_then(|row| row.began_at).filter(|_| counted);
            let Some(ahead) = began_at.and_then(|at| stamped_ahead(at, right)) else { continue };
            self.change(NodeKey::of(node), |row| {
                row.began_at = Some(right);
                row.wakes_at = row.wakes_at.map(|at| at - ahead);
            });
            moved = true;
        }
        moved
    }
}

pub(in crate::dag) fn awaited(row: &NodeRun) -> Option<Awaited> {
    if let Some(undo) = row.undo.as_ref().filter(|undo| undo.state == UndoState::Running) {
        return Some(Awaited::Job(undo.job.clone()));
    }
    let job = row.job.clone().map(Awaited::Job);
    job.or_else(|| row.child.clone().map(Awaited::Run)).filter(|_| row.state == NodeState::Running)
}
