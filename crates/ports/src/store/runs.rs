//! DAGs, their runs, and the messages that runs have not taken yet.
//!
//! A job of a run and a sub-run write a row of *news*, a message to their run, in the commit that ends them. A step of the
//! run takes messages and inserts jobs in one commit, so no process has to own a run, and nothing in between can be lost.
//!
//! The saga of plain jobs is a run too. Its jobs come from outside, so they also write a message when they are created
//! (`Transition::tells_its_run`), and the first step that takes one inserts the run.

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
    /// Stores a definition under the next version of its name, in one commit with its audit row. If the text equals that of
    /// the latest version, that version is returned and nothing is written.
    async fn put_dag(&self, dag: NewDag) -> Result<DagRow, StoreError>;

    /// One version; the latest if none is named.
    async fn dag(&self, tenant: &TenantId, name: &str, version: Option<u32>) -> Result<Option<DagRow>, StoreError>;

    /// The latest version of each DAG, by name, after a name.
    async fn dags(&self, tenant: &TenantId, after: Option<&str>, limit: usize) -> Result<Vec<DagRow>, StoreError>;

    /// commits each change on its own, completely or not at all, and durably before answering; results in the order of
    /// `changes`: the sequence numbers of the inserted jobs.
    ///
    /// A head of version 1 inserts a new run, unless its key is taken. Any other replaces the head with version − 1. Items
    /// of one call may take several steps of one run, in sequence. An item that the Store cannot write fails alone.
    async fn advance(&self, changes: Vec<RunChange>) -> Result<Vec<Result<Vec<JobSeq>, RunRefusal>>, StoreError>;

    /// Whole runs by id, in the order of `ids`. If one of them cannot be decoded, the whole call fails.
    async fn load_runs(&self, ids: &[RunId]) -> Result<Vec<Option<Run>>, StoreError>;

    /// The head, and the nodes that changed after a version of the run, by key.
    async fn run_since(&self, id: &RunId, version: i64) -> Result<Option<Run>, StoreError>;

    /// The run that a tenant's key names, and the hash of what was asked for.
    async fn run_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<(RunId, RequestHash)>, StoreError>;

    /// Runs, newest first, without nodes.
    async fn list_runs(&self, query: RunQuery) -> Result<Listing<RunHead>, StoreError>;

    /// messages that these runs have not taken, oldest first. Messages about a job or run that was deleted or cannot be
    /// decoded are left out and stay.
    async fn news(&self, runs: &[RunId], limit: usize) -> Result<Vec<NewsRow>, StoreError>;

    /// Runs with messages at least `age` old by the Store's clock, oldest message first, each once. Of runs that do not
    /// exist only sagas are listed, which begin with their first message. Reading stops after a bounded number of rows, so
    /// there may be more.
    async fn unheard(&self, age: Duration, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// Live runs whose `wakes_at` was reached by the Store's clock, earliest first.
    async fn waking(&self, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// Stored results by key, in the order of `keys`: for each key the job that last succeeded under it, if the result has
    /// not expired by the Store's clock, the job is still SUCCEEDED, and its result is exposed. Without its payload.
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
    /// The versions of the DAGs that its nodes start.
    pub pins: BTreeMap<Arc<str>, u32>,
    pub audit: AuditEntry,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DagRow {
    pub tenant: TenantId,
    pub name: Arc<str>,
    /// Numbered from 1 without gaps.
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
    /// The head. Its tenant, DAG and parent never change.
    pub head: RunHead,
    /// Rows to write, complete.
    pub nodes: Vec<(NodeKey, NodeRun)>,
    /// Jobs to insert. Each has version 1, no idempotency key, and no evidence other than the policy in force, so only its
    /// id can conflict. If the evidence of one does not hold, the step is a conflict.
    pub jobs: Vec<Transition>,
    /// Messages that the step has taken.
    pub heard: Vec<i64>,
    /// A key by which later starts find the new run, valid as long as other keys.
    pub key: Option<RunKey>,
    pub audit: Vec<AuditEntry>,
    /// Outbox entries that follow from its jobs.
    pub outbox: Vec<(JobId, OutboxEntry)>,
}

impl RunChange {
    /// Its jobs, each with its outbox entries.
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
    /// A hash of what was asked for: a repeated key with another hash is a mistake.
    pub hash: RequestHash,
}

/// The key of equal work of a tenant: see `Transition::memoises`.
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
    /// The Store refuses a row of the step. Deciding again does not help.
    #[error("the store does not take it: {0}")]
    Refused(String),
}

#[derive(Clone, Debug)]
pub struct NewsRow {
    pub no: i64,
    pub run: RunId,
    pub what: RunNews,
}

/// The present state of a job or sub-run, not the state when the message was written.
#[derive(Clone, Debug)]
pub enum RunNews {
    /// A job of the run without its payload; the result only if it is exposed.
    Job { job: Box<Job>, result: Option<Json> },
    /// A sub-run that is over.
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
