//! The writing thread: group commit.

mod blanks;
mod book;
mod commit;
mod credentials;
mod duties;
mod erase;
mod ledger;
mod lifecycle;
mod logs;
mod runs;
mod schedules;
mod sessions;
mod tallies;
mod task;
mod timelines;
mod trail;
mod upkeep;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use lockgate_ports::{Clock, StoreError, Totals};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

pub(crate) use book::Book;
pub(crate) use ledger::Ledger;
use ledger::{Draft, InForce, LaneIds};
use task::{Task, Work};

use crate::checkpoint::LogKeeper;
use crate::commit_mark::{CommitMark, Position};
use crate::error::{Fault, OpenError, failed_commit};
use crate::reserve::Reserve;
use crate::row::stored;

/// Changes in one transaction. Bounds how long the first caller of a group waits for the last one's statements.
const GROUP_WEIGHT_MAX: usize = 8_192;

/// What the first failed sync said; None while all is well.
pub(crate) type Fatal = watch::Sender<Option<StoreError>>;

/// The door to the writing thread.
pub(crate) struct Writer {
    tasks: Option<Sender<Box<dyn Task>>>,
    thread: Option<JoinHandle<()>>,
    totals: Arc<Mutex<Totals>>,
    commits: Arc<AtomicU64>,
}

impl Writer {
    pub(crate) fn start(
        conn: Connection,
        clock: Arc<dyn Clock>,
        log: LogKeeper,
        progress: Progress,
        reserve: Arc<Reserve>,
        fatal: Arc<Fatal>,
    ) -> Result<Self, OpenError> {
        let truth = Draft { book: Book::read(&conn)?, in_force: InForce::read(&conn)? };
        let totals = Arc::new(Mutex::new(truth.book.totals));
        let (tasks, queue) = channel();
        let commits = Arc::new(AtomicU64::new(0));
        let desk = Desk {
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
        let alarm = Alarm(Arc::clone(&desk.fatal));
        let serve = move || {
            let _alarm = alarm;
            desk.serve(&queue);
        };
        let thread = thread.spawn(serve).map_err(OpenError::Thread)?;
        Ok(Self { tasks: Some(tasks), thread: Some(thread), totals, commits })
    }

    /// Runs `work` in the next transaction and answers when it is durable. `work` may be run again after a rollback.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnMut(&mut Ledger<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = || StoreError::Unavailable("the writing thread has ended".to_owned());
        let (reply, answer) = oneshot::channel();
        let task = Box::new(Work::new(weight, work, reply));
        self.tasks.as_ref().ok_or_else(gone)?.send(task).map_err(|_| gone())?;
        // The thread died with the task in its hands: nobody knows how far it came.
        answer.await.unwrap_or_else(|_| Err(StoreError::UnknownOutcome("the writing thread has died".to_owned())))
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) fn totals(&self) -> Totals {
        *self.totals.lock()
    }
}

impl Drop for Writer {
    /// What was accepted is still written; the connection is closed when this returns.
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writing thread panicked");
        }
    }
}

/// Held by the writing thread: a process whose writer died would go on refusing for ever, so it is asked to end.
struct Alarm(Arc<Fatal>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let died = StoreError::UnknownOutcome("the writing thread has died".to_owned());
            self.0.send_if_modified(|slot| slot.is_none() && slot.replace(died).is_none());
        }
    }
}

/// How far commits went, by the database and by the mark beside it.
pub(crate) struct Progress {
    pub(crate) position: Position,
    pub(crate) mark: CommitMark,
}

impl Progress {
    /// Inside the transaction that is to be counted.
    fn count(&self, conn: &Connection) -> rusqlite::Result<()> {
        let commits = stored(self.position.commits + 1);
        conn.prepare_cached("UPDATE book SET commits = ?1")?.execute([commits])?;
        Ok(())
    }

    /// After its sync, before a caller is answered.
    fn committed(&mut self, last_seq: i64) {
        self.position.commits += 1;
        self.position.last_seq = last_seq;
        self.mark.advance(self.position);
    }
}

/// What the writing thread works with.
struct Desk {
    conn: Connection,
    clock: Arc<dyn Clock>,
    /// As of the last commit.
    truth: Draft,
    lanes: LaneIds,
    totals: Arc<Mutex<Totals>>,
    commits: Arc<AtomicU64>,
    log: LogKeeper,
    progress: Progress,
    reserve: Arc<Reserve>,
    /// Something was erased, and the log still has it.
    log_says_too_much: bool,
    fatal: Arc<Fatal>,
}

impl Desk {
    fn serve(mut self, queue: &Receiver<Box<dyn Task>>) {
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

    /// One transaction for all. If one task's own fault rolled it back, each gets a transaction of its own, so that
    /// nobody fails because of a neighbour.
    fn settle(&mut self, mut group: Vec<Box<dyn Task>>) {
        match self.transact(&mut group) {
            Ok(()) => answer(group, &Ok(())),
            Err(Failed::Fault(fault)) if group.len() > 1 && fault.is_of_one_task() => {
                for task in group {
                    self.settle(vec![task]);
                }
            }
            Err(Failed::Fault(fault)) => {
                self.stop_on_failed_sync(&fault);
                answer(group, &Err(fault.before_commit()));
            }
            Err(Failed::Known(error)) => answer(group, &Err(error)),
        }
    }

    /// The reserve first, for copying the log back may take room; then the room of the log, which may be what the next commit lacks.
    fn make_room(&self) {
        self.reserve.give_up();
        if let Err(fault) = self.log.make_room(&self.conn) {
            self.stop_on_failed_sync(&fault);
        }
    }

    fn transact(&mut self, group: &mut [Box<dyn Task>]) -> Result<(), Failed> {
        if let Some(error) = &*self.fatal.borrow() {
            return Err(Failed::Known(StoreError::Unavailable(format!("writing has stopped: {error}"))));
        }
        match self.run_all(group) {
            Ok(Written { draft, erased }) => {
                *self.totals.lock() = draft.book.totals;
                self.truth = draft;
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

    /// What was erased is still in the log. Tried again after the next commit if somebody reads from it.
    fn cut_log(&mut self) {
        if self.log_says_too_much {
            match self.log.make_room(&self.conn) {
                Ok(cut) => self.log_says_too_much = !cut,
                Err(fault) => self.stop_on_failed_sync(&fault),
            }
        }
    }

    fn run_all(&mut self, group: &mut [Box<dyn Task>]) -> Result<Written, Failed> {
        self.execute("BEGIN IMMEDIATE")?;
        let changes_before = self.conn.total_changes();
        let mut draft = self.truth.clone();
        let mut ledger = Ledger::open(&self.conn, &mut draft, &mut self.lanes, self.clock.now())?;
        for task in group {
            task.run(&mut ledger)?;
        }
        let (tallies, erased) = (std::mem::take(&mut ledger.tallies), ledger.erased);
        drop(ledger);
        tallies.write(&self.conn)?;
        if draft.book != self.truth.book {
            draft.book.write(&self.conn)?;
        }
        // A transaction that changed nothing stays free of a sync.
        let counted = self.conn.total_changes() > changes_before;
        if counted {
            self.progress.count(&self.conn)?;
        }
        self.execute("COMMIT").map_err(|fault| self.commit_failed(fault))?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        if counted {
            self.progress.committed(draft.book.last_seq);
        }
        Ok(Written { draft, erased })
    }

    fn commit_failed(&self, fault: Fault) -> Failed {
        let error = match fault {
            Fault::Sql(error) => failed_commit(error),
            fault @ Fault::Row(_) => return Failed::Fault(fault),
        };
        if matches!(error, StoreError::UnknownOutcome(_)) {
            self.stop(error.clone());
        }
        Failed::Known(error)
    }

    fn roll_back(&mut self) {
        // Lanes interned by the failed transaction do not exist.
        self.lanes.clear();
        // SQLite has rolled back by itself after some errors.
        if self.conn.is_autocommit() {
            return;
        }
        if let Err(fault) = self.execute("ROLLBACK") {
            self.stop(StoreError::Unavailable(format!("a transaction could not be rolled back: {fault}")));
        }
    }

    fn execute(&self, sql: &str) -> Result<(), Fault> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn stop_on_failed_sync(&self, fault: &Fault) {
        if fault.is_failed_sync() {
            self.stop(StoreError::UnknownOutcome(fault.to_string()));
        } else if fault.is_refused() {
            // Whoever asked names the row, once.
            tracing::debug!(error = %fault, "a row was refused");
        } else {
            tracing::warn!(error = %fault, "a write failed and was rolled back");
        }
    }

    /// Nothing is written any more; the process is asked to end.
    fn stop(&self, error: StoreError) {
        tracing::error!(%error, "writing has stopped");
        self.fatal.send_if_modified(|slot| slot.is_none() && slot.replace(error).is_none());
    }
}

fn answer(group: Vec<Box<dyn Task>>, outcome: &Result<(), StoreError>) {
    for task in group {
        task.answer(outcome.clone());
    }
}

/// What a transaction that was committed leaves.
struct Written {
    draft: Draft,
    erased: bool,
}

/// Why a transaction did not happen.
enum Failed {
    /// Rolled back before COMMIT.
    Fault(Fault),
    /// The answer is settled.
    Known(StoreError),
}

impl Failed {
    fn is_full(&self) -> bool {
        match self {
            Self::Fault(fault) => matches!(fault.before_commit(), StoreError::Full(_)),
            Self::Known(error) => matches!(error, StoreError::Full(_)),
        }
    }
}

impl<E: Into<Fault>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}
