//! Copies the databases of a data folder while a server writes to them, and prepares a copy for use.
//!
//! `VACUUM INTO` reads one state of the database in one transaction, beside the writer of any process, and copies neither
//! free pages nor deleted data. While it reads, the write-ahead log cannot restart, so the log grows by everything written
//! meanwhile; checkpoint.rs says what that costs the writer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockgate_core::audit::AuditAction;
use rusqlite::Connection;
use tokio::time::Instant;

use crate::commit_mark::{self, CommitPosition};
use crate::error::OpenError;
use crate::{connection, continuity, folder};

/// The Store's database, and that of the built-in `job.db_tx`. Copied in this order: an effect that is in neither or only in
/// the second is repeated or found, never lost.
pub const DATABASES: [&str; 2] = ["lockgate.db", "effects.db"];

/// How often the pace is checked, in steps of SQLite's virtual machine: a few for each row.
const STEPS: i32 = 100;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("there is no {} in {}", DATABASES[0], .0.display())]
    Nothing(PathBuf),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: std::io::Error },
    #[error("{}: {error}", path.display())]
    Database { path: PathBuf, error: rusqlite::Error },
    #[error("the copy {} is not whole: {found}", path.display())]
    NotWhole { path: PathBuf, found: String },
    #[error("{0}")]
    Lost(#[from] OpenError),
}

/// The contents of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyFacts {
    pub schema: i64,
    pub live: u64,
    /// Live jobs that a worker holds.
    pub held: u64,
    pub ended: u64,
    pub live_runs: u64,
    pub schedules: u64,
    pub audit_rows: u64,
    pub audit_blocks: u64,
    /// Losses that the installation had accepted before.
    pub losses: Vec<String>,
}

/// Copies the databases of one folder into another, at most `bytes_per_second`. Returns which there were.
pub fn copy(from: &Path, to: &Path, bytes_per_second: Option<u64>) -> Result<Vec<&'static str>, BackupError> {
    if !from.join(DATABASES[0]).exists() {
        return Err(BackupError::Nothing(from.to_owned()));
    }
    let failed = |error| BackupError::File { path: from.to_owned(), error };
    // A running server made this check at its start. While it writes, the check would mistake unfinished writes for damage.
    if let Some(examined) = folder::while_unused(from, || continuity::examine(from)).map_err(failed)?
        && let Some(loss) = examined?.loss
    {
        return Err(OpenError::Lost { path: from.to_owned(), loss }.into());
    }
    // Read the mark before the copy: everything acknowledged until now must be in it.
    let marked = commit_mark::read(from).map_err(failed)?;
    let there: Vec<_> = DATABASES.into_iter().filter(|name| from.join(name).exists()).collect();
    for name in &there {
        copy_one(&from.join(name), &to.join(name), bytes_per_second)?;
    }
    if let Some(marked) = marked {
        refuse_behind(&to.join(DATABASES[0]), marked)?;
    }
    Ok(there)
}

fn copy_one(from: &Path, to: &Path, bytes_per_second: Option<u64>) -> Result<(), BackupError> {
    let failed = |error| BackupError::Database { path: from.to_owned(), error };
    let mut conn = connection::copying(from).map_err(failed)?;
    if let Some(rate) = bytes_per_second {
        let (began, target) = (Instant::now(), to.to_owned());
        let pace = move || {
            let written = std::fs::metadata(&target).map_or(0, |file| file.len());
            let due = Duration::from_millis(written.saturating_mul(1_000) / rate.max(1));
            // Nothing signals the end of the wait: the thread sleeps until the copy is no longer ahead of its pace.
            std::thread::park_timeout(due.saturating_sub(began.elapsed()).min(Duration::from_secs(1)));
            false
        };
        conn.progress_handler(STEPS, Some(pace)).map_err(failed)?;
    }
    let Some(name) = to.to_str() else {
        let error = std::io::Error::other("its name must be UTF-8");
        return Err(BackupError::File { path: to.to_owned(), error });
    };
    conn.execute("VACUUM INTO ?1", [name]).map_err(failed)?;
    let synced = File::open(to).and_then(|file| file.sync_all());
    synced.map_err(|error| BackupError::File { path: to.to_owned(), error })
}

/// Refuses a copy of a folder that has lost acknowledged commits.
fn refuse_behind(copy: &Path, marked: CommitPosition) -> Result<(), BackupError> {
    let failed = |error| BackupError::Database { path: copy.to_owned(), error };
    let found = connection::examining(copy).and_then(|conn| continuity::ask(&conn)).map_err(failed)?;
    match continuity::judge(Some(marked), found, None) {
        None => Ok(()),
        Some(loss) => Err(BackupError::NotWhole { path: copy.to_owned(), found: loss.to_string() }),
    }
}

/// Reads every page of a copy and returns its contents.
pub fn examine(folder: &Path) -> Result<CopyFacts, BackupError> {
    for name in DATABASES.into_iter().filter(|name| folder.join(name).exists()) {
        let path = folder.join(name);
        let failed = |error| BackupError::Database { path: path.clone(), error };
        let conn = connection::examining(&path).map_err(failed)?;
        let found: String = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
        if found != "ok" {
            return Err(BackupError::NotWhole { path, found });
        }
    }
    let path = folder.join(DATABASES[0]);
    let conn = connection::examining(&path).map_err(|error| BackupError::Database { path: path.clone(), error })?;
    facts(&conn).map_err(|error| BackupError::Database { path, error })
}

fn facts(conn: &Connection) -> rusqlite::Result<CopyFacts> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    Ok(CopyFacts {
        schema: conn.query_row("SELECT version FROM schema_version", [], |row| row.get(0))?,
        live: number("SELECT COUNT(*) FROM jobs_hot")?,
        held: number("SELECT COUNT(*) FROM jobs_hot WHERE session IS NOT NULL")?,
        ended: number("SELECT COUNT(*) FROM jobs_done")?,
        live_runs: number("SELECT COUNT(*) FROM runs WHERE ended_at IS NULL")?,
        schedules: number("SELECT COUNT(*) FROM schedules")?,
        audit_rows: number("SELECT COUNT(*) FROM audit")?,
        audit_blocks: number("SELECT COUNT(*) FROM audit_blocks")?,
        losses: losses(conn)?,
    })
}

fn losses(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = conn.prepare("SELECT subject FROM audit WHERE action = ?1 ORDER BY audit_id")?;
    query.query_map([AuditAction::LossAccepted.as_str()], |row| row.get(0))?.collect()
}

/// Ends the sessions and leases of the copied state: no process holds them.
pub fn abandon(folder: &Path) -> Result<(), BackupError> {
    let path = folder.join(DATABASES[0]);
    let failed = |error| BackupError::Database { path: path.clone(), error };
    let conn = Connection::open(&path).map_err(failed)?;
    conn.execute("UPDATE edges SET closed_at = expires_at WHERE closed_at IS NULL", []).map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(folder: &Path, rows: usize) -> Connection {
        let mut conn = connection::writing(&folder.join(DATABASES[0])).unwrap();
        crate::schema::migrate(&mut conn).unwrap();
        let sql = "INSERT INTO audit (at, tenant, actor, action, subject, detail) VALUES (1, 't', 'a', 'x', 's', ?1)";
        for _ in 0..rows {
            conn.execute(sql, ["x".repeat(1_000)]).unwrap();
        }
        conn
    }

    #[test]
    fn a_copy_has_one_state_of_a_database_that_is_written_to() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let writer = filled(from.path(), 500);
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = stop.clone();
        let writing = std::thread::spawn(move || {
            let sql = "INSERT INTO audit (at, tenant, actor, action, subject, detail) VALUES (1, 't', 'a', 'x', 's', 'y');
                INSERT INTO audit_blocks SELECT COUNT(*) + 1, 1, 1, 1, zeroblob(32), zeroblob(32), 1 FROM audit_blocks";
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                writer.execute_batch(&format!("BEGIN IMMEDIATE; {sql}; COMMIT")).unwrap();
            }
        });
        assert_eq!(copy(from.path(), to.path(), None).unwrap(), ["lockgate.db"]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writing.join().unwrap();
        let facts = examine(to.path()).unwrap();
        assert_eq!(facts.audit_rows, 500 + facts.audit_blocks, "each transaction is in it whole or not at all");
    }

    #[test]
    fn a_copy_takes_the_time_it_is_given() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        drop(filled(from.path(), 2_000));
        let began = Instant::now();
        copy(from.path(), to.path(), Some(4 << 20)).unwrap();
        // About two mebibytes at four per second, without the part that is written at the end.
        assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
        assert_eq!(examine(to.path()).unwrap().audit_rows, 2_000);
    }

    #[test]
    fn a_damaged_copy_is_told_from_a_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        drop(filled(folder.path(), 500));
        examine(folder.path()).unwrap();
        let path = folder.path().join(DATABASES[0]);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 8_192].fill(0xAA);
        std::fs::write(&path, bytes).unwrap();
        assert!(examine(folder.path()).is_err());
    }

    #[test]
    fn a_folder_without_a_database_is_named() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error = copy(from.path(), to.path(), None).unwrap_err();
        assert!(matches!(error, BackupError::Nothing(_)), "{error}");
    }
}
