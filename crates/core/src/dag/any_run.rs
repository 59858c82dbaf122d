//! A run of either kind: of a DAG, which has a plan, or the saga of plain jobs, which has none. Whoever moves runs treats
//! them alike.

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

/// The same call of whichever it is.
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

    /// What it is shown by.
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

    /// Sessions of workers that it waits for before it undoes anything.
    pub fn leaving(&self) -> BTreeSet<&SessionId> {
        either!(self, flow => flow.leaving())
    }

    /// These sessions are closed: nothing of what was taken from them is under way any more.
    pub fn left(&mut self, closed: &BTreeSet<SessionId>, now: Timestamp) -> Option<RunTransition> {
        either!(self, flow => flow.left(closed, now))
    }

    /// What this node waits for could not begin. Only a DAG starts anything but undos.
    pub fn refused(&mut self, key: NodeKey, failure: Failure, now: Timestamp) -> Option<RunTransition> {
        match self {
            Self::Dag(live) => live.refused(key, failure, now),
            Self::Saga(_) => None,
        }
    }

    /// Nothing follows, and nothing is under way. The saga of plain jobs is over by itself once nothing happens.
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

    /// What a clock that was ahead stamped is counted from now. The saga of plain jobs has nothing that waits for long.
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

    /// Whether the work of a row was done and can be undone.
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
