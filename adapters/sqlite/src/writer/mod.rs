//! The writing thread, which implements group commit.

mod blanks;
mod commit;
mod credentials;
mod duties;
mod erase;
mod lifecycle;
mod logs;
mod running_totals;
mod runs;
mod schedules;
mod sessions;
mod tallies;
mod task;
mod timelines;
mod trail;
mod upkeep;
mod write_tx;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use lockgate_ports::{Clock, StoreError, Totals};
use lockgate_sql::codes::stored;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

pub(crate) use running_totals::RunningTotals;
use task::{QueuedWrite, TxTask};
pub(crate) use write_tx::WriteTx;
use write_tx::{ActiveIds, LaneIds, WriterState};

use crate::checkpoint::LogKeeper;
use crate::commit_mark::{CommitMark, CommitPosition};
use crate::error::{OpenError, StatementError, failed_commit};
use crate::reserve::Reserve;

/// The most changes of one transaction. Bounds how long the first caller of a group waits for the last one's statements.
const GROUP_WEIGHT_MAX: usize = 8_192;

/// The error of the first failed sync; None before that.
pub(crate) type Fatal = watch::Sender<Option<StoreError>>;

/// A handle to the writing thread.
pub(crate) struct WriterHandle {
    tasks: Option<Sender<Box<dyn TxTask>>>,
    thread: Option<JoinHandle<()>>,
    totals: Arc<Mutex<Totals>>,
    commits: Arc<AtomicU64>,
}

impl WriterHandle {
    pub(crate) fn start(
        conn: Connection,
        clock: Arc<dyn Clock>,
        log: LogKeeper,
        progress: CommitProgress,
        reserve: Arc<Reserve>,
        fatal: Arc<Fatal>,
    ) -> Result<Self, OpenError> {
        let truth = WriterState { totals_row: RunningTotals::read(&conn)?, in_force: ActiveIds::read(&conn)? };
        let totals = Arc::new(Mutex::new(truth.totals_row.totals));
        let (tasks, queue) = channel();
        let commits = Arc::new(AtomicU64::new(0));
        let writer = WriterThread {
            conn,
            clock,
            truth,
            lanes: LaneIds::default(),
            totals: Arc::clone(&totals),
            commits: Arc::clone(&commits),
            log,
            progress,
            reserve,
            log_says_too_much: false,
            fatal,
        };
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned());
        let alarm = Alarm(Arc::clone(&writer.fatal));
        let serve = move || {
            let _alarm = alarm;
            writer.serve(&queue);
        };
        let thread = thread.spawn(serve).map_err(OpenError::Thread)?;
        Ok(Self { tasks: Some(tasks), thread: Some(thread), totals, commits })
    }

    /// Runs `work` in the next transaction and answers once it is durable. `work` may run again after a rollback.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnMut(&mut WriteTx<'_>) -> Result<T, StatementError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = || StoreError::Unavailable("the writing thread has ended".to_owned());
        let (reply, answer) = oneshot::channel();
        let task = Box::new(QueuedWrite::new(weight, work, reply));
        self.tasks.as_ref().ok_or_else(gone)?.send(task).map_err(|_| gone())?;
        // The thread died while it held the task, so the outcome is unknown.
        answer.await.unwrap_or_else(|_| Err(StoreError::UnknownOutcome("the writing thread has died".to_owned())))
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) fn totals(&self) -> Totals {
        *self.totals.lock()
    }
}

impl Drop for WriterHandle {
    /// Writes all accepted tasks; the connection is closed on return.
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writing thread panicked");
        }
    }
}

/// Held by the writing thread. A process whose writer has died would refuse writes for ever, so the drop of this value asks
/// it to end.
struct Alarm(Arc<Fatal>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let died = StoreError::UnknownOutcome("the writing thread has died".to_owned());
            self.0.send_if_modified(|slot| slot.is_none() && slot.replace(died).is_none());
        }
    }
}

/// How far commits went, in the database and in the commit mark.
pub(crate) struct CommitProgress {
    pub(crate) position: CommitPosition,
    pub(crate) mark: CommitMark,
}

impl CommitProgress {
    /// Must run inside the transaction to be counted.
    fn count(&self, conn: &Connection) -> rusqlite::Result<()> {
        let commits = stored(self.position.commits + 1);
        conn.prepare_cached("UPDATE book SET commits = ?1")?.execute([commits])?;
        Ok(())
    }

    /// Must run after the sync and before a caller is answered.
    fn committed(&mut self, last_seq: i64) {
        self.position.commits += 1;
        self.position.last_seq = last_seq;
        self.mark.advance(self.position);
    }
}

/// The state of the writing thread.
struct WriterThread {
    conn: Connection,
    clock: Arc<dyn Clock>,
    /// The state as of the last commit.
    truth: WriterState,
    lanes: LaneIds,
    totals: Arc<Mutex<Totals>>,
    commits: Arc<AtomicU64>,
    log: LogKeeper,
    progress: CommitProgress,
    reserve: Arc<Reserve>,
    /// Something was erased, and the log still contains it.
    log_says_too_much: bool,
    fatal: Arc<Fatal>,
}

impl WriterThread {
    fn serve(mut self, queue: &Receiver<Box<dyn TxTask>>) {
        while let Ok(first) = queue.recv() {
            let mut weight = first.weight();
            let mut group = vec![first];
            while weight < GROUP_WEIGHT_MAX
                && let Ok(task) = queue.try_recv()
            {
                weight += task.weight();
                group.push(task);
            }
            self.settle(group);
            self.reserve.look();
            if let Err(error) = self.log.after_commit(&self.conn) {
                self.stop_on_failed_sync(&error);
            }
        }
    }

    /// Runs one transaction for the whole group. If the fault of one task rolled it back, each task gets a transaction of
    /// its own, so that none fails because of another.
    fn settle(&mut self, mut group: Vec<Box<dyn TxTask>>) {
        match self.transact(&mut group) {
            Ok(()) => answer(group, &Ok(())),
            Err(TxFailure::Fault(fault)) if group.len() > 1 && fault.is_of_one_task() => {
                for task in group {
                    self.settle(vec![task]);
                }
            }
            Err(TxFailure::Fault(fault)) => {
                self.stop_on_failed_sync(&fault);
                answer(group, &Err(fault.before_commit()));
            }
            Err(TxFailure::Known(error)) => answer(group, &Err(error)),
        }
    }

    /// Deletes the reserve first, because copying the log back may need space; then truncates the log, which may be the
    /// space that the next commit lacks.
    fn make_room(&self) {
        self.reserve.give_up();
        if let Err(fault) = self.log.make_room(&self.conn) {
            self.stop_on_failed_sync(&fault);
        }
    }

    fn transact(&mut self, group: &mut [Box<dyn TxTask>]) -> Result<(), TxFailure> {
        if let Some(error) = &*self.fatal.borrow() {
            return Err(TxFailure::Known(StoreError::Unavailable(format!("writing has stopped: {error}"))));
        }
        match self.run_all(group) {
            Ok(CommittedTx { state, erased }) => {
                *self.totals.lock() = state.totals_row.totals;
                self.truth = state;
                self.log_says_too_much |= erased;
                self.cut_log();
                Ok(())
            }
            Err(failed) => {
                self.roll_back();
                if failed.is_full() {
                    self.make_room();
                }
                Err(failed)
            }
        }
    }

    /// Truncates the log, which still contains what was erased. Tried again after the next commit if a reader uses the log.
    fn cut_log(&mut self) {
        if self.log_says_too_much {
            match self.log.make_room(&self.conn) {
                Ok(cut) => self.log_says_too_much = !cut,
                Err(fault) => self.stop_on_failed_sync(&fault),
            }
        }
    }

    fn run_all(&mut self, group: &mut [Box<dyn TxTask>]) -> Result<CommittedTx, TxFailure> {
        self.execute("BEGIN IMMEDIATE")?;
        let changes_before = self.conn.total_changes();
        let mut state = self.truth.clone();
        let mut tx = WriteTx::open(&self.conn, &mut state, &mut self.lanes, self.clock.now())?;
        for task in group {
            task.run(&mut tx)?;
        }
        let (tallies, erased) = (std::mem::take(&mut tx.tallies), tx.erased);
        drop(tx);
        tallies.write(&self.conn)?;
        if state.totals_row != self.truth.totals_row {
            state.totals_row.write(&self.conn)?;
        }
        // A transaction that changed nothing must not cause a sync by counting itself.
        let counted = self.conn.total_changes() > changes_before;
        if counted {
            self.progress.count(&self.conn)?;
        }
        self.execute("COMMIT").map_err(|fault| self.commit_failed(fault))?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        if counted {
            self.progress.committed(state.totals_row.last_seq);
        }
        Ok(CommittedTx { state, erased })
    }

    fn commit_failed(&self, fault: StatementError) -> TxFailure {
        let error = match fault {
            StatementError::Sql(error) => failed_commit(error),
            fault @ StatementError::Row(_) => return TxFailure::Fault(fault),
        };
        if matches!(error, StoreError::UnknownOutcome(_)) {
            self.stop(error.clone());
        }
        TxFailure::Known(error)
    }

    fn roll_back(&mut self) {
        // Lanes interned by the failed transaction do not exist in the database.
        self.lanes.clear();
        // After some errors SQLite has already rolled back by itself.
        if self.conn.is_autocommit() {
            return;
        }
        if let Err(fault) = self.execute("ROLLBACK") {
            self.stop(StoreError::Unavailable(format!("a transaction could not be rolled back: {fault}")));
        }
    }

    fn execute(&self, sql: &str) -> Result<(), StatementError> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn stop_on_failed_sync(&self, fault: &StatementError) {
        if fault.is_failed_sync() {
            self.stop(StoreError::UnknownOutcome(fault.to_string()));
        } else if fault.is_refused() {
            // The caller logs this row once, with its name.
            tracing::debug!(error = %fault, "a row was refused");
        } else {
            tracing::warn!(error = %fault, "a write failed and was rolled back");
        }
    }

    /// Stops all writing, and asks the process to end.
    fn stop(&self, error: StoreError) {
        tracing::error!(%error, "writing has stopped");
        self.fatal.send_if_modified(|slot| slot.is_none() && slot.replace(error).is_none());
    }
}

fn answer(group: Vec<Box<dyn TxTask>>, outcome: &Result<(), StoreError>) {
    for task in group {
        task.answer(outcome.clone());
    }
}

/// The outcome of a committed transaction.
struct CommittedTx {
    state: WriterState,
    erased: bool,
}

/// Why a transaction failed.
enum TxFailure {
    /// Rolled back before COMMIT.
    Fault(StatementError),
    /// The answer for every caller is known already.
    Known(StoreError),
}

impl TxFailure {
    fn is_full(&self) -> bool {
        match self {
            Self::Fault(fault) => matches!(fault.before_commit(), StoreError::Full(_)),
            Self::Known(error) => matches!(error, StoreError::Full(_)),
        }
    }
}

impl<E: Into<StatementError>> From<E> for TxFailure {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}
