//! The Store as one process sees it: slow, failing, and unusable once the process has died.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::{EdgeId, JobId, JobSeq, SessionId};
use lockgate_core::job::{DeadLetter, Duty, Job};
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::request::JobRequest;
use lockgate_core::worker::WorkerProfile;
use lockgate_model::MemoryStore;
use lockgate_ports::{
    AttachedSession, ChangeError, ChildJob, ChildQuery, DeadLetterQuery, DuplicateJob, EdgeRow, EventPage, JobChange,
    JobDetail, JobQuery, JobStore, KeptLine, Kin, LeaseRow, Leases, Listing, LogLine, Met, OutboxBacklog, OutboxRow, Pinned,
    SessionRow, Sessions, StoreError, Timelines, Totals, Tries, Unattached, Upkeep,
};
use parking_lot::Mutex;

use crate::faults::{Fault, Faults};
use crate::link::Link;
use crate::planted::{Bug, Planted};
use crate::process::Lifeline;
use crate::witness::Witness;

/// How long an adapter waits for its server.
const CALL_DEADLINE: Duration = Duration::from_secs(2);

pub(crate) struct FaultyStore {
    /// Used for reads. Writes go through the witness.
    pub(crate) disk: MemoryStore,
    pub(crate) witness: Arc<Witness>,
    pub(crate) planted: Arc<Planted>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) lifeline: Lifeline,
    pub(crate) link: Link,
    /// Whether it is a server, which several processes share.
    pub(crate) remote: bool,
    /// The id of the process's edge, if it has registered one.
    pub(crate) edge: Arc<Mutex<Option<EdgeId>>>,
}

impl FaultyStore {
    /// Before a call: it may be slow, may fail, and may be the last of this process.
    pub(crate) async fn before(&self) -> Result<(), StoreError> {
        if self.faults.inject(20, Fault::SlowCall) {
            tokio::time::sleep(Duration::from_millis(50) + self.faults.millis(1_500)).await;
        } else if self.faults.chance(300) {
            tokio::time::sleep(self.faults.millis(8)).await;
        }
        if self.faults.inject(1, Fault::Crash) {
            self.crash().await;
        }
        let stood = self.link.thawed().await;
        self.lifeline.alive_or_never().await;
        self.planted.flush(&self.disk).await;
        if stood >= CALL_DEADLINE {
            // The call exceeded its deadline while the process was stalled.
            return Err(StoreError::Unavailable("simulated: no answer in time".into()));
        }
        if self.link.is_cut_off() || self.faults.inject(1, Fault::CallHung) {
            tokio::time::sleep(CALL_DEADLINE).await;
            return Err(StoreError::Unavailable("simulated: no answer in time".into()));
        }
        if self.faults.store_is_away() || self.faults.inject(10, Fault::Unavailable) {
            return Err(StoreError::Unavailable("simulated".into()));
        }
        Ok(())
    }

    async fn crash(&self) {
        self.planted.power_cut();
        self.lifeline.crash().await;
    }

    /// A result may be outdated when it arrives.
    pub(crate) async fn arrive_late(&self) {
        if self.faults.chance(300) {
            tokio::time::sleep(self.faults.millis(8)).await;
        }
        self.link.thawed().await;
    }

    /// After a call: the change is on disk; the answer may be slow, or lost, or its caller dead.
    pub(crate) async fn after(&self) -> Result<(), StoreError> {
        if self.faults.inject(2, Fault::Crash) {
            self.crash().await;
        }
        if self.faults.chance(300) {
            tokio::time::sleep(self.faults.millis(8)).await;
        }
        let stood = self.link.thawed().await;
        self.lifeline.alive_or_never().await;
        if stood >= CALL_DEADLINE {
            return Err(StoreError::UnknownOutcome("simulated: no answer in time".into()));
        }
        if self.link.is_cut_off() || self.faults.inject(1, Fault::CallHung) {
            tokio::time::sleep(CALL_DEADLINE).await;
            return Err(StoreError::UnknownOutcome("simulated: no answer in time".into()));
        }
        if self.faults.inject(5, Fault::UnknownOutcome) {
            return Err(StoreError::UnknownOutcome("simulated".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl JobStore for FaultyStore {
    async fn commit(&self, changes: Vec<JobChange>) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError> {
        self.before().await?;
        let changes = self.planted.chosen(&self.disk, self.planted.asked(changes)).await;
        let outcome = self.witness.commit(changes).await;
        self.after().await?;
        outcome
    }

    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError> {
        self.before().await?;
        let jobs = self.disk.load(ids).await;
        self.arrive_late().await;
        jobs.map(|jobs| self.planted.loaded(jobs))
    }

    async fn find_duplicates(&self, requests: &[Arc<JobRequest>]) -> Result<Vec<Option<DuplicateJob>>, StoreError> {
        self.before().await?;
        self.disk.find_duplicates(requests).await
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
        page.map(|jobs| self.planted.named(jobs))
    }

    async fn ready_lanes(&self) -> Result<Vec<(LaneKey, u64)>, StoreError> {
        self.before().await?;
        self.disk.ready_lanes().await
    }

    async fn due(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        self.disk.due(after, limit).await.map(|jobs| self.planted.named(jobs))
    }

    async fn pending(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        self.disk.pending(after, limit).await.map(|jobs| self.planted.named(jobs))
    }

    async fn expired(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        if self.planted.is(Bug::DeadlinesForgotten) {
            return Ok(Vec::new());
        }
        self.disk.expired(after, limit).await
    }

    async fn owing(&self, duty: Duty, after: JobSeq, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.before().await?;
        let jobs = self.disk.owing(duty, after, limit).await;
        self.arrive_late().await;
        jobs.map(|jobs| self.planted.owing(duty, jobs))
    }

    async fn family(&self, lives: &[(JobId, u32)]) -> Result<Vec<Kin>, StoreError> {
        self.before().await?;
        let kin = self.disk.family(lives).await;
        self.arrive_late().await;
        kin
    }

    async fn under_way(&self, lives: &[(JobId, u32)]) -> Result<Vec<Option<JobSeq>>, StoreError> {
        self.before().await?;
        let latest = self.disk.under_way(lives).await;
        self.arrive_late().await;
        latest.map(|latest| self.planted.under_way(latest))
    }

    async fn children(&self, query: ChildQuery) -> Result<Listing<ChildJob>, StoreError> {
        self.before().await?;
        let children = self.disk.children(query).await;
        self.arrive_late().await;
        children
    }

    async fn live_children(
        &self,
        parent: &JobId,
        life: u32,
        after: JobSeq,
        limit: usize,
    ) -> Result<Vec<(JobSeq, JobId)>, StoreError> {
        self.before().await?;
        let live = self.disk.live_children(parent, life, after, limit).await;
        self.arrive_late().await;
        live
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

    async fn logs(&self, id: &JobId, after: u64, limit: usize) -> Result<Vec<KeptLine>, StoreError> {
        self.before().await?;
        self.disk.logs(id, after, limit).await
    }
}

#[async_trait]
impl Sessions for FaultyStore {
    async fn renew_edge(&self, edge: &EdgeId, ttl: Duration) -> Result<bool, StoreError> {
        *self.edge.lock() = Some(edge.clone());
        self.before().await?;
        if self.is_late(10) {
            let (witness, edge) = (self.witness.clone(), edge.clone());
            return Err(self.land_late(async move { witness.renew_edge(&edge, ttl).await }));
        }
        let outcome = self.witness.renew_edge(edge, ttl).await;
        self.after().await?;
        outcome
    }

    async fn open_edges(&self) -> Result<Vec<EdgeRow>, StoreError> {
        self.before().await?;
        self.disk.open_edges().await
    }

    async fn close_edges(&self, seen: &[EdgeRow], grace: Duration) -> Result<Vec<EdgeId>, StoreError> {
        self.before().await?;
        let outcome = self.witness.close_edges(seen, grace).await;
        self.after().await?;
        outcome
    }

    async fn attach(
        &self,
        session: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
    ) -> Result<Result<AttachedSession, Unattached>, StoreError> {
        self.before().await?;
        if self.is_late(20) {
            let witness = self.witness.clone();
            let (session, edge, profile) = (session.clone(), edge.clone(), profile.clone());
            return Err(self.land_late(async move { witness.attach(&session, &edge, &profile).await }));
        }
        let outcome = self.witness.attach(session, edge, profile).await;
        self.after().await?;
        outcome
    }

    async fn send_away(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.before().await?;
        let outcome = self.disk.send_away(sessions).await;
        self.after().await?;
        outcome
    }

    async fn close_session(&self, session: &SessionId, epoch: u64) -> Result<bool, StoreError> {
        self.before().await?;
        let by = self.edge.lock().clone();
        if self.is_late(50) {
            let (witness, session) = (self.witness.clone(), session.clone());
            return Err(self.land_late(async move { witness.close_session(&session, epoch, by).await }));
        }
        let outcome = self.witness.close_session(session, epoch, by).await;
        if matches!(outcome, Ok(true)) {
            self.faults.note_closed();
        }
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
        if self.is_late(1) {
            let (disk, name, holder) = (self.disk.clone(), name.to_owned(), holder.to_owned());
            return Err(self.land_late(async move { disk.acquire(&name, &holder, ttl).await }));
        }
        let outcome = self.disk.acquire(name, holder, ttl).await;
        self.after().await?;
        let doubled = self.planted.is(Bug::EverybodyLeads) || self.faults.inject(30, Fault::LeaderDoubled);
        if doubled { outcome.map(|epoch| epoch.or(Some(1))) } else { outcome }
    }

    async fn release(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        self.before().await?;
        self.disk.release(name, holder).await
    }

    async fn leases(&self) -> Result<Vec<LeaseRow>, StoreError> {
        self.before().await?;
        self.disk.leases().await
    }
}

#[async_trait]
impl Timelines for FaultyStore {
    async fn begin_timeline(&self, salt: [u8; 16], audit: AuditEntry) -> Result<Option<u64>, StoreError> {
        self.before().await?;
        self.disk.begin_timeline(salt, audit).await
    }
}

#[async_trait]
impl Tries for FaultyStore {
    async fn keep_tries(&self, text: &str) -> Result<(), StoreError> {
        self.before().await?;
        self.disk.keep_tries(text).await
    }

    async fn kept_tries(&self) -> Result<Option<Arc<str>>, StoreError> {
        self.before().await?;
        self.disk.kept_tries().await
    }
}

#[async_trait]
impl Upkeep for FaultyStore {
    async fn outbox(&self, after: i64, age: Duration, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.before().await?;
        self.disk.outbox(after, age, limit).await
    }

    async fn outbox_of(&self, jobs: &[JobId]) -> Result<Vec<OutboxRow>, StoreError> {
        self.before().await?;
        self.disk.outbox_of(jobs).await
    }

    async fn backlog(&self, limit: usize) -> Result<OutboxBacklog, StoreError> {
        self.before().await?;
        self.disk.backlog(limit).await
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

    fn unreadable(&self) -> Met {
        self.disk.unreadable()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.before().await?;
        self.disk.check().await
    }

    async fn pinned(&self) -> Result<Option<Pinned>, StoreError> {
        self.before().await?;
        self.disk.pinned().await
    }
}
