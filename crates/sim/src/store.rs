//! The Store as one process sees it: slow, failing, and gone with the process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::ids::{EdgeId, JobId, JobSeq, SessionId};
use lockgate_core::job::{DeadLetter, Duty, Job};
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::memory::MemoryStore;
use lockgate_ports::{
    Change, ChangeError, DeadLetterQuery, EventPage, JobDetail, JobQuery, Jobs, Leases, Listing, LogLine, OutboxRow,
    SessionRow, Sessions, StoreError, Totals, Upkeep,
};

use crate::faults::Faults;
use crate::process::Lifeline;

pub(crate) struct FaultyStore {
    pub(crate) disk: MemoryStore,
    faults: Arc<Faults>,
    lifeline: Lifeline,
}

impl FaultyStore {
    pub(crate) fn new(disk: MemoryStore, faults: Arc<Faults>, lifeline: Lifeline) -> Self {
        Self { disk, faults, lifeline }
    }

    /// A call that may be slow, may fail, and may be the last one of this process.
    pub(crate) async fn before(&self) -> Result<(), StoreError> {
        if self.faults.inject(20, |i| &mut i.slow_calls) {
            tokio::time::sleep(Duration::from_millis(50) + self.faults.millis(1_500)).await;
        } else if self.faults.chance(300) {
            tokio::time::sleep(self.faults.millis(8)).await;
        }
        if self.faults.inject(1, |i| &mut i.crashes) {
            self.lifeline.crash().await;
        }
        self.lifeline.alive_or_never().await;
        if self.faults.inject(10, |i| &mut i.unavailable) {
            return Err(StoreError::Unavailable("simulated".into()));
        }
        Ok(())
    }

    /// What was read may be old news when it arrives.
    pub(crate) async fn arrive_late(&self) {
        if self.faults.chance(300) {
            tokio::time::sleep(self.faults.millis(8)).await;
        }
    }

    /// The change is on disk; the answer may be slow, lost, or come to nobody.
    pub(crate) async fn after(&self) -> Result<(), StoreError> {
        if self.faults.inject(2, |i| &mut i.crashes) {
            self.lifeline.crash().await;
        }
        if self.faults.chance(300) {
            tokio::time::sleep(self.faults.millis(8)).await;
        }
        self.lifeline.alive_or_never().await;
        if self.faults.inject(5, |i| &mut i.unknown_outcomes) {
            return Err(StoreError::UnknownOutcome("simulated".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl Jobs for FaultyStore {
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError> {
        self.before().await?;
        let outcome = self.disk.commit(changes).await;
        self.after().await?;
        outcome
    }

    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError> {
        self.before().await?;
        let jobs = self.disk.load(ids).await;
        self.arrive_late().await;
        jobs
    }

    async fn detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError> {
        self.before().await?;
        self.disk.detail(id).await
    }

    async fn events(&self, id: &JobId, after: u64) -> Result<Option<EventPage>, StoreError> {
        self.before().await?;
        self.disk.events(id, after).await
    }

    async fn list(&self, query: JobQuery) -> Result<Listing<Job>, StoreError> {
        self.before().await?;
        self.disk.list(query).await
    }

    async fn ready(&self, lane: &LaneKey, after: Option<ReadyKey>, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        let page = self.disk.ready(lane, after, limit).await;
        self.arrive_late().await;
        page
    }

    async fn ready_lanes(&self) -> Result<Vec<(LaneKey, u64)>, StoreError> {
        self.before().await?;
        self.disk.ready_lanes().await
    }

    async fn due(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        self.disk.due(after, limit).await
    }

    async fn pending(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        self.disk.pending(after, limit).await
    }

    async fn expired(&self, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        self.disk.expired(limit).await
    }

    async fn owing(&self, duty: Duty, after: JobSeq, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        let jobs = self.disk.owing(duty, after, limit).await;
        self.arrive_late().await;
        jobs
    }

    async fn held(&self, session: &SessionId) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        let jobs = self.disk.held(session).await;
        self.arrive_late().await;
        jobs
    }

    async fn bound(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, JobId)>, StoreError> {
        self.before().await?;
        let bound = self.disk.bound(sessions).await;
        self.arrive_late().await;
        bound
    }

    async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, StoreError> {
        self.before().await?;
        self.disk.dead_letters(query).await
    }

    async fn append_logs(&self, lines: Vec<LogLine>) -> Result<(), StoreError> {
        self.before().await?;
        self.disk.append_logs(lines).await
    }

    async fn logs(&self, id: &JobId, limit: usize) -> Result<Vec<LogLine>, StoreError> {
        self.before().await?;
        self.disk.logs(id, limit).await
    }
}

#[async_trait]
impl Sessions for FaultyStore {
    async fn renew_edge(&self, edge: &EdgeId, ttl: Duration) -> Result<bool, StoreError> {
        self.before().await?;
        let outcome = self.disk.renew_edge(edge, ttl).await;
        self.after().await?;
        outcome
    }

    async fn close_edges(&self, grace: Duration) -> Result<Vec<EdgeId>, StoreError> {
        self.before().await?;
        let outcome = self.disk.close_edges(grace).await;
        self.after().await?;
        outcome
    }

    async fn attach(&self, session: &SessionId, edge: &EdgeId, profile: &WorkerProfile) -> Result<u64, StoreError> {
        self.before().await?;
        let outcome = self.disk.attach(session, edge, profile).await;
        self.after().await?;
        outcome
    }

    async fn close_session(&self, session: &SessionId, epoch: u64) -> Result<bool, StoreError> {
        self.before().await?;
        let outcome = self.disk.close_session(session, epoch).await;
        self.after().await?;
        outcome
    }

    async fn open_sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.before().await?;
        self.disk.open_sessions().await
    }

    async fn closed_holding(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.before().await?;
        self.disk.closed_holding().await
    }
}

#[async_trait]
impl Leases for FaultyStore {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<u64>, StoreError> {
        self.before().await?;
        let outcome = self.disk.acquire(name, holder, ttl).await;
        self.after().await?;
        outcome
    }

    async fn release(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        self.before().await?;
        self.disk.release(name, holder).await
    }
}

#[async_trait]
impl Upkeep for FaultyStore {
    async fn outbox(&self, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.before().await?;
        self.disk.outbox(limit).await
    }

    async fn outbox_done(&self, ids: &[i64]) -> Result<(), StoreError> {
        self.before().await?;
        self.disk.outbox_done(ids).await
    }

    async fn prune(&self, keep: Duration, limit: usize) -> Result<u64, StoreError> {
        self.before().await?;
        self.disk.prune(keep, limit).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.before().await?;
        self.disk.totals().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.before().await?;
        self.disk.check().await
    }
}
