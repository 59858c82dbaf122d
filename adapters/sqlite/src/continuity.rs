//! Checks whether a data folder still has every acknowledged commit, before anything in it is opened for writing.

use std::fmt;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};

use crate::commit_mark::{self, CommitPosition};
use crate::connection;
use crate::error::OpenError;
use crate::log_scan::{self, BrokenLog};

/// Files that a server makes after its database: if one exists, a database existed.
const MADE_LATER: [&str; 1] = ["auth.key"];

/// How acknowledged commits are missing in a data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The database is missing or has no tables, although the mark shows that it had some.
    Gone { marked: CommitPosition },
    /// The database is missing, although another file of an installation exists.
    Alone { beside: &'static str },
    /// The database ends before the last acknowledged commit: the end of its log is missing, or the whole log.
    Behind { marked: CommitPosition, found: CommitPosition },
    /// The database belongs to another installation than the mark.
    Other,
    /// The log is damaged in the middle, and SQLite reads only up to there.
    Broken(BrokenLog),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { marked } => {
                let CommitPosition { commits, last_seq, .. } = marked;
                write!(f, "lockgate.db is missing or empty, and {commits} commits with {last_seq} jobs were acknowledged")?;
                f.write_str(" in this folder")
            }
            Self::Alone { beside } => {
                write!(f, "lockgate.db is missing or empty, and this folder has been used: {beside} is there")
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

/// The position that the database records about itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordedPosition {
    Nothing,
    /// The database was made by a version that did not count commits.
    Uncounted,
    At(CommitPosition),
    /// A loss was accepted, and the process ended before a new timeline began. The mark is from the time before.
    Accepted,
}

/// The outcome of an examination.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) loss: Option<Loss>,
    /// The log ends in the remains of one transaction that a crash interrupted.
    pub(crate) is_log_torn: bool,
}

/// Examines without writing, so that whatever is left can still be rescued.
pub(crate) fn examine(folder: &Path) -> Result<Examined, OpenError> {
    let failed = |error| OpenError::Folder { path: folder.to_owned(), error };
    let marked = commit_mark::read(folder).map_err(failed)?;
    let log = folder.join("lockgate.db-wal");
    let broken = log_scan::broken(&log).map_err(failed)?;
    let found = look(&folder.join("lockgate.db"))?;
    let loss = judge(marked, found, broken).or_else(|| alone(folder, &log, found));
    if let (None, None, RecordedPosition::At(_)) = (&loss, marked, found) {
        tracing::warn!("there is no commit mark in the data folder: a loss before this start would not be noticed");
    }
    Ok(Examined { loss, is_log_torn: broken.is_some() })
}

pub(crate) fn judge(marked: Option<CommitPosition>, found: RecordedPosition, broken: Option<BrokenLog>) -> Option<Loss> {
    match (marked, found) {
        // The loss was accepted; this start finishes what a crash in between left undone.
        (_, RecordedPosition::Accepted) => None,
        (Some(marked), RecordedPosition::Nothing) => Some(Loss::Gone { marked }),
        (Some(_), RecordedPosition::Uncounted) => Some(Loss::Other),
        (Some(marked), RecordedPosition::At(found)) if marked.installation != found.installation => Some(Loss::Other),
        (Some(marked), RecordedPosition::At(found)) if found.commits < marked.commits => {
            Some(Loss::Behind { marked, found })
        }
        _ => broken.filter(|broken| broken.is_damage()).map(Loss::Broken),
    }
}

/// Without a mark, other files show that a database existed.
fn alone(folder: &Path, log: &Path, found: RecordedPosition) -> Option<Loss> {
    if !matches!(found, RecordedPosition::Nothing) {
        return None;
    }
    // SQLite syncs the first page before it makes a log. So a crash in the very first start leaves a readable database
    // without tables beside a log; a log beside no page at all is the remains of a larger database.
    let has_page = std::fs::metadata(folder.join("lockgate.db")).is_ok_and(|database| database.len() > 0);
    if !has_page && std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return Some(Loss::Alone { beside: "its write-ahead log lockgate.db-wal" });
    }
    let beside = MADE_LATER.into_iter().find(|name| folder.join(name).exists())?;
    Some(Loss::Alone { beside })
}

fn look(database: &Path) -> Result<RecordedPosition, OpenError> {
    if std::fs::metadata(database).map_or(0, |file| file.len()) == 0 {
        return Ok(RecordedPosition::Nothing);
    }
    let conn = connection::reading(database)?;
    // The last connection to close would delete a log that it could not read.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(ask(&conn)?)
}

pub(crate) fn ask(conn: &Connection) -> rusqlite::Result<RecordedPosition> {
    let has = |sql: &str| conn.query_row(sql, [], |_| Ok(())).optional().map(|row| row.is_some());
    if has("SELECT 1 FROM pragma_table_info('book') WHERE name = 'accepted_loss'")? {
        return Ok(if accepted(conn)?.is_some() {
            RecordedPosition::Accepted
        } else {
            RecordedPosition::At(position(conn)?)
        });
    }
    let is_ours = has("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'")?;
    Ok(if is_ours { RecordedPosition::Uncounted } else { RecordedPosition::Nothing })
}

/// Accepts a loss. It stays recorded until a new timeline has begun, because the missing commits handed out tokens. The
/// unreadable log is deleted, and so are the leases of processes that no longer run. The database gets a new id, so that it
/// is distinguished from its earlier state.
pub(crate) fn accept(conn: &Connection, loss: &Loss) -> Result<(), OpenError> {
    let found: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(OpenError::Damaged(found));
    }
    let transaction = conn.unchecked_transaction()?;
    let sql = "UPDATE book SET installation = randomblob(16), accepted_loss = ?1";
    transaction.execute(sql, [loss.to_string()])?;
    transaction.execute("UPDATE edges SET closed_at = expires_at WHERE closed_at IS NULL", [])?;
    transaction.commit()?;
    Ok(empty_log(conn)?)
}

pub(crate) fn empty_log(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// The accepted loss, until a new timeline has begun.
pub(crate) fn accepted(conn: &Connection) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT accepted_loss FROM book", [], |row| row.get(0))
}

pub(crate) fn position(conn: &Connection) -> rusqlite::Result<CommitPosition> {
    conn.query_row("SELECT installation, commits, last_seq FROM book", [], |row| {
        let commits: i64 = row.get(1)?;
        Ok(CommitPosition { installation: row.get(0)?, commits: commits.unsigned_abs(), last_seq: row.get(2)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_ahead_of_its_mark_has_lost_nothing() {
        let at = |installation: u8, commits| CommitPosition { installation: [installation; 16], commits, last_seq: 5 };
        let found = |commits| RecordedPosition::At(at(1, commits));
        assert_eq!(judge(None, RecordedPosition::Nothing, None), None, "a new folder");
        assert_eq!(judge(None, found(9), None), None, "restored, or from before marks");
        assert_eq!(judge(Some(at(1, 9)), found(9), None), None);
        assert_eq!(judge(Some(at(1, 9)), found(10), None), None, "ended between a sync and its mark, or a power cut");
        let (marked, behind) = (at(1, 9), at(1, 8));
        assert_eq!(judge(Some(marked), found(8), None), Some(Loss::Behind { marked, found: behind }));
        assert_eq!(judge(Some(at(2, 3)), found(9), None), Some(Loss::Other));
        assert_eq!(judge(Some(marked), RecordedPosition::Nothing, None), Some(Loss::Gone { marked }));
        assert_eq!(
            judge(Some(marked), RecordedPosition::Uncounted, None),
            Some(Loss::Other),
            "a database of an older version"
        );
        assert_eq!(judge(Some(marked), RecordedPosition::Accepted, None), None, "the mark is of the time before");
        let broken = BrokenLog { frame: 3, commits_behind: 2 };
        assert_eq!(judge(Some(marked), found(9), Some(broken)), Some(Loss::Broken(broken)));
        let torn = BrokenLog { commits_behind: 1, ..broken };
        assert_eq!(judge(Some(marked), found(9), Some(torn)), None, "a power cut in the middle of a commit");
    }
}
