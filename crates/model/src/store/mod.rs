//! The in-memory Store: the model every other adapter is compared with.
//!
//! One mutex around plain ordered maps. Each call takes the lock once and never waits while holding it, so every call
//! is atomic. Clones share their data: dropping an engine and opening another one on a clone is a restart on the
//! same disk.

mod commit;
mod credentials;
mod data;
mod injected_faults;
mod reads;
mod run_reads;
mod runs;
mod schedules;
mod sessions;
mod tenants;
mod timelines;
mod trail;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::audit::{AuditEntry, AuditRow, Block};
use lockgate_core::dag::{Run, RunHead};
use lockgate_core::ids::{EdgeId, JobId, JobSeq, RunId, SessionId, TenantId};
use lockgate_core::job::{DeadLetter, Duty, Earlier, Job};
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::request::{JobRequest, RequestHash};
use lockgate_core::time::Timestamp;
use lockgate_core::worker::WorkerProfile;
use parking_lot::{Mutex, MutexGuard};

use data::Data;
pub use injected_faults::{DispatchFault, HealthAnswer};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{
    Activation, Active, AttachedSession, AuditStore, ChangeError, ChildJob, ChildQuery, DagRow, DeadLetterQuery,
    DuplicateJob, EdgeRow, EventPage, JobChange, JobDetail, JobQuery, JobStore, KeptLine, Kin, LeaseRow, Leases, Listing,
    LogLine, MemoKey, Met, NewDag, NewsRow, OutboxBacklog, OutboxRow, Outdated, Pinned, RunChange, RunQuery, RunRefusal,
    RunStore, SessionRow, Sessions, SnapshotKind, SnapshotRow, Snapshots, StoreError, Totals, Tries, Unattached, Upkeep,
};
pub use timelines::MemoryBackup;

#[derive(Clone)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    data: Arc<Mutex<Data>>,
    mood: injected_faults::InjectedFaults,
}

impl MemoryStore {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, data: Arc::default(), mood: injected_faults::InjectedFaults::default() }
    }

    /// The data, and the Store's time for whatever is done with it.
    fn open(&self) -> (MutexGuard<'_, Data>, Timestamp) {
        (self.data.lock(), self.clock.now())
    }
}

#[async_trait]
impl JobStore for MemoryStore {
    async fn commit(&self, changes: Vec<JobChange>) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError> {
        self.mood.let_go(&changes).await?;
        let (mut data, now) = self.open();
        Ok(data.commit(changes, now))
    }

    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError> {
        let (data, _) = self.open();
        data.decode(ids)?;
        Ok(ids.iter().map(|id| data.row(id).map(|row| row.job.clone())).collect())
    }

    async fn find_duplicates(&self, requests: &[Arc<JobRequest>]) -> Result<Vec<Option<DuplicateJob>>, StoreError> {
        let (data, now) = self.open();
        Ok(requests.iter().map(|request| data.taken(request, now)).collect())
    }

    async fn detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError> {
        let (data, _) = self.open();
        data.decode(std::slice::from_ref(id))?;
        Ok(data.row(id).map(|row| JobDetail {
            job: row.job.clone(),
            events: row.events.clone(),
            result: row.result.clone(),
        }))
    }

    async fn events(&self, id: &JobId, after: u64) -> Result<Option<EventPage>, StoreError> {
        let (data, _) = self.open();
        Ok(data.row(id).map(|row| EventPage {
            events: row.events.iter().filter(|event| event.n > after).cloned().collect(),
            state: row.job.state(),
        }))
    }

    async fn list(&self, query: JobQuery) -> Result<Listing<Job>, StoreError> {
        Ok(self.open().0.list(&query))
    }

    async fn ready(&self, lane: &LaneKey, after: Option<ReadyKey>, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.mood.turn_ready().await;
        let (data, now) = self.open();
        Ok(data.ready(lane, after, now, limit))
    }

    async fn ready_lanes(&self) -> Result<Vec<(LaneKey, u64)>, StoreError> {
        let (data, now) = self.open();
        Ok(data.ready_lanes(now))
    }

    async fn due(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.mood.turn_page().await;
        let (data, now) = self.open();
        let jobs = data.due(after, now, limit);
        self.mood.read_due(jobs.len());
        Ok(jobs)
    }

    async fn pending(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        let (data, now) = self.open();
        Ok(data.pending(after, now, limit))
    }

    async fn expired(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.mood.turn_page().await;
        let (data, now) = self.open();
        Ok(data.expired(after, now, limit))
    }

    async fn owing(&self, duty: Duty, after: JobSeq, limit: usize) -> Result<Vec<Job>, StoreError> {
        Ok(self.open().0.owing(duty, after, limit))
    }

    async fn family(&self, lives: &[(JobId, u32)]) -> Result<Vec<Kin>, StoreError> {
        Ok(self.open().0.family(lives))
    }

    async fn under_way(&self, lives: &[(JobId, u32)]) -> Result<Vec<Option<JobSeq>>, StoreError> {
        self.mood.shows(lives)?;
        Ok(self.open().0.under_way(lives))
    }

    async fn children(&self, query: ChildQuery) -> Result<Listing<ChildJob>, StoreError> {
        self.open().0.children(&query)
    }

    async fn live_children(
        &self,
        parent: &JobId,
        life: u32,
        after: JobSeq,
        limit: usize,
    ) -> Result<Vec<(JobSeq, JobId)>, StoreError> {
        Ok(self.open().0.live_children(parent, life, after, limit))
    }

    async fn held(&self, session: &SessionId) -> Result<Vec<Job>, StoreError> {
        Ok(self.open().0.held(session))
    }

    async fn bound(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, JobId)>, StoreError> {
        Ok(self.open().0.bound(sessions))
    }

    async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, StoreError> {
        Ok(self.open().0.dead_letters(&query))
    }

    async fn append_logs(&self, lines: Vec<LogLine>) -> Result<(), StoreError> {
        self.open().0.append_logs(lines);
        Ok(())
    }

    async fn logs(&self, id: &JobId, after: u64, limit: usize) -> Result<Vec<KeptLine>, StoreError> {
        Ok(self.open().0.logs(id, after, limit))
    }
}

#[async_trait]
impl RunStore for MemoryStore {
    async fn put_dag(&self, dag: NewDag) -> Result<DagRow, StoreError> {
        let (mut data, now) = self.open();
        Ok(data.put_dag(dag, now))
    }

    async fn dag(&self, tenant: &TenantId, name: &str, version: Option<u32>) -> Result<Option<DagRow>, StoreError> {
        Ok(self.open().0.dag(tenant, name, version))
    }

    async fn dags(&self, tenant: &TenantId, after: Option<&str>, limit: usize) -> Result<Vec<DagRow>, StoreError> {
        Ok(self.open().0.dags(tenant, after, limit))
    }

    async fn advance(&self, changes: Vec<RunChange>) -> Result<Vec<Result<Vec<JobSeq>, RunRefusal>>, StoreError> {
        let (mut data, now) = self.open();
        Ok(changes.into_iter().map(|change| data.advance(change, now)).collect())
    }

    async fn load_runs(&self, ids: &[RunId]) -> Result<Vec<Option<Run>>, StoreError> {
        let (data, _) = self.open();
        data.decode_runs(ids)?;
        Ok(ids.iter().map(|id| data.run_since(id, 0)).collect())
    }

    async fn run_since(&self, id: &RunId, version: i64) -> Result<Option<Run>, StoreError> {
        let (data, _) = self.open();
        data.decode_runs(std::slice::from_ref(id))?;
        Ok(data.run_since(id, version))
    }

    async fn run_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<(RunId, RequestHash)>, StoreError> {
        let (data, now) = self.open();
        Ok(data.run_of_key(tenant, key, now))
    }

    async fn list_runs(&self, query: RunQuery) -> Result<Listing<RunHead>, StoreError> {
        Ok(self.open().0.list_runs(&query))
    }

    async fn news(&self, runs: &[RunId], limit: usize) -> Result<Vec<NewsRow>, StoreError> {
        Ok(self.open().0.news(runs, limit))
    }

    async fn unheard(&self, age: Duration, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let (data, now) = self.open();
        Ok(data.unheard(now - age, limit))
    }

    async fn waking(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let (data, now) = self.open();
        Ok(data.waking(now, limit))
    }

    async fn memos(&self, keys: &[MemoKey]) -> Result<Vec<Option<Earlier>>, StoreError> {
        let (data, now) = self.open();
        Ok(keys.iter().map(|key| data.memo(key, now)).collect())
    }

    async fn live_runs(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        Ok(self.open().0.live_runs(after, limit))
    }
}

#[async_trait]
impl Sessions for MemoryStore {
    async fn renew_edge(&self, edge: &EdgeId, ttl: Duration) -> Result<bool, StoreError> {
        let (mut data, now) = self.open();
        Ok(data.renew_edge(edge, now + ttl))
    }

    async fn open_edges(&self) -> Result<Vec<EdgeRow>, StoreError> {
        Ok(self.open().0.open_edges())
    }

    async fn close_edges(&self, seen: &[EdgeRow], grace: Duration) -> Result<Vec<EdgeId>, StoreError> {
        let (mut data, now) = self.open();
        Ok(data.close_edges(seen, grace, now))
    }

    async fn attach(
        &self,
        session: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
    ) -> Result<Result<AttachedSession, Unattached>, StoreError> {
        let (mut data, now) = self.open();
        Ok(data.attach(session, edge, profile, now))
    }

    async fn send_away(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.open().0.send_away(sessions);
        Ok(())
    }

    async fn close_session(&self, session: &SessionId, epoch: u64) -> Result<bool, StoreError> {
        let (mut data, now) = self.open();
        Ok(data.close_session(session, epoch, now))
    }

    async fn open_sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        Ok(self.open().0.open_sessions())
    }

    async fn closed_holding(&self) -> Result<Vec<SessionRow>, StoreError> {
        Ok(self.open().0.closed_holding())
    }
}

#[async_trait]
impl Leases for MemoryStore {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<u64>, StoreError> {
        let (mut data, now) = self.open();
        Ok(data.acquire(name, holder, ttl, now))
    }

    async fn release(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        self.open().0.release(name, holder);
        Ok(())
    }

    async fn leases(&self) -> Result<Vec<LeaseRow>, StoreError> {
        let (data, now) = self.open();
        Ok(data.leases(now))
    }
}

#[async_trait]
impl Tries for MemoryStore {
    async fn keep_tries(&self, text: &str) -> Result<(), StoreError> {
        self.open().0.tries = Some(text.into());
        Ok(())
    }

    async fn kept_tries(&self) -> Result<Option<Arc<str>>, StoreError> {
        Ok(self.open().0.tries.clone())
    }
}

#[async_trait]
impl Snapshots for MemoryStore {
    async fn activate(&self, change: Activation) -> Result<Result<u64, Outdated>, StoreError> {
        let (mut data, now) = self.open();
        Ok(data.activate(change, now))
    }

    async fn active(&self, kind: SnapshotKind) -> Result<Option<Active>, StoreError> {
        self.mood.tells(kind)?;
        Ok(self.open().0.active(kind).cloned())
    }

    async fn snapshots(&self, kind: SnapshotKind, limit: usize) -> Result<Vec<SnapshotRow>, StoreError> {
        Ok(self.open().0.snapshots(kind, limit))
    }

    async fn snapshot(&self, kind: SnapshotKind, id: &str) -> Result<Option<Arc<str>>, StoreError> {
        Ok(self.open().0.snapshot(kind, id))
    }
}

#[async_trait]
impl AuditStore for MemoryStore {
    async fn audit(&self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        let (data, _) = self.open();
        Ok(data.audit.iter().filter(|row| row.id > after).take(limit).cloned().collect())
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.open().0.keep_audit(entries);
        Ok(())
    }

    async fn blocks(&self, after: u64, limit: usize) -> Result<Vec<Block>, StoreError> {
        let (data, _) = self.open();
        Ok(data.blocks.iter().filter(|block| block.no > after).take(limit).cloned().collect())
    }

    async fn head(&self) -> Result<Option<Block>, StoreError> {
        Ok(self.open().0.blocks.last().cloned())
    }

    async fn seal(&self, block: &Block) -> Result<bool, StoreError> {
        Ok(self.open().0.seal(block))
    }
}

#[async_trait]
impl Upkeep for MemoryStore {
    async fn outbox(&self, after: i64, age: Duration, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let (data, now) = self.open();
        let rows = data.outbox.range(after.saturating_add(1)..).map(|(_, row)| row);
        Ok(rows.filter(|row| row.at <= now - age).take(limit).cloned().collect())
    }

    async fn outbox_of(&self, jobs: &[JobId]) -> Result<Vec<OutboxRow>, StoreError> {
        let (data, _) = self.open();
        Ok(data.outbox.values().filter(|row| jobs.contains(&row.job_id)).cloned().collect())
    }

    async fn backlog(&self, limit: usize) -> Result<OutboxBacklog, StoreError> {
        let (data, now) = self.open();
        let looked_at = || data.outbox.values().take(limit);
        let oldest = looked_at().map(|row| now.since(row.at)).max().unwrap_or_default();
        Ok(OutboxBacklog { rows: looked_at().count() as u64, oldest })
    }

    async fn outbox_done(&self, ids: &[i64]) -> Result<(), StoreError> {
        let (mut data, _) = self.open();
        for id in ids {
            data.outbox.remove(id);
        }
        Ok(())
    }

    async fn prune(&self, keep: Duration, limit: usize) -> Result<u64, StoreError> {
        self.mood.turn_page().await;
        let (mut data, now) = self.open();
        Ok(data.prune(keep, limit, now))
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        Ok(self.open().0.totals())
    }

    fn unreadable(&self) -> Met {
        self.open().0.unreadable.met()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.mood.answer().await
    }

    async fn pinned(&self) -> Result<Option<Pinned>, StoreError> {
        Ok(self.mood.pinned())
    }
}
