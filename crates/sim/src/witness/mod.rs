//! The witness: sees every change that the Store acknowledged, keeps its own record of them, and reports violations.
//!
//! The witness stands between the processes and the disk. It knows the requests and the Store's answers, and trusts neither
//! the engine's memory nor the Store's rows. In the end its record is compared with the disk.

mod evidence;
mod families;
mod flows;
mod jobs;
mod others;
mod sagas;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{EdgeId, JobId, RunId, SessionId, TenantId, Topic};
use lockgate_core::job::{JobState, Leaving};
use lockgate_core::schedule::SlotKey;
use lockgate_core::time::Timestamp;
use lockgate_core::worker::WorkerProfile;
use lockgate_model::MemoryStore;
use lockgate_ports::{Clock, JobStore, RunStore, Sessions, SnapshotKind};
use parking_lot::Mutex;

use crate::check::{Violation, ensure};
use crate::planted::Planted;

pub(crate) use flows::Piece;

pub(crate) struct Witness {
    disk: MemoryStore,
    clock: Arc<dyn Clock>,
    planted: Arc<Planted>,
    books: Mutex<Books>,
}

/// What must be true if every answer of the Store was true.
#[derive(Default)]
struct Books {
    jobs: BTreeMap<JobId, JobBook>,
    /// Jobs that each session holds.
    held: BTreeMap<SessionId, BTreeSet<JobId>>,
    sessions: BTreeMap<SessionId, SessionBook>,
    edges: BTreeMap<EdgeId, EdgeLease>,
    /// The latest versions of the configuration in force.
    in_force: BTreeMap<SnapshotKind, (u64, Arc<str>)>,
    runs: BTreeMap<RunId, i64>,
    /// Runs that were seen to close.
    closing: BTreeSet<RunId>,
    /// The job of each part of each run.
    parts: BTreeMap<StepKey, JobId>,
    sagas: BTreeMap<RunId, sagas::Log>,
    families: families::Families,
    /// Shared with the witness that continues after a restore.
    workers: Arc<Mutex<workers::WorkerBooks>>,
    /// Jobs with a late result.
    late: BTreeSet<JobId>,
    /// For each run, the workers that may still be working on revoked attempts of its jobs, in the latest life of each.
    leaving: BTreeMap<RunId, BTreeMap<JobId, (u32, Vec<Leaving>)>>,
    /// For each run, the latest life of each of its jobs whose end it has been told.
    heard_of: BTreeMap<RunId, BTreeMap<JobId, u32>>,
    /// Lives whose late result was recorded.
    noted: BTreeSet<(JobId, u32)>,
    schedules: BTreeMap<(TenantId, Arc<str>), i64>,
    slots: BTreeSet<(TenantId, Arc<str>, SlotKey)>,
    /// Limits on running jobs of a topic, where they are guaranteed.
    limits: BTreeMap<Topic, usize>,
    policies: BTreeMap<Arc<str>, Meaning>,
    /// Pool states that close the only pool.
    closed: BTreeSet<Arc<str>>,
    /// Jobs that a person approved.
    approved: BTreeSet<JobId>,
    objections: Vec<Violation>,
}

/// The topic that a policy denies, and the one for which it requires approval.
#[derive(Clone, Default)]
struct Meaning {
    denied: Option<Topic>,
    asks: Option<Topic>,
}

/// Run, node, item, round, and whether it is a compensation.
type StepKey = (RunId, u32, Option<u32>, u32, bool);

struct JobBook {
    version: i64,
    life: u32,
    attempt: u32,
    state: JobState,
    events: u64,
    topic: Topic,
    holder: Option<SessionId>,
    /// The work is done, and the result waits for its scan.
    looked_at: bool,
    /// The last dispatched attempt; 0 before the first.
    dispatched: u32,
    /// Of the current attempt.
    dispatched_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
}

struct SessionBook {
    epoch: u64,
    open: bool,
    slots: usize,
    edge: EdgeId,
    /// The silence after which the worker counts as lost, as the worker was told.
    promised: Duration,
    /// When its edge last heard from it, and the longest silence before.
    heard_at: Timestamp,
    silent: Duration,
    /// Whether its edge was told that it drains.
    drains: bool,
}

impl SessionBook {
    fn new(epoch: u64, edge: EdgeId, profile: &WorkerProfile, now: Timestamp) -> Self {
        let (slots, promised) = (profile.slots as usize, profile.lost_after(Duration::ZERO));
        Self { epoch, open: true, slots, edge, promised, heard_at: now, silent: Duration::ZERO, drains: false }
    }

    /// The longest silence under this epoch. Not the last one, because the worker may speak while it is being closed.
    fn longest_silence(&self, now: Timestamp) -> Duration {
        self.silent.max(now.since(self.heard_at))
    }
}

struct EdgeLease {
    renewed_at: Timestamp,
    ends_at: Timestamp,
}

impl Books {
    fn require(&mut self, holds: bool, rule: &'static str, detail: impl FnOnce() -> String) {
        if !holds {
            self.objections.push(Violation::new(rule, detail()));
        }
    }

    fn in_force(&self, kind: SnapshotKind) -> &str {
        match self.in_force.get(&kind) {
            Some((_, id)) => id,
            None => kind.builtin(),
        }
    }
}

impl Witness {
    pub(crate) fn new(disk: MemoryStore, clock: Arc<dyn Clock>, planted: Arc<Planted>) -> Self {
        Self { disk, clock, planted, books: Mutex::default() }
    }

    /// A new witness for a restored disk, with a record read from it.
    pub(crate) async fn after_restore(&self) -> Result<Self, Violation> {
        let read = |error: lockgate_ports::StoreError| Violation::new("the disk is read", error.to_string());
        let jobs = self.disk.load(&self.jobs()).await.map_err(read)?;
        let open = self.disk.open_sessions().await.map_err(read)?;
        let closed = self.disk.closed_holding().await.map_err(read)?;
        let fresh = Self::new(self.disk.clone(), self.clock.clone(), self.planted.clone());
        let mut books = fresh.books.lock();
        books.workers = self.books.lock().workers.clone();
        for job in jobs.iter().flatten() {
            books.enter(job);
        }
        for (row, open) in open.into_iter().map(|row| (row, true)).chain(closed.into_iter().map(|row| (row, false))) {
            let session = SessionBook::new(row.epoch, row.edge, &row.profile, self.clock.now());
            books.sessions.insert(row.session, SessionBook { open, ..session });
        }
        drop(books);
        Ok(fresh)
    }

    /// From now on at most `max` jobs of a topic may run at once.
    pub(crate) fn expect_limit(&self, topic: &str, max: usize) {
        self.books.lock().limits.insert(topic.into(), max);
    }

    pub(crate) fn expect_policy(&self, snapshot: &Arc<str>, denied: Option<&str>, asks: Option<&str>) {
        let meaning = Meaning { denied: denied.map(Topic::from), asks: asks.map(Topic::from) };
        self.books.lock().policies.insert(snapshot.clone(), meaning);
    }

    pub(crate) fn expect_closed(&self, states: Arc<str>) {
        self.books.lock().closed.insert(states);
    }

    pub(crate) fn expect_approval(&self, job: &JobId) {
        self.books.lock().approved.insert(job.clone());
    }

    pub(crate) fn jobs(&self) -> Vec<JobId> {
        self.books.lock().jobs.keys().cloned().collect()
    }

    /// The first violation; then whatever the disk lost or changed without a recorded request.
    pub(crate) async fn testify(&self) -> Result<(), Violation> {
        if let Some(objection) = self.books.lock().objections.first().cloned() {
            return Err(objection);
        }
        let read = |error: lockgate_ports::StoreError| Violation::new("the disk is read", error.to_string());
        let jobs = self.jobs();
        let rows = self.disk.load(&jobs).await.map_err(read)?;
        let runs: Vec<RunId> = self.books.lock().runs.keys().cloned().collect();
        let heads = self.disk.load_runs(&runs).await.map_err(read)?;
        let books = self.books.lock();
        for (id, row) in jobs.iter().zip(rows) {
            let written = books.jobs.get(id).map(|entry| (entry.version, entry.events));
            let found = row.map(|job| (job.version, job.life.events));
            ensure(written == found, "S-2 what was committed is there", || format!("{id}: {written:?}, on disk {found:?}"))?;
        }
        for (id, run) in runs.iter().zip(heads) {
            let found = run.map(|run| run.head.version);
            ensure(books.runs.get(id) == found.as_ref(), "R-1 a step that was taken is there", || id.to_string())?;
        }
        Ok(())
    }
}
