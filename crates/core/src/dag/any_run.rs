//! A run of either kind: of a DAG, which has a plan, or the saga of plain jobs, which has none. The engine's run steps treat
//! both alike.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::plan::{Awaited, Implied, OrderRefusal, RunCommand, RunMessage, RunPlanner, RunTransition};
use super::saga::{Saga, outline};
use super::{Dag, NodeKey, NodeRun, NodeState, Run};
use crate::ids::SessionId;
use crate::job::Failure;
use crate::time::Timestamp;

#[derive(Clone, Debug)]
pub enum AnyRun {
    Dag(Box<RunPlanner>),
    Saga(Box<Saga>),
}

impl From<RunPlanner> for AnyRun {
    fn from(live: RunPlanner) -> Self {
        Self::Dag(Box::new(live))
    }
}

impl From<Saga> for AnyRun {
    fn from(saga: Saga) -> Self {
        Self::Saga(Box::new(saga))
    }
}

/// Calls one method on the planner of either kind.
macro_rules! either {
    ($self:ident, $flow:ident => $call:expr) => {
        match $self {
            Self::Dag($flow) => $call,
            Self::Saga($flow) => $call,
        }
    };
}

impl AnyRun {
    pub fn run(&self) -> &Run {
        either!(self, flow => flow.run())
    }

    /// The DAG to show the run by; for a saga, an outline made from its rows.
    pub fn dag(&self) -> Arc<Dag> {
        match self {
            Self::Dag(live) => live.dag().clone(),
            Self::Saga(saga) => Arc::new(outline(saga.run())),
        }
    }

    pub fn step(&mut self, news: &[RunMessage], now: Timestamp) -> Option<RunTransition> {
        either!(self, flow => flow.step(news, now))
    }

    pub fn order(&mut self, order: RunCommand, now: Timestamp) -> Result<Option<RunTransition>, OrderRefusal> {
        either!(self, flow => flow.order(order, now))
    }

    pub fn lost(&mut self, keys: &[NodeKey], now: Timestamp) -> Option<RunTransition> {
        either!(self, flow => flow.lost(keys, now))
    }

    /// Sessions of workers that the run waits for before it undoes anything.
    pub fn leaving(&self) -> BTreeSet<&SessionId> {
        either!(self, flow => flow.leaving())
    }

    /// These sessions are closed, so no revoked attempt is under way in them any more.
    pub fn left(&mut self, closed: &BTreeSet<SessionId>, now: Timestamp) -> Option<RunTransition> {
        either!(self, flow => flow.left(closed, now))
    }

    /// The sub-run that this node waits for could not begin. A saga has no sub-runs and starts only compensations.
    pub fn refused(&mut self, key: NodeKey, failure: Failure, now: Timestamp) -> Option<RunTransition> {
        match self {
            Self::Dag(live) => live.refused(key, failure, now),
            Self::Saga(_) => None,
        }
    }

    /// Ends a run that waits for nothing and that no decision moves on. The saga of plain jobs ends by itself when it is
    /// idle.
    pub fn orphaned(&mut self, failure: &Failure, now: Timestamp) -> Option<RunTransition> {
        match self {
            Self::Dag(live) => live.orphaned(failure, now),
            Self::Saga(_) => None,
        }
    }

    pub fn acknowledge(&mut self) -> RunTransition {
        either!(self, flow => flow.acknowledge())
    }

    pub fn replan(&mut self, now: Timestamp) -> (Option<RunTransition>, Implied) {
        either!(self, flow => flow.replan(now))
    }

    /// Restamps times that a clock ahead of the right time stamped. The saga of plain jobs has no long timers, so nothing
    /// changes.
    pub fn bring_back(&mut self, right: Timestamp) -> Option<RunTransition> {
        match self {
            Self::Dag(live) => live.bring_back(right),
            Self::Saga(_) => None,
        }
    }

    pub fn waits(&self) -> Vec<(NodeKey, Awaited)> {
        either!(self, flow => flow.waits())
    }

    pub fn implied(&mut self) -> Implied {
        either!(self, flow => flow.implied())
    }

    /// Whether the work of a row was done and has a compensation.
    pub fn can_undo(&self, key: NodeKey, row: &NodeRun) -> bool {
        match self {
            Self::Dag(live) => {
                let began = row.job.is_some() || row.child.is_some();
                live.dag().node(key.node).compensation.is_some() && began && (row.state == NodeState::Succeeded || row.late)
            }
            Self::Saga(_) => row.entry.is_some(),
        }
    }
}
