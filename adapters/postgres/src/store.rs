//! Implements the Store: changes go to the writing tasks, all other calls to the pool.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::audit::{AuditEntry, AuditRow, Block};
use lockgate_core::ids::{EdgeId, JobId, JobSeq, SessionId};
use lockgate_core::job::{DeadLetter, Duty, Job};
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::request::JobRequest;
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::{
    Activation, Active, AttachedSession, AuditStore, ChangeError, ChildJob, ChildQuery, DeadLetterQuery, DuplicateJob,
    EdgeRow, EventPage, JobChange, JobDetail, JobQuery, JobStore, KeptLine, Kin, LeaseRow, Leases, Listing, LogLine, Met,
    OutboxBacklog, OutboxRow, Outdated, Pinned, SessionRow, Sessions, SnapshotKind, SnapshotRow, Snapshots, StoreError,
    Timelines, Totals, Tries, Unattached, Unreadable, Upkeep,
};
use lockgate_sql::ErasureSearch;

use crate::counters::StoreCounters;
use crate::encoded_change::EncodedChange;
use crate::error::{StatementError, UnusableDatabase};
use crate::options::{ConnectOptions, Dialect};
use crate::pool::{AccessMode, ConnectionPool, Connector};
use crate::writer::WriterHandle;
use crate::{reads, schema, writes};

/// Runs a call on a pooled connection, within the deadline, and repeats it if the server asks for that.
macro_rules! ask {
    ($store:ident, $kind:ident, $conn:ident => $work:expr) => {{
        let mut turn = $store.pool.turn(AccessMode::$kind).await?;
        loop {
            let mut conn = turn.conn().await?;
            let answer = {
                let $conn = &mut conn;
                tokio::time::timeout_at(turn.deadline, $work).await
            };
            if let Some(answer) = turn.judge(conn, answer).await {
                break answer;
            }
        }
    }};
}

mod credentials;
mod runs;
mod schedules;
mod tenants;

/// Jobs deleted by one transaction.
const PRUNED_AT_ONCE: usize = 1_000;

/// The Store on one database. Any number of instances, in any number of processes, may share it.
pub struct PostgresStore {
    pool: ConnectionPool,
    writer: WriterHandle,
    unreadable: Unreadable,
    searched: ErasureSearch,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// The database must be migrated before: see [`migrate`](crate::migrate).
    pub async fn connect(options: ConnectOptions) -> Result<Self, UnusableDatabase> {
        let (client, _driver) = options.wire.dial(&options.config).await.map_err(UnusableDatabase::Unreachable)?;
        schema::check(&client, options.dialect).await?;
        drop(client);
        let connector = Arc::new(Connector::new(options));
        let (unreadable, searched) = (Unreadable::default(), ErasureSearch::default());
        Ok(Self { writer: WriterHandle::start(&connector), pool: ConnectionPool::new(connector), unreadable, searched })
    }

    pub fn counters(&self) -> StoreCounters {
        self.pool.connector.tally.read()
    }

    fn now(&self) -> Option<i64> {
        self.pool.connector.options.now()
    }

    fn begin(&self) -> &'static str {
        self.pool.connector.options.begin()
    }

    /// Must precede reading back a change that may have been committed with unknown outcome.
    async fn fenced(&self) -> Result<(), StoreError> {
        let Connector { options, .. } = &*self.pool.connector;
        let fenced = tokio::time::timeout(options.deadline, self.pool.connector.fence()).await;
        fenced.unwrap_or(Err(StatementError::TimedOut)).map_err(|fault| fault.before_commit())
    }

    /// Deletes whole runs until they and their nodes are `limit` rows or more.
    async fn prune_runs(&self, keep: Duration, limit: usize) -> Result<u64, StoreError> {
        let (mut gone, mut rows) = (0, 0);
        while rows < limit {
            let batch = (limit - rows).min(PRUNED_AT_ONCE);
            let (runs, went) = ask!(self, Writes, conn => writes::prune_runs(conn, self.now(), keep, batch))?;
            if runs == 0 {
                break;
            }
            gone += runs;
            rows += went;
        }
        ask!(self, Writes, conn => writes::forget_of_runs(conn, self.now(), keep))?;
        Ok(gone)
    }

    async fn prune_slots(&self, keep: Duration, limit: usize) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            let batch = limit.saturating_sub(usize::try_from(gone).unwrap_or(usize::MAX)).min(PRUNED_AT_ONCE);
            let went = ask!(self, Writes, conn => writes::prune_slots(conn, self.now(), keep, batch))?;
            gone += went;
            if went < PRUNED_AT_ONCE as u64 {
                return Ok(gone);
            }
        }
    }
}

#[async_trait]
impl JobStore for PostgresStore {
    async fn commit(&self, changes: Vec<JobChange>) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let sheets = changes.into_iter().map(EncodedChange::fill).collect::<Result<Vec<EncodedChange>, StatementError>>();
        self.writer.commit(sheets.map_err(|fault| fault.before_commit())?).await
    }

    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError> {
        self.fenced().await?;
        ask!(self, Reads, conn => reads::load(conn, ids))
    }

    async fn find_duplicates(&self, requests: &[Arc<JobRequest>]) -> Result<Vec<Option<DuplicateJob>>, StoreError> {
        ask!(self, Reads, conn => reads::duplicates(conn, self.now(), requests))
    }

    async fn detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError> {
        ask!(self, Reads, conn => reads::detail(conn, id))
    }

    async fn events(&self, id: &JobId, after: u64) -> Result<Option<EventPage>, StoreError> {
        ask!(self, Reads, conn => reads::events(conn, id, after))
    }

    async fn list(&self, query: JobQuery) -> Result<Listing<Job>, StoreError> {
        ask!(self, Reads, conn => reads::list(conn, &self.unreadable, &query))
    }

    async fn ready(&self, lane: &LaneKey, after: Option<ReadyKey>, limit: usize) -> Result<Vec<Job>, StoreError> {
        ask!(self, Reads, conn => reads::ready(conn, &self.unreadable, self.now(), lane, after, limit))
    }

    async fn ready_lanes(&self) -> Result<Vec<(LaneKey, u64)>, StoreError> {
        ask!(self, Reads, conn => reads::ready_lanes(conn, &self.unreadable, self.now()))
    }

    async fn due(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        ask!(self, Reads, conn => reads::queue(conn, &self.unreadable, reads::DUE, self.now(), after, limit))
    }

    async fn pending(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        ask!(self, Reads, conn => reads::queue(conn, &self.unreadable, reads::PENDING, self.now(), after, limit))
    }

    async fn expired(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        ask!(self, Reads, conn => reads::queue(conn, &self.unreadable, reads::EXPIRED, self.now(), after, limit))
    }

    async fn owing(&self, duty: Duty, after: JobSeq, limit: usize) -> Result<Vec<Job>, StoreError> {
        ask!(self, Reads, conn => reads::owing(conn, &self.unreadable, duty, after, limit))
    }

    async fn family(&self, lives: &[(JobId, u32)]) -> Result<Vec<Kin>, StoreError> {
        ask!(self, Reads, conn => reads::family(conn, lives))
    }

    async fn under_way(&self, lives: &[(JobId, u32)]) -> Result<Vec<Option<JobSeq>>, StoreError> {
        ask!(self, Reads, conn => reads::under_way(conn, lives))
    }

    async fn children(&self, query: ChildQuery) -> Result<Listing<ChildJob>, StoreError> {
        ask!(self, Reads, conn => reads::children(conn, &query))
    }

    async fn live_children(
        &self,
        parent: &JobId,
        life: u32,
        after: JobSeq,
        limit: usize,
    ) -> Result<Vec<(JobSeq, JobId)>, StoreError> {
        ask!(self, Reads, conn => reads::live_children(conn, parent, life, after, limit))
    }

    async fn held(&self, session: &SessionId) -> Result<Vec<Job>, StoreError> {
        ask!(self, Reads, conn => reads::held(conn, &self.unreadable, session))
    }

    async fn bound(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, JobId)>, StoreError> {
        ask!(self, Reads, conn => reads::bound(conn, sessions))
    }

    async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, StoreError> {
        ask!(self, Reads, conn => reads::dead_letters(conn, &self.unreadable, &query))
    }

    async fn append_logs(&self, lines: Vec<LogLine>) -> Result<(), StoreError> {
        ask!(self, Writes, conn => writes::append_logs(conn, self.begin(), &lines))
    }

    async fn logs(&self, id: &JobId, after: u64, limit: usize) -> Result<Vec<KeptLine>, StoreError> {
        ask!(self, Reads, conn => reads::logs(conn, id, after, limit))
    }
}

#[async_trait]
impl Sessions for PostgresStore {
    async fn renew_edge(&self, edge: &EdgeId, ttl: Duration) -> Result<bool, StoreError> {
        ask!(self, Writes, conn => writes::renew_edge(conn, self.now(), edge, ttl))
    }

    async fn open_edges(&self) -> Result<Vec<EdgeRow>, StoreError> {
        ask!(self, Reads, conn => reads::open_edges(conn))
    }

    async fn close_edges(&self, seen: &[EdgeRow], grace: Duration) -> Result<Vec<EdgeId>, StoreError> {
        ask!(self, Writes, conn => writes::close_edges(conn, self.now(), seen, grace))
    }

    async fn attach(
        &self,
        session: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
    ) -> Result<Result<AttachedSession, Unattached>, StoreError> {
        ask!(self, Writes, conn => writes::attach(conn, self.now(), session, edge, profile))
    }

    async fn send_away(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        ask!(self, Writes, conn => writes::send_away(conn, self.now(), sessions))
    }

    async fn close_session(&self, session: &SessionId, epoch: u64) -> Result<bool, StoreError> {
        ask!(self, Writes, conn => writes::close_session(conn, self.now(), session, epoch))
    }

    async fn open_sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        ask!(self, Reads, conn => reads::open_sessions(conn, &self.unreadable))
    }

    async fn closed_holding(&self) -> Result<Vec<SessionRow>, StoreError> {
        ask!(self, Reads, conn => reads::closed_holding(conn, &self.unreadable))
    }
}

#[async_trait]
impl Leases for PostgresStore {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<u64>, StoreError> {
        ask!(self, Writes, conn => writes::acquire(conn, self.now(), name, holder, ttl))
    }

    async fn release(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        ask!(self, Writes, conn => writes::release(conn, name, holder))
    }

    async fn leases(&self) -> Result<Vec<LeaseRow>, StoreError> {
        ask!(self, Reads, conn => reads::leases(conn, self.now()))
    }
}

#[async_trait]
impl Snapshots for PostgresStore {
    async fn activate(&self, change: Activation) -> Result<Result<u64, Outdated>, StoreError> {
        ask!(self, Writes, conn => writes::activate(conn, self.now(), self.begin(), &change))
    }

    async fn active(&self, kind: SnapshotKind) -> Result<Option<Active>, StoreError> {
        ask!(self, Reads, conn => reads::active(conn, kind))
    }

    async fn snapshots(&self, kind: SnapshotKind, limit: usize) -> Result<Vec<SnapshotRow>, StoreError> {
        ask!(self, Reads, conn => reads::snapshots(conn, kind, limit))
    }

    async fn snapshot(&self, kind: SnapshotKind, id: &str) -> Result<Option<Arc<str>>, StoreError> {
        ask!(self, Reads, conn => reads::snapshot(conn, kind, id))
    }
}

#[async_trait]
impl AuditStore for PostgresStore {
    /// Audit rows are numbered when they are read, not when they are written, so that writers do not wait for each other. A
    /// reader sees no difference.
    async fn audit(&self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        ask!(self, Reads, conn => writes::number_audit(conn, self.begin()))?;
        ask!(self, Reads, conn => reads::audit(conn, after, limit))
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        ask!(self, Writes, conn => writes::append_audit(conn, &entries))
    }

    async fn blocks(&self, after: u64, limit: usize) -> Result<Vec<Block>, StoreError> {
        ask!(self, Reads, conn => reads::blocks(conn, after, limit))
    }

    async fn head(&self) -> Result<Option<Block>, StoreError> {
        ask!(self, Reads, conn => reads::head(conn))
    }

    async fn seal(&self, block: &Block) -> Result<bool, StoreError> {
        ask!(self, Writes, conn => writes::seal(conn, block))
    }
}

#[async_trait]
impl Timelines for PostgresStore {
    /// Page by page: a page that was renewed before a crash is renewed again.
    async fn begin_timeline(&self, salt: [u8; 16], audit: AuditEntry) -> Result<Option<u64>, StoreError> {
        if ask!(self, Reads, conn => writes::is_at_work(conn, self.now()))? {
            return Ok(None);
        }
        let (mut after, mut jobs) = (0, 0);
        while let Some((last, renewed)) = ask!(self, Writes, conn => writes::renew_tokens(conn, after, &salt))? {
            after = last;
            jobs += renewed;
        }
        self.append_audit(vec![audit]).await?;
        Ok(Some(jobs))
    }
}

#[async_trait]
impl Tries for PostgresStore {
    async fn keep_tries(&self, text: &str) -> Result<(), StoreError> {
        ask!(self, Writes, conn => writes::keep_tries(conn, text))
    }

    async fn kept_tries(&self) -> Result<Option<Arc<str>>, StoreError> {
        ask!(self, Reads, conn => reads::kept_tries(conn))
    }
}

#[async_trait]
impl Upkeep for PostgresStore {
    async fn outbox(&self, after: i64, age: Duration, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        ask!(self, Reads, conn => reads::outbox(conn, self.now(), after, writes::millis(age), limit))
    }

    async fn outbox_of(&self, jobs: &[JobId]) -> Result<Vec<OutboxRow>, StoreError> {
        ask!(self, Reads, conn => reads::outbox_of(conn, jobs))
    }

    async fn backlog(&self, limit: usize) -> Result<OutboxBacklog, StoreError> {
        ask!(self, Reads, conn => reads::backlog(conn, self.now(), limit))
    }

    async fn outbox_done(&self, ids: &[i64]) -> Result<(), StoreError> {
        ask!(self, Writes, conn => writes::outbox_done(conn, ids))
    }

    async fn prune(&self, keep: Duration, limit: usize) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            let batch = limit.saturating_sub(usize::try_from(gone).unwrap_or(usize::MAX)).min(PRUNED_AT_ONCE);
            let went = ask!(self, Writes, conn => writes::prune(conn, self.now(), self.begin(), keep, batch))?;
            gone += went;
            if went < PRUNED_AT_ONCE as u64 {
                break;
            }
        }
        ask!(self, Writes, conn => writes::forget(conn, self.now()))?;
        Ok(gone + self.prune_runs(keep, limit).await? + self.prune_slots(keep, limit).await?)
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        ask!(self, Reads, conn => reads::totals(conn))
    }

    fn unreadable(&self) -> Met {
        self.unreadable.met()
    }

    async fn check(&self) -> Result<(), StoreError> {
        ask!(self, Reads, conn => writes::rehearse(conn))?;
        ask!(self, Reads, conn => writes::beat(conn))?;
        ask!(self, Reads, conn => reads::backlog(conn, self.now(), 1))?;
        Ok(())
    }

    async fn pinned(&self) -> Result<Option<Pinned>, StoreError> {
        // CockroachDB has no xmin horizon, and does not know the statement.
        if self.pool.connector.options.dialect == Dialect::Cockroach {
            return Ok(None);
        }
        ask!(self, Reads, conn => reads::pinned(conn))
    }
}
