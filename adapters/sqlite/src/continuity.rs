//! Whether a data folder still has every commit that was acknowledged, asked before anything in it is opened for writing.

use std::fmt;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};

use crate::commit_mark::{self, Position};
use crate::connection;
use crate::error::OpenError;
use crate::folder::Folder;
use crate::log_scan::{self, BrokenLog};

/// What a data folder lacks of what was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The database is not there, or has no tables, and was once.
    Gone { marked: Position },
    /// There is a write-ahead log with commits and no database for it.
    LogAlone,
    /// The database ends before the last acknowledged commit: the end of its log is missing, or all of it.
    Behind { marked: Position, found: Position },
    /// The database is not the one that was here.
    Other,
    /// The log is broken in the middle, and SQLite reads no further.
    Broken(BrokenLog),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { marked } => {
                write!(
                    f,
                    "lockgate.db is missing or empty, and {} commits and {} jobs were",
                    marked.commits, marked.last_seq
                )?;
                f.write_str(" acknowledged in this folder")
            }
            Self::LogAlone => {
                f.write_str("lockgate.db is missing or empty, and its write-ahead log lockgate.db-wal is there")
            }
            Self::Behind { marked, found } => {
                let (commits, jobs) = (marked.commits - found.commits, marked.last_seq.saturating_sub(found.last_seq));
                write!(f, "the last {commits} acknowledged commits are missing, with {} new jobs in them: ", jobs.max(0))?;
                write!(f, "commit {} was acknowledged, and lockgate.db with its write-ahead log ", marked.commits)?;
                write!(f, "lockgate.db-wal ends at {}; the log is cut, damaged or gone", found.commits)
            }
            Self::Other => f.write_str("lockgate.db is not the database that commit.mark was written for"),
            Self::Broken(BrokenLog { frame, commits_behind }) => {
                match frame {
                    0 => f.write_str("the header of the write-ahead log lockgate.db-wal is damaged")?,
                    frame => write!(f, "frame {frame} of the write-ahead log lockgate.db-wal is damaged")?,
                }
                write!(f, ", and the {commits_behind} commits behind it cannot be read")
            }
        }
    }
}

/// What the database says of itself.
#[derive(Clone, Copy, Debug)]
enum Found {
    Nothing,
    /// Made by a version that did not count commits.
    Uncounted,
    At(Position),
}

/// Changes nothing: whoever is refused can still look for what is left.
pub(crate) fn examine(folder: &Folder) -> Result<Option<Loss>, OpenError> {
    let failed = |error| OpenError::Folder { path: folder.path().to_owned(), error };
    let marked = commit_mark::read(folder.path()).map_err(failed)?;
    let log = folder.path().join("lockgate.db-wal");
    let broken = log_scan::broken(&log).map_err(failed)?;
    let found = look(&folder.database())?;
    let log_alone = matches!(found, Found::Nothing) && std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    let loss = judge(marked, found, broken).or(log_alone.then_some(Loss::LogAlone));
    if let (None, None, Found::At(_)) = (&loss, marked, found) {
        tracing::warn!("there is no commit mark in the data folder: a loss before this start would not be noticed");
    }
    Ok(loss)
}

fn judge(marked: Option<Position>, found: Found, broken: Option<BrokenLog>) -> Option<Loss> {
    match (marked, found) {
        (Some(marked), Found::Nothing | Found::Uncounted) => Some(Loss::Gone { marked }),
        (Some(marked), Found::At(found)) if marked.installation != found.installation => Some(Loss::Other),
        (Some(marked), Found::At(found)) if found.commits < marked.commits => Some(Loss::Behind { marked, found }),
        _ => broken.map(Loss::Broken),
    }
}

fn look(database: &Path) -> Result<Found, OpenError> {
    if std::fs::metadata(database).map_or(0, |file| file.len()) == 0 {
        return Ok(Found::Nothing);
    }
    let conn = connection::reading(database)?;
    // The last connection that closes would remove a log that it could not read.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let has = |table: &str| {
        conn.query_row("SELECT 1 FROM sqlite_schema WHERE name = ?1", [table], |_| Ok(()))
            .optional()
            .map(|row| row.is_some())
    };
    Ok(match (has("continuity")? && has("book")?, has("schema_version")?) {
        (true, _) => Found::At(position(&conn)?),
        (false, true) => Found::Uncounted,
        (false, false) => Found::Nothing,
    })
}

/// Counts commits from now on, if nothing did so before.
pub(crate) fn begin(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS continuity (
             only INTEGER PRIMARY KEY CHECK (only = 1), installation BLOB NOT NULL, commits INTEGER NOT NULL
         ) STRICT;
         INSERT OR IGNORE INTO continuity VALUES (1, randomblob(16), 0);",
    )
}

/// What was lost is given up. The log that cannot be read goes, and so do the leases of processes that no longer run. The
/// database gets a new name, so that files of before are told from it.
pub(crate) fn accept(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "UPDATE continuity SET installation = randomblob(16);
         UPDATE edges SET closed_at = expires_at WHERE closed_at IS NULL;",
    )?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

pub(crate) fn position(conn: &Connection) -> rusqlite::Result<Position> {
    let sql = "SELECT installation, commits, last_seq FROM continuity, book";
    conn.query_row(sql, [], |row| {
        let commits: i64 = row.get(1)?;
        Ok(Position { installation: row.get(0)?, commits: commits.unsigned_abs(), last_seq: row.get(2)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_ahead_of_its_mark_has_lost_nothing() {
        let at = |installation: u8, commits| Position { installation: [installation; 16], commits, last_seq: 5 };
        let found = |commits| Found::At(at(1, commits));
        assert_eq!(judge(None, Found::Nothing, None), None, "a new folder");
        assert_eq!(judge(None, found(9), None), None, "restored, or from before marks");
        assert_eq!(judge(Some(at(1, 9)), found(9), None), None);
        assert_eq!(judge(Some(at(1, 9)), found(10), None), None, "ended between a sync and its mark, or a power cut");
        let (marked, behind) = (at(1, 9), at(1, 8));
        assert_eq!(judge(Some(marked), found(8), None), Some(Loss::Behind { marked, found: behind }));
        assert_eq!(judge(Some(at(2, 3)), found(9), None), Some(Loss::Other));
        assert_eq!(judge(Some(marked), Found::Nothing, None), Some(Loss::Gone { marked }));
        let broken = BrokenLog { frame: 3, commits_behind: 2 };
        assert_eq!(judge(Some(marked), found(9), Some(broken)), Some(Loss::Broken(broken)));
    }
}
