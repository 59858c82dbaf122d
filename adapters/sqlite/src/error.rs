//! Classifies SQLite's failures by what the caller can do about them.

use std::path::PathBuf;

use lockgate_ports::{Misread, StoreError};
use lockgate_sql::UnknownCode;
use rusqlite::{Error, ErrorCode, ffi};

use crate::continuity::Loss;

const LOST_TODO: &str = "Keep a copy of the folder, then restore a backup (docs/backup.md; docs/disaster-recovery.md has the larger \
    picture), or start with --accept-loss to go on with what is left";

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("another lockgate process uses this data folder: {}", .0.display())]
    InUse(PathBuf),
    #[error("the data folder {} cannot be used: {error}", path.display())]
    Folder { path: PathBuf, error: std::io::Error },
    #[error("the data folder was written by a newer lockgate: its schema is {found}, this one knows {known}")]
    Newer { found: i64, known: i64 },
    #[error("the database cannot be opened: {}{}", .0, restore_hint(.0))]
    Database(#[from] rusqlite::Error),
    #[error(
        "acknowledged work is missing in the data folder {}: {loss}. {LOST_TODO}",
        path.display()
    )]
    Lost { path: PathBuf, loss: Loss },
    #[error("{what_to_free} ({error})")]
    NoRoom { what_to_free: String, error: rusqlite::Error },
    #[error("what is left of the database is damaged: {0}. Restore a backup into a new folder: docs/backup.md says how")]
    Damaged(String),
    #[error("the file system of the data folder does not support a write-ahead log: the journal stays {0:?}")]
    NoLog(String),
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
}

/// A failure inside a transaction or a read, before anything was committed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatementError {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// A row that cannot be decoded.
    #[error("{0}")]
    Row(String),
}

impl From<rusqlite::types::FromSqlError> for StatementError {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Row(error.to_string())
    }
}

impl From<UnknownCode> for StatementError {
    fn from(error: UnknownCode) -> Self {
        Self::Row(error.to_string())
    }
}

impl From<serde_json::Error> for StatementError {
    fn from(error: serde_json::Error) -> Self {
        Self::Row(error.to_string())
    }
}

impl StatementError {
    /// The error for a failure before COMMIT: nothing of the transaction or read remains.
    pub(crate) fn before_commit(&self) -> StoreError {
        let mut text = self.to_string();
        if let Self::Sql(error) = self {
            text.push_str(restore_hint(error));
        }
        match self {
            Self::Row(_) => StoreError::Corrupt(text),
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => StoreError::Full(text),
                // Errors without a code are rusqlite's own: a column does not have the type of the schema.
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => StoreError::Corrupt(text),
                Some(_) if self.is_refused() => StoreError::Refused(text),
                Some(_) => StoreError::Unavailable(text),
            },
        }
    }

    /// Whether the failure was caused by one task of a group and not by the disk, so that the other tasks may be retried
    /// without it.
    pub(crate) fn is_of_one_task(&self) -> bool {
        match self {
            Self::Row(_) => true,
            Self::Sql(error) => error.sqlite_error_code().is_none() || self.is_refused(),
        }
    }

    /// A row is at fault and a retry would fail too: a constraint, a trigger, a value that is too large.
    pub(crate) fn is_refused(&self) -> bool {
        let Self::Sql(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        )
    }

    /// The disk did not confirm a write. A restart may find something else than what the kernel has in memory, so the
    /// process must stop.
    pub(crate) fn is_failed_sync(&self) -> bool {
        let Self::Sql(Error::SqliteFailure(error, _)) = self else { return false };
        matches!(error.extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
    }
}

impl Misread for StatementError {
    fn is_of_one_row(&self) -> bool {
        match self {
            Self::Row(_) => true,
            // The column does not have the type of the schema. Every other error is about the statement.
            Self::Sql(error) => matches!(
                error,
                Error::FromSqlConversionFailure(..)
                    | Error::InvalidColumnType(..)
                    | Error::IntegralValueOutOfRange(..)
                    | Error::Utf8Error(..)
            ),
        }
    }
}

/// What to do about a damaged file.
fn restore_hint(error: &Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "; docs/backup.md says how to restore it from a backup"
        }
        _ => "",
    }
}

/// The error for a failed COMMIT. SQLite notices a full disk before it writes the commit record, and a busy database before
/// it writes anything; after any other failure the commit may be durable.
pub(crate) fn failed_commit(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => StatementError::from(error).before_commit(),
        _ => StoreError::UnknownOutcome(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn a_full_disk_is_known_to_have_changed_nothing() {
        assert!(matches!(StatementError::from(failure(ffi::SQLITE_FULL)).before_commit(), StoreError::Full(_)));
        assert!(matches!(failed_commit(failure(ffi::SQLITE_FULL)), StoreError::Full(_)));
        assert!(failed_commit(failure(ffi::SQLITE_BUSY)).certainly_not_applied());
    }

    #[test]
    fn a_commit_that_failed_on_the_disk_has_an_unknown_outcome() {
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR] {
            assert!(matches!(failed_commit(failure(code)), StoreError::UnknownOutcome(_)), "{code}");
            assert!(matches!(StatementError::from(failure(code)).before_commit(), StoreError::Unavailable(_)), "{code}");
        }
    }

    #[test]
    fn only_a_failed_sync_is_fatal_before_the_commit() {
        assert!(StatementError::from(failure(ffi::SQLITE_IOERR_FSYNC)).is_failed_sync());
        assert!(!StatementError::from(failure(ffi::SQLITE_IOERR_READ)).is_failed_sync());
        assert!(!StatementError::from(failure(ffi::SQLITE_FULL)).is_failed_sync());
    }

    #[test]
    fn damage_is_told_apart_from_trouble() {
        assert!(matches!(StatementError::from(failure(ffi::SQLITE_CORRUPT)).before_commit(), StoreError::Corrupt(_)));
        let damaged = StatementError::from(failure(ffi::SQLITE_NOTADB)).before_commit().to_string();
        assert!(damaged.ends_with("docs/backup.md says how to restore it from a backup"), "{damaged}");
        assert!(matches!(StatementError::Row("no".to_owned()).before_commit(), StoreError::Corrupt(_)));
        assert!(!StatementError::from(failure(ffi::SQLITE_FULL)).is_of_one_task());
        assert!(!StatementError::from(failure(ffi::SQLITE_CORRUPT)).is_of_one_row());
        assert!(StatementError::Row("no".to_owned()).is_of_one_row());
    }

    #[test]
    fn what_a_row_is_refused_for_is_no_trouble_of_the_store() {
        for code in [ffi::SQLITE_CONSTRAINT_CHECK, ffi::SQLITE_CONSTRAINT_TRIGGER, ffi::SQLITE_TOOBIG, ffi::SQLITE_MISMATCH]
        {
            let fault = StatementError::from(failure(code));
            assert!(matches!(fault.before_commit(), StoreError::Refused(_)), "{code}");
            assert!(fault.is_of_one_task(), "{code}");
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_READONLY, ffi::SQLITE_PERM, ffi::SQLITE_CANTOPEN] {
            assert!(matches!(StatementError::from(failure(code)).before_commit(), StoreError::Unavailable(_)), "{code}");
        }
    }
}
