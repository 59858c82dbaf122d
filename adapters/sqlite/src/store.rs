//! Implements the Store: writes go to the writing thread, reads to the reading threads.

mod credentials;
mod runs;
mod schedules;
mod tenants;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::audit::{AuditEntry, AuditRow, Block};
use lockgate_core::ids::{EdgeId, JobId, JobSeq, SessionId};
use lockgate_core::job::{DeadLetter, Duty, Job};
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::request::JobRequest;
use lockgate_core::time::Timestamp;
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::{
    Activation, Active, AttachedSession, AuditStore, ChangeError, ChildJob, ChildQuery, Clock, DeadLetterQuery,
    DuplicateJob, EdgeRow, EventPage, JobChange, JobDetail, JobQuery, JobStore, KeptLine, Kin, LeaseRow, Leases, Listing,
    LogLine, Met, OutboxBacklog, OutboxRow, Outdated, SessionRow, Sessions, SnapshotKind, SnapshotRow, Snapshots,
    StoreError, Timelines, Totals, Tries, Unattached, Unreadable, Upkeep, in_parts,
};
use lockgate_sql::ErasureSearch;
use rusqlite::Transaction;
use tokio::sync::watch;

use crate::checkpoint::{LogBounds, LogKeeper};
use crate::commit_mark::CommitMark;
use crate::continuity::Examined;
use crate::encoded_change::EncodedChange;
use crate::error::{OpenError, StatementError};
use crate::folder::DataFolder;
use crate::readers::Readers;
use crate::reserve::Reserve;
use crate::writer::{CommitProgress, Fatal, WriterHandle};
use crate::{connection, continuity, reads, schema};

/// How a data folder is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct FolderOptions {
    /// The largest size of the database file. Writes beyond it fail as on a full disk. A larger existing file keeps its
    /// size.
    pub bytes_max: Option<u64>,
    /// Continue with what is left if acknowledged commits are missing. Otherwise such a folder is refused.
    pub accept_loss: bool,
    /// The size of a file that is deleted when the disk is full, so that the work under way can be finished.
    pub reserve_bytes: Option<u64>,
}

/// The Store in one data folder. Dropping it writes all accepted calls and closes every connection.
pub struct SqliteStore {
    readers: Readers,
    writer: WriterHandle,
    clock: Arc<dyn Clock>,
    fatal: Arc<Fatal>,
    unreadable: Arc<Unreadable>,
    searched: ErasureSearch,
    reserve: Arc<Reserve>,
    loss: Option<String>,
    /// The last field, so that it is dropped last: the folder must be unlocked after its files are closed.
    _folder: DataFolder,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl SqliteStore {
    pub fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::open_with(folder, clock, FolderOptions::default())
    }

    pub fn open_with(folder: &Path, clock: Arc<dyn Clock>, options: FolderOptions) -> Result<Self, OpenError> {
        let folder = DataFolder::claim(folder)?;
        let reserve = Arc::new(Reserve::open(folder.path(), options.reserve_bytes));
        Self::open_claimed(folder, clock, options, Arc::clone(&reserve)).map_err(|error| match error {
            OpenError::Database(error) if reserve.is_disk_full() => {
                OpenError::NoRoom { what_to_free: reserve.what_to_free(), error }
            }
            error => error,
        })
    }

    fn open_claimed(
        folder: DataFolder,
        clock: Arc<dyn Clock>,
        options: FolderOptions,
        reserve: Arc<Reserve>,
    ) -> Result<Self, OpenError> {
        let Examined { loss, is_log_torn } = continuity::examine(folder.path())?;
        if let Some(loss) = loss.clone().filter(|_| !options.accept_loss) {
            return Err(OpenError::Lost { path: folder.path().to_owned(), loss });
        }
        let database = folder.database();
        let fatal = Arc::new(watch::Sender::new(None));
        let mut conn = connection::writing(&database)?;
        schema::migrate(&mut conn)?;
        if let Some(loss) = &loss {
            tracing::warn!(%loss, "acknowledged work is missing, and the loss was accepted");
            continuity::accept(&conn, loss)?;
        } else if is_log_torn && let Err(error) = continuity::empty_log(&conn) {
            tracing::warn!(%error, "torn tail of the write-ahead log could not be removed");
        }
        // Rows left by a process that ended while it overwrote free pages. The WHERE clause keeps SQLite from writing to an
        // empty table, for which a full disk may have no space.
        conn.execute("DELETE FROM blanks WHERE TRUE", [])?;
        if let Some(bytes) = options.bytes_max {
            connection::limit(&conn, bytes)?;
        }
        let readers = Readers::start(&database)?;
        let log =
            LogKeeper::start(&mut conn, connection::checkpointing(&database)?, LogBounds::default(), Arc::clone(&fatal))?;
        let (position, loss) = (continuity::position(&conn)?, continuity::accepted(&conn)?);
        let progress = CommitProgress { position, mark: CommitMark::begin(folder.path(), position) };
        let writer = WriterHandle::start(conn, Arc::clone(&clock), log, progress, Arc::clone(&reserve), Arc::clone(&fatal))?;
        let (unreadable, searched) = (Arc::default(), ErasureSearch::default());
        Ok(Self { readers, writer, clock, fatal, unreadable, searched, reserve, loss, _folder: folder })
    }

    /// Transactions committed since the Store was opened, one sync of the log each. A call shares its transaction with the
    /// calls that arrived meanwhile.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// The accepted loss, whether accepted now or by a process that ended before a new timeline began. Tokens handed out by
    /// the missing commits may be handed out again, so a new timeline must begin before any job runs.
    pub fn loss(&self) -> Option<&str> {
        self.loss.as_deref()
    }

    /// Refuses new work once the reserve is spent, so that results of the work under way can be stored.
    fn admit(&self, is_new: bool) -> Result<(), StoreError> {
        if is_new && self.reserve.is_spent() { Err(self.reserve.refusal()) } else { Ok(()) }
    }

    /// Set if the disk did not confirm a write. From then on nothing is written and the process must stop, because only a
    /// restart finds out what is on disk.
    pub fn fatal(&self) -> watch::Receiver<Option<StoreError>> {
        self.fatal.subscribe()
    }

    /// A read that leaves out rows which cannot be decoded.
    async fn walk<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Transaction<'_>, &Unreadable) -> Result<T, StatementError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unreadable = Arc::clone(&self.unreadable);
        self.readers.run(move |conn| read(conn, &unreadable)).await
    }
}

#[async_trait]
impl JobStore for SqliteStore {
    async fn commit(&self, changes: Vec<JobChange>) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let sheets = changes.into_iter().map(EncodedChange::fill).collect::<Result<Vec<EncodedChange>, StatementError>>();
        let sheets = Arc::new(sheets.map_err(|fault| fault.before_commit())?);
        self.admit(sheets.iter().any(EncodedChange::is_birth))?;
        let commit = |part: Range<usize>| {
            // The caller keeps a reference, so that it and not the writing thread frees the memory.
            let shared = Arc::clone(&sheets);
            self.writer.run(part.len(), move |tx| tx.commit(&shared[part.clone()]))
        };
        in_parts(sheets.len(), commit, |_, why| Err(ChangeError::Refused(why))).await
    }

    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError> {
        let ids = ids.to_vec();
        self.readers.run(move |conn| reads::load(conn, &ids)).await
    }

    async fn find_duplicates(&self, requests: &[Arc<JobRequest>]) -> Result<Vec<Option<DuplicateJob>>, StoreError> {
        let (requests, now) = (requests.to_vec(), self.clock.now());
        self.readers.run(move |conn| reads::duplicates(conn, &requests, now)).await
    }

    async fn detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError> {
        let id = id.clone();
        self.readers.run(move |conn| reads::detail(conn, &id)).await
    }

    async fn events(&self, id: &JobId, after: u64) -> Result<Option<EventPage>, StoreError> {
        let id = id.clone();
        self.readers.run(move |conn| reads::events(conn, &id, after)).await
    }

    async fn list(&self, query: JobQuery) -> Result<Listing<Job>, StoreError> {
        self.walk(move |conn, unreadable| reads::list(conn, unreadable, &query)).await
    }

    async fn ready(&self, lane: &LaneKey, after: Option<ReadyKey>, limit: usize) -> Result<Vec<Job>, StoreError> {
        let (lane, now) = (lane.clone(), self.clock.now());
        self.walk(move |conn, unreadable| reads::ready(conn, unreadable, &lane, after, now, limit)).await
    }

    async fn ready_lanes(&self) -> Result<Vec<(LaneKey, u64)>, StoreError> {
        let now = self.clock.now();
        self.walk(move |conn, unreadable| reads::ready_lanes(conn, unreadable, now)).await
    }

    async fn due(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        let now = self.clock.now();
        self.walk(move |conn, unreadable| reads::queue(conn, unreadable, reads::DUE, after, now, limit)).await
    }

    async fn pending(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        let now = self.clock.now();
        self.walk(move |conn, unreadable| reads::queue(conn, unreadable, reads::PENDING, after, now, limit)).await
    }

    async fn expired(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError> {
        let now = self.clock.now();
        self.walk(move |conn, unreadable| reads::queue(conn, unreadable, reads::EXPIRED, after, now, limit)).await
    }

    async fn owing(&self, duty: Duty, after: JobSeq, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.walk(move |conn, unreadable| reads::owing(conn, unreadable, duty, after, limit)).await
    }

    async fn family(&self, lives: &[(JobId, u32)]) -> Result<Vec<Kin>, StoreError> {
        let lives = lives.to_vec();
        self.readers.run(move |conn| reads::family(conn, &lives)).await
    }

    async fn under_way(&self, lives: &[(JobId, u32)]) -> Result<Vec<Option<JobSeq>>, StoreError> {
        let lives = lives.to_vec();
        self.readers.run(move |conn| reads::under_way(conn, &lives)).await
    }

    async fn children(&self, query: ChildQuery) -> Result<Listing<ChildJob>, StoreError> {
        self.readers.run(move |conn| reads::children(conn, &query)).await
    }

    async fn live_children(
        &self,
        parent: &JobId,
        life: u32,
        after: JobSeq,
        limit: usize,
    ) -> Result<Vec<(JobSeq, JobId)>, StoreError> {
        let parent = parent.clone();
        self.readers.run(move |conn| reads::live_children(conn, &parent, life, after, limit)).await
    }

    async fn held(&self, session: &SessionId) -> Result<Vec<Job>, StoreError> {
        let session = session.clone();
        self.walk(move |conn, unreadable| reads::held(conn, unreadable, &session)).await
    }

    async fn bound(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, JobId)>, StoreError> {
        let sessions = sessions.to_vec();
        self.readers.run(move |conn| reads::bound(conn, &sessions)).await
    }

    async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, StoreError> {
        self.walk(move |conn, unreadable| reads::dead_letters(conn, unreadable, &query)).await
    }

    async fn append_logs(&self, lines: Vec<LogLine>) -> Result<(), StoreError> {
        self.writer.run(lines.len(), move |tx| tx.append_logs(&lines)).await
    }

    async fn logs(&self, id: &JobId, after: u64, limit: usize) -> Result<Vec<KeptLine>, StoreError> {
        let id = id.clone();
        self.readers.run(move |conn| reads::logs(conn, &id, after, limit)).await
    }
}

#[async_trait]
impl Sessions for SqliteStore {
    async fn renew_edge(&self, edge: &EdgeId, ttl: Duration) -> Result<bool, StoreError> {
        let edge = edge.clone();
        self.writer.run(1, move |tx| tx.renew_edge(&edge, ttl)).await
    }

    async fn open_edges(&self) -> Result<Vec<EdgeRow>, StoreError> {
        self.readers.run(|conn| reads::open_edges(conn)).await
    }

    async fn close_edges(&self, seen: &[EdgeRow], grace: Duration) -> Result<Vec<EdgeId>, StoreError> {
        let seen = seen.to_vec();
        self.writer.run(1, move |tx| tx.close_edges(&seen, grace)).await
    }

    async fn attach(
        &self,
        session: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
    ) -> Result<Result<AttachedSession, Unattached>, StoreError> {
        let (session, edge, profile) = (session.clone(), edge.clone(), profile.clone());
        self.writer.run(1, move |tx| tx.attach(&session, &edge, &profile)).await
    }

    async fn send_away(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        let sessions = sessions.to_vec();
        self.writer.run(1, move |tx| tx.send_away(&sessions)).await
    }

    async fn close_session(&self, session: &SessionId, epoch: u64) -> Result<bool, StoreError> {
        let session = session.clone();
        self.writer.run(1, move |tx| tx.close_session(&session, epoch)).await
    }

    async fn open_sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.walk(|conn, unreadable| reads::open_sessions(conn, unreadable)).await
    }

    async fn closed_holding(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.walk(|conn, unreadable| reads::closed_holding(conn, unreadable)).await
    }
}

#[async_trait]
impl Leases for SqliteStore {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<u64>, StoreError> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.writer.run(1, move |tx| tx.acquire(&name, &holder, ttl)).await
    }

    async fn release(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.writer.run(1, move |tx| tx.release(&name, &holder)).await
    }

    async fn leases(&self) -> Result<Vec<LeaseRow>, StoreError> {
        let now = self.clock.now();
        self.readers.run(move |conn| reads::leases(conn, now)).await
    }
}

#[async_trait]
impl Snapshots for SqliteStore {
    async fn activate(&self, change: Activation) -> Result<Result<u64, Outdated>, StoreError> {
        self.writer.run(1, move |tx| tx.activate(&change)).await
    }

    async fn active(&self, kind: SnapshotKind) -> Result<Option<Active>, StoreError> {
        self.readers.run(move |conn| reads::active(conn, kind)).await
    }

    async fn snapshots(&self, kind: SnapshotKind, limit: usize) -> Result<Vec<SnapshotRow>, StoreError> {
        self.readers.run(move |conn| reads::snapshots(conn, kind, limit)).await
    }

    async fn snapshot(&self, kind: SnapshotKind, id: &str) -> Result<Option<Arc<str>>, StoreError> {
        let id = id.to_owned();
        self.readers.run(move |conn| reads::snapshot(conn, kind, &id)).await
    }
}

#[async_trait]
impl AuditStore for SqliteStore {
    async fn audit(&self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        self.readers.run(move |conn| reads::audit(conn, after, limit)).await
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.writer.run(entries.len(), move |tx| tx.keep_audit(&entries)).await
    }

    async fn blocks(&self, after: u64, limit: usize) -> Result<Vec<Block>, StoreError> {
        self.readers.run(move |conn| reads::blocks(conn, after, limit)).await
    }

    async fn head(&self) -> Result<Option<Block>, StoreError> {
        self.readers.run(|conn| reads::head(conn)).await
    }

    async fn seal(&self, block: &Block) -> Result<bool, StoreError> {
        let block = block.clone();
        self.writer.run(1, move |tx| tx.seal(&block)).await
    }
}

#[async_trait]
impl Timelines for SqliteStore {
    async fn begin_timeline(&self, salt: [u8; 16], audit: AuditEntry) -> Result<Option<u64>, StoreError> {
        self.writer.run(1, move |tx| tx.begin_timeline(&salt, &audit)).await
    }
}

#[async_trait]
impl Tries for SqliteStore {
    async fn keep_tries(&self, text: &str) -> Result<(), StoreError> {
        let text = text.to_owned();
        self.writer.run(1, move |tx| tx.keep_tries(&text)).await
    }

    async fn kept_tries(&self) -> Result<Option<Arc<str>>, StoreError> {
        self.readers.run(|conn| reads::kept_tries(conn)).await
    }
}

#[async_trait]
impl Upkeep for SqliteStore {
    async fn outbox(&self, after: i64, age: Duration, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let until = self.clock.now() - age;
        self.readers.run(move |conn| reads::outbox(conn, after, until, limit)).await
    }

    async fn outbox_of(&self, jobs: &[JobId]) -> Result<Vec<OutboxRow>, StoreError> {
        let jobs = jobs.to_vec();
        self.readers.run(move |conn| reads::outbox_of(conn, &jobs)).await
    }

    async fn backlog(&self, limit: usize) -> Result<OutboxBacklog, StoreError> {
        let now = self.clock.now();
        self.readers.run(move |conn| reads::backlog(conn, now, limit)).await
    }

    async fn outbox_done(&self, ids: &[i64]) -> Result<(), StoreError> {
        let ids = ids.to_vec();
        self.writer.run(ids.len(), move |tx| tx.outbox_done(&ids)).await
    }

    async fn prune(&self, keep: Duration, limit: usize) -> Result<u64, StoreError> {
        self.writer.run(limit.max(1), move |tx| tx.prune(keep, limit)).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        Ok(self.writer.totals())
    }

    fn unreadable(&self) -> Met {
        self.unreadable.met()
    }

    async fn check(&self) -> Result<(), StoreError> {
        let rehearsed = self.writer.run(1, |tx| tx.rehearse()).await;
        // Names the cause and the remedy, which SQLite's own error does not.
        self.admit(true)?;
        rehearsed?;
        self.readers.run(reads::newest).await?;
        self.readers.run(|conn| reads::backlog(conn, Timestamp::default(), 1)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_core::job::Evidence;
    use lockgate_core::pools::RoutingId;
    use lockgate_core::verdict::BUILTIN_ALLOW;
    use lockgate_model::ManualClock;

    #[tokio::test]
    async fn a_process_whose_writing_thread_died_is_asked_to_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path(), Arc::new(ManualClock::default())).unwrap();
        let died = store.writer.run(1, |_| -> Result<(), StatementError> { panic!("a bug") }).await;
        assert!(matches!(died, Err(StoreError::UnknownOutcome(_))), "{died:?}");
        let mut fatal = store.fatal();
        let told = tokio::time::timeout(Duration::from_secs(10), fatal.wait_for(Option::is_some)).await;
        assert!(told.is_ok_and(|told| told.is_ok()));
    }

    #[tokio::test]
    async fn a_policy_whose_activation_was_rolled_back_is_not_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path(), Arc::new(ManualClock::default())).unwrap();
        let evidence = |policy: &str| {
            let evidence =
                Evidence::Allowed { session: "s".into(), epoch: 1, policy: policy.into(), routing: RoutingId::default() };
            store.writer.run(1, move |tx| tx.proves(&evidence))
        };
        let profile = r#"{"worker":"w","pool":"default","topics":[],"slots":1,"in_process":false}"#;
        store.attach(&"s".into(), &"edge".into(), &serde_json::from_str(profile).unwrap()).await.unwrap().unwrap();
        let text = r#"{"at":0,"tenant":"t","actor":"ann","action":"policy_activated","subject":"p1"}"#;
        let audit: AuditEntry = serde_json::from_str(text).unwrap();
        let kind = SnapshotKind::Policy;
        let change = Activation { kind, id: "p1".into(), text: "rules: []".into(), actor: "ann".into(), expected: 0, audit };
        let failing = change.clone();
        let fails = move |tx: &mut crate::writer::WriteTx<'_>| -> Result<(), StatementError> {
            tx.activate(&failing)?.unwrap();
            Err(StatementError::Row("no".to_owned()))
        };
        assert!(store.writer.run(1, fails).await.is_err());
        assert!(evidence(BUILTIN_ALLOW).await.unwrap() && !evidence("p1").await.unwrap());
        store.activate(change).await.unwrap().unwrap();
        assert!(evidence("p1").await.unwrap() && !evidence(BUILTIN_ALLOW).await.unwrap());
    }

    #[tokio::test]
    async fn nothing_is_written_after_a_failed_sync() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path(), Arc::new(ManualClock::default())).unwrap();
        let mut fatal = store.fatal();
        store.check().await.unwrap();
        store.fatal.send_replace(Some(StoreError::UnknownOutcome("not synced".to_owned())));
        assert!(fatal.has_changed().unwrap() && fatal.borrow_and_update().is_some());
        let refused = store.renew_edge(&"edge".into(), Duration::from_secs(1)).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        assert_eq!(store.open_sessions().await.unwrap(), [], "reading goes on");
    }
}
