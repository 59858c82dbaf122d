//! The checkpointer: copies the write-ahead log back into the database, beside the writer.
//!
//! A passive checkpoint on its own connection does not block commits. But the log can restart only once all of it is copied
//! and no reader uses it, and under constant load there is always a tail. So the thread copies the bulk, and then the
//! writer, between two transactions, copies the short tail that was written meanwhile. If readers still prevent a restart,
//! the writer waits for them once the log is long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lockgate_ports::StoreError;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, DEFAULT_NAME, ErrorCode};

use crate::connection;
use crate::error::{OpenError, StatementError};
use crate::writer::Fatal;

/// Far longer than any read of the Store takes, except a backup.
const READERS_WITHIN: Duration = Duration::from_millis(100);

/// Bounds of the log's length, in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogBounds {
    /// Copying starts at this length. A page that changes often is copied once per round, so a longer log means less
    /// copying, a larger file and a longer recovery.
    start: i32,
    /// The writer waits for readers at this length, so that the log stays bounded. Much larger than `start`, because callers
    /// feel the wait.
    wait: i32,
}

impl Default for LogBounds {
    fn default() -> Self {
        Self { start: 8_192, wait: 65_536 }
    }
}

/// The writer's handle to the checkpointer.
pub(crate) struct LogKeeper {
    pages: Arc<AtomicI32>,
    tail: Arc<AtomicBool>,
    nudge: SyncSender<()>,
    /// The log's length when copying was last requested. It is requested again only after the log has grown by `start` more,
    /// so that a log which cannot restart is not copied after every commit.
    asked_at: i32,
    bounds: LogBounds,
    thread: Option<JoinHandle<()>>,
}

impl LogKeeper {
    /// Watches the log of `writer` and copies it through `copier`.
    pub(crate) fn start(
        writer: &mut Connection,
        copier: Connection,
        bounds: LogBounds,
        fatal: Arc<Fatal>,
    ) -> Result<Self, OpenError> {
        let (pages, tail) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&pages);
        writer.wal_hook(Some(move |_: &mut _, pages| {
            seen.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        let (nudge, nudged) = sync_channel(1);
        let bulk_done = Arc::clone(&tail);
        let thread = std::thread::Builder::new().name("sqlite-checkpoint".to_owned());
        let thread =
            thread.spawn(move || copy_when_nudged(&copier, &nudged, &bulk_done, &fatal)).map_err(OpenError::Thread)?;
        Ok(Self { pages, tail, nudge, asked_at: 0, bounds, thread: Some(thread) })
    }

    /// Must be called between two transactions of the writer.
    pub(crate) fn after_commit(&mut self, writer: &Connection) -> Result<(), StatementError> {
        if self.tail.swap(false, Ordering::AcqRel) {
            return copy(writer, CheckpointMode::PASSIVE).map(|_| ());
        }
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.asked_at {
            self.asked_at = 0;
        }
        if pages - self.asked_at < self.bounds.start {
            return Ok(());
        }
        self.asked_at = pages;
        if pages >= self.bounds.wait {
            return wait_for_readers(writer);
        }
        // A full channel means that a request is pending already.
        let _ = self.nudge.try_send(());
        Ok(())
    }

    /// Truncates the log, to free space on a full disk; most of its pages have their place in the database already. False if
    /// a reader still uses the log.
    pub(crate) fn make_room(&self, writer: &Connection) -> Result<bool, StatementError> {
        Ok(matches!(copy(writer, CheckpointMode::TRUNCATE)?, Copied::All))
    }
}

impl Drop for LogKeeper {
    fn drop(&mut self) {
        let (gone, _) = sync_channel(1);
        self.nudge = gone;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

fn copy_when_nudged(copier: &Connection, nudged: &Receiver<()>, bulk_done: &AtomicBool, fatal: &Fatal) {
    while nudged.recv().is_ok() {
        match copy(copier, CheckpointMode::PASSIVE) {
            Ok(Copied::All) => bulk_done.store(true, Ordering::Release),
            Ok(Copied::Part) => {}
            Err(fault) if fault.is_failed_sync() => {
                tracing::error!(error = %fault, "a checkpoint was not synced");
                fatal.send_if_modified(|slot| {
                    slot.is_none() && slot.replace(StoreError::UnknownOutcome(fault.to_string())).is_none()
                });
            }
            Err(fault) => tracing::warn!(error = %fault, "a checkpoint failed and will be tried again"),
        }
    }
}

/// Readers finish in a moment, except a backup, which reads for as long as it takes: commits do not wait for that.
fn wait_for_readers(writer: &Connection) -> Result<(), StatementError> {
    writer.busy_timeout(READERS_WITHIN)?;
    let copied = copy(writer, CheckpointMode::RESTART);
    writer.busy_timeout(connection::BUSY_WITHIN)?;
    copied.map(|_| ())
}

/// How far a checkpoint came.
enum Copied {
    /// Everything that was in the log when it began.
    All,
    /// Readers of older pages, or another checkpoint, prevented the rest.
    Part,
}

fn copy(conn: &Connection, mode: CheckpointMode) -> Result<Copied, StatementError> {
    match conn.wal_checkpoint_v2(DEFAULT_NAME, mode) {
        Ok((log, copied)) if copied < log => Ok(Copied::Part),
        Ok(_) => Ok(Copied::All),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(Copied::Part),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: LogBounds = LogBounds { start: 64, wait: 512 };

    /// The largest number of log pages seen while writing far more than the bounds; with `reading`, a reader comes back
    /// again and again.
    fn longest_log(reading: bool) -> i32 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut writer = connection::writing(&path).unwrap();
        writer.execute_batch("CREATE TABLE t (x BLOB)").unwrap();
        let mut reader = connection::reading(&path).unwrap();
        let copier = connection::checkpointing(&path).unwrap();
        let fatal = Arc::new(tokio::sync::watch::Sender::new(None));
        let mut log = LogKeeper::start(&mut writer, copier, BOUNDS, fatal).unwrap();
        let mut longest = 0;
        for _ in 0..2_000 {
            let open = reading.then(|| reader.transaction().unwrap());
            if let Some(open) = &open {
                open.query_row("SELECT COUNT(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
            }
            writer.execute("INSERT INTO t VALUES (zeroblob(30000))", []).unwrap();
            drop(open);
            log.after_commit(&writer).unwrap();
            longest = longest.max(log.pages.load(Ordering::Relaxed));
        }
        longest
    }

    #[test]
    fn the_log_starts_over_under_constant_load() {
        let longest = longest_log(false);
        assert!((BOUNDS.start..BOUNDS.wait * 2).contains(&longest), "{longest}");
    }

    #[test]
    fn a_reader_that_stays_holds_up_no_commit_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut writer = connection::writing(&path).unwrap();
        writer.execute_batch("CREATE TABLE t (x BLOB)").unwrap();
        let mut reader = connection::reading(&path).unwrap();
        let open = reader.transaction().unwrap();
        open.query_row("SELECT COUNT(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
        let fatal = Arc::new(tokio::sync::watch::Sender::new(None));
        let mut log = LogKeeper::start(&mut writer, connection::checkpointing(&path).unwrap(), BOUNDS, fatal).unwrap();
        let began = tokio::time::Instant::now();
        for _ in 0..100 {
            writer.execute("INSERT INTO t VALUES (zeroblob(30000))", []).unwrap();
            log.after_commit(&writer).unwrap();
        }
        assert!(log.pages.load(Ordering::Relaxed) > BOUNDS.wait, "it had a reason to wait");
        // The writer waits a few times for the reader, which never goes away, and does not wait until it does.
        assert!(began.elapsed() < connection::BUSY_WITHIN, "{:?}", began.elapsed());
    }

    #[test]
    fn readers_cannot_make_the_log_grow_without_bound() {
        let longest = longest_log(true);
        // The wait is tried again after every `start` further pages, and the copying thread sometimes prevents it.
        assert!((BOUNDS.start..BOUNDS.wait * 4).contains(&longest), "{longest}");
    }
}
