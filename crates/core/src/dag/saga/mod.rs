//! The saga of plain jobs that share a workflow: once one of them fails for good, completed work is undone in reverse order.
//!
//! A saga is a run without a plan. Its jobs leave messages in the commits of their creation and end, like the jobs of every
//! run; a step turns the messages into rows. A row with completed work and a compensation is an entry of the log, numbered
//! in commit order. R-7 holds as for DAGs. R-8 replaces: without edges the order of the commits is all that is
//! known, so entries are undone strictly in reverse.

mod compensation;
mod entry;
mod orders;
mod outline;
mod step;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::plan::{Awaited, Implied, OrderRefusal, RunCommand, RunMessage, RunTransition, awaited};
use super::{Closing, DagRef, NodeIx, NodeKey, NodeRun, NodeState, Run, RunHead, RunState};
use crate::ids::{JobId, RunId, SessionId, TenantId};
use crate::job::{Failure, Reason};
use crate::request::{JobRequest, Json, RunRef};
use crate::time::Timestamp;

pub use compensation::SagaCompensation;
pub use entry::{SagaEntry, UNREADABLE_TOPIC};
pub use outline::outline;
use step::SagaStep;

/// A workflow without events for this long is over. A later job reopens it, as long as it is remembered.
pub const IDLE: Duration = Duration::from_secs(3600);
/// The most jobs of one workflow, because all are in memory during a step.
pub const JOBS_MAX: u32 = 10_000;

/// A saga in memory, with counts derived from its rows.
#[derive(Clone, Debug)]
pub struct Saga {
    run: Run,
    jobs: BTreeMap<JobId, NodeIx>,
    running: BTreeSet<NodeKey>,
    /// Rows with revoked attempts that workers may still be working on, by when these are over at the latest.
    leaving: BTreeSet<(Timestamp, NodeKey)>,
    /// The time of the latest event.
    quiet_since: Timestamp,
    entries: u32,
}

/// The id of the saga of a tenant's workflow, derived so that all its jobs find it without a lookup.
pub fn run_id(tenant: &TenantId, workflow: &str) -> RunId {
    RunId::new(format!("{}{}", RunId::SAGA_PREFIX, derived_uuid(&Sha256::digest(format!("saga|{tenant}|{workflow}")))))
}

/// The saga that a plain job belongs to. Its node number is assigned when the saga first sees the job.
pub(crate) fn part(tenant: &TenantId, workflow: &str) -> RunRef {
    RunRef { run: run_id(tenant, workflow), node: 0, item: None, round: 0, undo: false }
}

fn derived_uuid(hash: &[u8]) -> uuid::Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// The DAG name of a saga: its workflow, at version 0.
fn named(workflow: &str) -> DagRef {
    DagRef { name: workflow.into(), version: 0 }
}

impl Saga {
    /// Begins a saga with the first of its jobs that a message reports.
    pub fn begin(request: &JobRequest, now: Timestamp) -> Self {
        let workflow = request.workflow_id.as_deref().unwrap_or_default();
        Self::new(Run {
            head: RunHead {
                id: run_id(&request.tenant, workflow),
                version: 0,
                dag: named(workflow),
                tenant: request.tenant.clone(),
                actor: request.actor.clone(),
                actor_type: request.actor_type.clone(),
                actor_verified: request.actor_verified,
                params: Json::null(),
                state: RunState::Running,
                began_at: now,
                ended_at: None,
                deadline_at: None,
                timeout_ms: None,
                wakes_at: None,
                paused: false,
                failure: None,
                closing: None,
                tainted: false,
                output: None,
                parent: None,
                trace: None,
                fresh: false,
                reruns: 0,
                done: 0,
                total: 0,
            },
            nodes: BTreeMap::new(),
        })
    }

    /// Loads a saga and computes all counts from its rows.
    pub fn new(run: Run) -> Self {
        let jobs = run.nodes.iter().filter_map(|(key, row)| Some((row.job.clone()?, key.node))).collect();
        let under_way = run.nodes.iter().filter(|(_, row)| row.state == NodeState::Running);
        let running = under_way.map(|(key, _)| *key).collect();
        let leaving = run.nodes.iter().filter_map(|(key, row)| Some((row.left_by()?, *key))).collect();
        let ends = run.nodes.values().filter_map(|row| row.ended_at);
        let quiet_since = ends.fold(run.head.began_at, Timestamp::max);
        let entries = run.nodes.values().map(|row| row.entry_no).max().unwrap_or(0);
        Self { run, jobs, running, leaving, quiet_since, entries }
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Decides what follows from the messages and the time. None: nothing changes.
    pub fn step(&mut self, news: &[RunMessage], now: Timestamp) -> Option<RunTransition> {
        let mut step = SagaStep::of(self, now);
        for (at, one) in news.iter().enumerate() {
            step.hear(one, &news[at + 1..]);
        }
        step.go_on()
    }

    pub fn order(&mut self, order: RunCommand, now: Timestamp) -> Result<Option<RunTransition>, OrderRefusal> {
        let mut step = SagaStep::of(self, now);
        step.obey(order)?;
        Ok(step.go_on())
    }

    /// The jobs that these rows wait for do not exist any more: the rows fail, or their compensations are stuck.
    pub fn lost(&mut self, keys: &[NodeKey], now: Timestamp) -> Option<RunTransition> {
        let mut step = SagaStep::of(self, now);
        for key in keys {
            step.give_up(*key, Failure::new(Reason::Orphaned, "what it waited for does not exist any more"));
        }
        step.go_on()
    }

    /// Sessions of workers that the saga waits for before it undoes anything.
    pub fn leaving(&self) -> BTreeSet<&SessionId> {
        let undoes = self.run.head.closing.is_some_and(Closing::undoes);
        let rows = self.leaving.iter().filter(|_| undoes).filter_map(|(_, key)| self.run.nodes.get(key));
        rows.flat_map(NodeRun::sessions_leaving).collect()
    }

    /// These sessions are closed, so no revoked attempt is under way in them any more.
    pub fn left(&mut self, closed: &BTreeSet<SessionId>, now: Timestamp) -> Option<RunTransition> {
        let mut step = SagaStep::of(self, now);
        step.note_closed(closed);
        step.go_on()
    }

    /// A transition without changes, to be committed with messages that changed nothing, so that they are not read again.
    pub fn acknowledge(&mut self) -> RunTransition {
        SagaStep::of(self, Timestamp::default()).bare()
    }

    /// The sweep: computes all counts anew and decides from them.
    pub fn replan(&mut self, now: Timestamp) -> (Option<RunTransition>, Implied) {
        *self = Self::new(self.run.clone());
        let next = SagaStep::of(self, now).go_on();
        (next, self.implied())
    }

    pub fn waits(&self) -> Vec<(NodeKey, Awaited)> {
        self.run.nodes.iter().filter_map(|(key, row)| Some((*key, awaited(row)?))).collect()
    }

    /// the effects that stop what is still under way in a closed saga.
    pub fn implied(&self) -> Implied {
        let closed = self.run.head.closing.is_some();
        Implied { stop_jobs: if closed { self.to_stop() } else { Vec::new() }, ..Implied::default() }
    }

    fn to_stop(&self) -> Vec<JobId> {
        self.running.iter().filter_map(|key| self.run.nodes.get(key)?.job.clone()).collect()
    }
}
