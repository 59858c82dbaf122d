//! Orphaned runs: runs that no message, timer or person will ever move on.

use std::time::Duration;

use super::plan::{Awaited, RunTransition, Settled, awaited};
use super::saga::Saga;
use super::{AnyRun, Closing, NodeKey, NodeState, Run, RunHead, RunState};
use crate::job::{Failure, Reason};
use crate::time::Timestamp;

/// What a sweep found about a run that it could not move on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    pub why: Unmoved,
    /// Whether a job or run that it waits for is under way.
    pub awaits: bool,
    /// How long the run has had its version, as far as this process knows.
    pub age: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmoved {
    /// Planning over all nodes changed nothing.
    NothingFollows,
    /// The definition does not exist, so no message, timer or person can move the run on.
    NoPlan,
    /// The definition exists and cannot be read, with the consequence of `NoPlan`.
    PlanUnreadable,
}

impl Unmoved {
    const fn as_str(self) -> &'static str {
        match self {
            Self::NothingFollows => "nothing was under way and nothing followed",
            Self::NoPlan => "nothing was under way and its definition is not there",
            Self::PlanUnreadable => "nothing was under way and its definition cannot be read",
        }
    }
}

/// the failure that ends a run which has not moved for `after`. A run that waits for a job, a run, a timer or people is
/// not orphaned.
pub fn orphaned(head: &RunHead, still: Standstill, after: Duration) -> Option<Failure> {
    let Standstill { why, awaits, age } = still;
    let goes_on = match why {
        Unmoved::NothingFollows => head.state != RunState::Running || head.wakes_at.is_some(),
        Unmoved::NoPlan | Unmoved::PlanUnreadable => head.state.is_over(),
    };
    let message = || format!("{} for {} s, at version {}", why.as_str(), age.as_secs(), head.version);
    (!goes_on && !awaits && age >= after).then(|| Failure::new(Reason::Orphaned, message()))
}

/// Ends a run without its plan: what was under way fails with it, and nothing is undone, because the compensations are in
/// the plan.
pub fn end_without_plan(mut run: Run, failure: Failure, now: Timestamp) -> (AnyRun, RunTransition) {
    let mut nodes = Vec::new();
    for (key, row) in run.nodes.iter_mut().filter(|(_, row)| !row.state.is_over()) {
        row.state = if row.state == NodeState::Running { NodeState::Failed } else { NodeState::Canceled };
        (row.ended_at, row.failure) = (Some(now), Some(failure.clone()));
        nodes.push((*key, row.clone()));
    }
    let done = run.nodes.iter().filter(|(key, row)| key.item.is_none() && row.state.is_over()).count();
    let head = &mut run.head;
    head.version += 1;
    (head.state, head.closing, head.paused) = (RunState::Failed, Some(Closing::Fail), false);
    (head.ended_at, head.wakes_at) = (Some(now), None);
    head.failure.get_or_insert(failure);
    head.done = u32::try_from(done).unwrap_or(u32::MAX);
    let settled = Settled { ended: nodes.iter().map(|(key, _)| *key).collect(), ..Settled::default() };
    let next = RunTransition {
        head: head.clone(),
        nodes,
        jobs: Vec::new(),
        dead: Vec::new(),
        runs: Vec::new(),
        stop_jobs: Vec::new(),
        stop_runs: Vec::new(),
        more: false,
        settled,
    };
    // A saga needs no plan, and the caller only counts the rows, so it can stand for any run without one.
    (Saga::new(run).into(), next)
}

impl Run {
    /// Jobs and runs that the rows wait for.
    pub fn waits(&self) -> Vec<(NodeKey, Awaited)> {
        self.nodes.iter().filter_map(|(key, row)| Some((*key, awaited(row)?))).collect()
    }
}
