//! Classifies PostgreSQL's failures by what the caller can do about them.

use std::error::Error as _;

use lockgate_ports::{Misread, StoreError};
use lockgate_sql::UnknownCode;
use tokio_postgres::error::{DbError, SqlState};

/// Why a database cannot be used as a Store.
#[derive(Debug, thiserror::Error)]
pub enum UnusableDatabase {
    #[error("DATABASE_URL cannot be used: {0}. It looks like postgres://user:password@host:5432/database")]
    Url(String),
    #[error(
        "DATABASE_URL names another machine and has sslmode=disable, so everything would travel in the clear: write \
         sslmode=verify-full, or insist with --insecure-servers"
    )]
    InTheClear,
    #[error(
        "DATABASE_URL has sslmode=disable, and DATABASE_TLS files are given: write sslmode=verify-full, or leave them out"
    )]
    Contradiction,
    #[error(
        "DATABASE_URL has sslmode=verify-ca, which believes every server of one authority: name it with DATABASE_TLS_CA, or \
         write sslmode=verify-full"
    )]
    NoAuthority,
    #[error(
        "DATABASE_URL has sslmode={0}, which promises nothing: write verify-full (or require, the same here), verify-ca, or \
         disable on this machine"
    )]
    Mode(String),
    #[error(transparent)]
    Tls(lockgate_tls::TlsError),
    #[error("the database cannot be reached: {0}; check DATABASE_URL and that the server runs")]
    Unreachable(String),
    #[error("the database has schema {found}, this lockgate needs {known}: run `lockgate migrate`")]
    Older { found: i64, known: i64 },
    #[error("the database was written by a newer lockgate: its schema is {found}, this one knows {known}; upgrade this one")]
    Newer { found: i64, known: i64 },
    #[error("migration {version} of the database is not the one this lockgate has; they come from different builds")]
    Changed { version: i64 },
    #[error("{holder} has been migrating the database for too long; try again when it has ended")]
    Locked { holder: String },
    #[error("migration {version} failed and was rolled back: {}", told(error))]
    Migration { version: i64, error: tokio_postgres::Error },
    #[error("the database refused: {}", told(.0))]
    Refused(#[from] tokio_postgres::Error),
}

/// A failure on one connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatementError {
    #[error("{}", told(.0))]
    Sql(#[from] tokio_postgres::Error),
    /// A row that cannot be decoded.
    #[error("{0}")]
    Row(String),
    #[error("the server did not answer in time")]
    TimedOut,
    /// The connection failed before anything was sent.
    #[error("the server is away: {0}")]
    Away(String),
    /// Another session holds a lock for too long; the text names the session.
    #[error("{0}")]
    Locked(String),
}

impl Misread for StatementError {
    fn is_of_one_row(&self) -> bool {
        matches!(self, Self::Row(_))
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

/// The driver's own text omits the server's message, so it is added here.
pub(crate) fn told(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => with_causes(error),
    }
}

fn with_causes(error: &tokio_postgres::Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl StatementError {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Sql(error) => error.code(),
            _ => None,
        }
    }

    /// The server asks to repeat the whole transaction (serialization failure or deadlock).
    pub(crate) fn wants_repeating(&self) -> bool {
        self.code()
            .is_some_and(|code| matches!(*code, SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED))
    }

    /// The writer's guard was raised after it was read: see `Connector::fence`.
    pub(crate) fn is_outdated(&self) -> bool {
        self.code() == Some(&SqlState::DIVISION_BY_ZERO)
    }

    /// The failure was caused by one call of a group and not by the server, so the other calls may be retried without it.
    pub(crate) fn is_of_one_call(&self) -> bool {
        match self {
            Self::Row(_) => true,
            Self::Sql(error) => error.as_db_error().is_some_and(is_of_a_row),
            Self::TimedOut | Self::Away(_) | Self::Locked(_) => false,
        }
    }

    /// The statement waited for a lock as long as `lock_timeout` allows. Without that setting the statement's own timeout
    /// fires.
    pub(crate) fn is_locked_out(&self) -> bool {
        self.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// A row is at fault and a retry would fail too: a constraint, a trigger, a value that the server cannot store. Not
    /// counted: losing a race for a name, because the next try finds it taken, and a raised guard, which is read again.
    pub(crate) fn is_refused(&self) -> bool {
        let Self::Sql(error) = self else { return false };
        let passes = [SqlState::UNIQUE_VIOLATION, SqlState::DIVISION_BY_ZERO];
        error.as_db_error().is_some_and(|said| is_of_a_row(said) && !passes.contains(said.code()))
    }

    /// The server itself refused, so nothing was done. The message with which it ends a session is no refusal: it may come
    /// after a commit.
    pub(crate) fn was_refused(&self) -> bool {
        match self {
            Self::Sql(error) => error.as_db_error().is_some_and(|said| !ends_the_session(said)),
            Self::Row(_) | Self::Away(_) | Self::Locked(_) => true,
            Self::TimedOut => false,
        }
    }

    /// Whether the connection can serve the next call.
    pub(crate) fn leaves_the_connection(&self) -> bool {
        match self {
            Self::Sql(error) => error.as_db_error().is_some_and(|said| !ends_the_session(said)),
            Self::Row(_) | Self::Locked(_) => true,
            Self::TimedOut | Self::Away(_) => false,
        }
    }

    /// The error for a failure before COMMIT was sent: nothing of the transaction or read remains.
    pub(crate) fn before_commit(&self) -> StoreError {
        let text = self.to_string();
        match self {
            Self::Row(_) => StoreError::Corrupt(text),
            Self::Sql(error) => match error.as_db_error() {
                Some(said) if *said.code() == SqlState::DISK_FULL => StoreError::Full(text),
                Some(said) if class(said) == "XX" => StoreError::Corrupt(text),
                Some(_) if self.is_refused() => StoreError::Refused(text),
                _ => StoreError::Unavailable(text),
            },
            Self::TimedOut | Self::Away(_) | Self::Locked(_) => StoreError::Unavailable(text),
        }
    }

    /// The error for a failed COMMIT. If the server reports a rollback, nothing was written. After any other failure the
    /// commit may be durable, even if the server reports the failure, as during a shutdown.
    pub(crate) fn in_commit(&self) -> StoreError {
        let rolled_back = match self {
            Self::Sql(error) => error.as_db_error().is_some_and(|said| {
                let class = class(said);
                is_of_a_row(said) || class == "53" || (class == "40" && said.code().code() != COMPLETION_UNKNOWN)
            }),
            _ => false,
        };
        if rolled_back { self.before_commit() } else { StoreError::UnknownOutcome(self.to_string()) }
    }
}

fn ends_the_session(said: &DbError) -> bool {
    let code = said.code().code();
    code.starts_with("57P") || code.starts_with("08") || code == COMPLETION_UNKNOWN
}

/// Error classes of data, constraints, view checks, limits of the server, and errors raised by functions of the database.
fn is_of_a_row(said: &DbError) -> bool {
    ["22", "23", "44", "54", "P0"].contains(&class(said))
}

const COMPLETION_UNKNOWN: &str = "40003";

fn class(said: &DbError) -> &str {
    said.code().code().get(..2).unwrap_or_default()
}
