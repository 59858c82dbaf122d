//! DAGs, their runs, and what the runs have not heard yet.
//!
//! A job of a run that ends, and a run inside of a run that ends, leave a row of *news* in their own commit. One step of a
//! run consumes news and inserts jobs in one commit, so no process has to own a run and nothing between the two can be lost.
//!
//! The saga of plain jobs is a run too. Its jobs come from outside, so they leave news when they are born as well
//! (`Transition::tells_its_run`), and the first step that hears of one inserts the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::{NodeKey, NodeRun, Run, RunHead, RunState};
use lockgate_core::ids::{ActorId, JobId, JobSeq, RunId, TenantId};
use lockgate_core::job::{Earlier, Job, Transition};
use lockgate_core::request::{Json, RequestHash};
use lockgate_core::time::Timestamp;

use super::{Cursor, JobChange, Listing, OutboxEntry, StoreError};

#[async_trait]
pub trait RunStore: Send + Sync {
    /// Keeps a definition under the next version of its name, in one commit with its audit row. The text of the latest
    /// version again is that version: nothing is written.
    async fn put_dag(&self, dag: NewDag) -> Result<DagRow, StoreError>;

    /// One version, the latest if none is named.
    async fn dag(&self, tenant: &TenantId, name: &str, version: Option<u32>) -> Result<Option<DagRow>, StoreError>;

    /// The latest version of each DAG, by name, after a name.
    async fn dags(&self, tenant: &TenantId, after: Option<&str>, limit: usize) -> Result<Vec<DagRow>, StoreError>;

    /// commits each change alone, all of it or none of it, and durably before answering; results in the order sent.
    /// The sequence numbers of the jobs it inserted.
    ///
    /// A head of version 1 inserts a new run, unless its key is taken. Any other replaces the head with version − 1. Items of
    /// one call may take several steps of one run, in sequence. One that the Store cannot write fails alone.
    async fn advance(&self, changes: Vec<RunChange>) -> Result<Vec<Result<Vec<JobSeq>, RunRefusal>>, StoreError>;

    /// Whole runs by id, in the order asked. If one of them cannot be decoded, none is told.
    async fn load_runs(&self, ids: &[RunId]) -> Result<Vec<Option<Run>>, StoreError>;

    /// The head, and the nodes that changed after a version of the run, by key.
    async fn run_since(&self, id: &RunId, version: i64) -> Result<Option<Run>, StoreError>;

    /// The run that a key of a tenant names, and the hash of what was asked for.
    async fn run_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<(RunId, RequestHash)>, StoreError>;

    /// Newest first, without nodes.
    async fn list_runs(&self, query: RunQuery) -> Result<Listing<RunHead>, StoreError>;

    /// what these runs have not heard yet, oldest first. News of a job or a run that is gone or cannot be
    /// decoded are left out and stay.
    async fn news(&self, runs: &[RunId], limit: usize) -> Result<Vec<NewsRow>, StoreError>;

    /// Runs with news at least `age` old by the Store's clock, oldest news first, each once; of those that are not there only
    /// sagas, which begin with their first news. Reading stops after a bounded
    /// number of rows, so there may be more than are named.
    async fn unheard(&self, age: Duration, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// Live runs whose `wakes_at` was reached by the Store's clock, earliest first.
    async fn waking(&self, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// What came of the same work before, in the order asked: of each key the job that last succeeded under it, if its time
    /// is not over by the Store's clock, it still says SUCCEEDED, and its result is out. Without its payload.
    async fn memos(&self, keys: &[MemoKey]) -> Result<Vec<Option<Earlier>>, StoreError>;

    /// Live runs in the order of their ids, after one.
    async fn live_runs(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError>;
}

#[derive(Clone, Debug)]
pub struct NewDag {
    pub tenant: TenantId,
    pub name: Arc<str>,
    pub snapshot: Arc<str>,
    pub text: Arc<str>,
    pub actor: ActorId,
    /// Versions of the DAGs that its nodes start.
    pub pins: BTreeMap<Arc<str>, u32>,
    pub audit: AuditEntry,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DagRow {
    pub tenant: TenantId,
    pub name: Arc<str>,
    /// 1, 2, 3 … without gaps.
    pub version: u32,
    pub snapshot: Arc<str>,
    pub text: Arc<str>,
    pub actor: ActorId,
    pub at: Timestamp,
    pub pins: BTreeMap<Arc<str>, u32>,
}

/// One step of one run.
#[derive(Clone, Debug)]
pub struct RunChange {
    /// Its tenant, DAG and parent are those it began with.
    pub head: RunHead,
    /// Rows to write whole.
    pub nodes: Vec<(NodeKey, NodeRun)>,
    /// Jobs to insert. Each has version 1 and nothing in its way but its id: no idempotency key, and no evidence other than
    /// the policy in force. If that of one does not hold, the step is a conflict.
    pub jobs: Vec<Transition>,
    /// News of this run that the step consumed.
    pub heard: Vec<i64>,
    /// Names a new run to later starts, as long as other keys live.
    pub key: Option<RunKey>,
    pub audit: Vec<AuditEntry>,
    /// What must leave the system because of its jobs.
    pub outbox: Vec<(JobId, OutboxEntry)>,
}

impl RunChange {
    /// Its jobs, each with what must leave because of it.
    pub fn births(jobs: Vec<Transition>, outbox: Vec<(JobId, OutboxEntry)>) -> Vec<JobChange> {
        let mut changes: Vec<JobChange> = jobs.into_iter().map(JobChange::from).collect();
        for (job, entry) in outbox {
            let of = changes.iter_mut().find(|change| change.transition.job.request.job_id == job);
            if let Some(change) = of {
                change.outbox.push(entry);
            }
        }
        changes
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunKey {
    pub key: Arc<str>,
    /// Of what was asked: the same key with another one is a mistake.
    pub hash: RequestHash,
}

/// By what the same work of a tenant is known again: see `Transition::memoises`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoKey {
    pub tenant: TenantId,
    pub key: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunRefusal {
    /// Another process took a step, or a job id is taken: load again, decide again.
    #[error("the run changed meanwhile")]
    Conflict,
    #[error("the key is taken by run {run}")]
    Taken { run: RunId, hash: RequestHash },
    /// The Store does not take a row of it. Deciding again does not help.
    #[error("the store does not take it: {0}")]
    Refused(String),
}

#[derive(Clone, Debug)]
pub struct NewsRow {
    pub no: i64,
    pub run: RunId,
    pub what: RunNews,
}

/// As it is now, not as it was when the row was written.
#[derive(Clone, Debug)]
pub enum RunNews {
    /// A job of the run without its payload; the result only if it is out.
    Job { job: Box<Job>, result: Option<Json> },
    /// A run that a node waits for, over.
    Run(Box<RunHead>),
}

#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    pub tenant: Option<TenantId>,
    pub dag: Option<Arc<str>>,
    pub state: Option<RunState>,
    /// Only sagas of plain jobs, or only runs of DAGs.
    pub sagas: Option<bool>,
    pub cursor: Option<Cursor>,
    pub limit: usize,
}
