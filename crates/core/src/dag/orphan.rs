//! Runs that nothing will ever move again.

use std::time::Duration;

use super::plan::{Awaited, RunTransition, Settled, awaited};
use super::saga::Saga;
use super::{AnyRun, Closing, NodeKey, NodeState, Run, RunHead, RunState};
use crate::job::{Failure, Reason};
use crate::time::Timestamp;

/// What a sweep saw of a run that it could not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    pub why: Unmoved,
    /// Something that it waits for is under way.
    pub awaits: bool,
    /// How long it has had its version, as far as is known.
    pub age: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmoved {
    /// Planned anew, nothing followed.
    NothingFollows,
    /// Its definition is not there: neither news nor time nor people move it.
    NoPlan,
    /// Its definition is there and cannot be read, which comes to the same.
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

/// what becomes of a run that stood still for so long. One that waits for a job, a run, a time or people is not forgotten.
pub fn orphaned(head: &RunHead, still: Standstill, after: Duration) -> Option<Failure> {
    let Standstill { why, awaits, age } = still;
    let goes_on = match why {
        Unmoved::NothingFollows => head.state != RunState::Running || head.wakes_at.is_some(),
        Unmoved::NoPlan | Unmoved::PlanUnreadable => head.state.is_over(),
    };
    let message = || format!("{} for {} s, at version {}", why.as_str(), age.as_secs(), head.version);
    (!goes_on && !awaits && age >= after).then(|| Failure::new(Reason::Orphaned, message()))
}

/// Without its plan a run ends as it stands: what was under way failed with it, and nobody knows what to undo.
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
    // Whoever moves runs only counts the rows of one that has no plan.
    (Saga::new(run).into(), next)
}

impl Run {
    /// Jobs and runs that its rows wait for.
    pub fn waits(&self) -> Vec<(NodeKey, Awaited)> {
        self.nodes.iter().filter_map(|(key, row)| Some((*key, awaited(row)?))).collect()
    }
}
