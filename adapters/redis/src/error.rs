//! Errors of the server and of its configuration.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a server cannot be used as it is configured.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{0:?} cannot name an installation: use 1 to 64 letters, digits, '-', '_' or '.'")]
    Installation(String),
    #[error("the Redis URL cannot be used: {0}. It looks like redis://user:password@host:6379/0")]
    Url(String),
    #[error(
        "REDIS_URL names another machine and begins with redis://, so everything would travel in the clear: write rediss://, or \
         insist with --insecure-servers"
    )]
    InTheClear,
    #[error("REDIS_TLS files are given, but REDIS_URL does not ask for TLS: write rediss://, or leave them out")]
    Contradiction,
    #[error(
        "REDIS_URL ends with #insecure, which would believe anybody: leave it out, and name the authority with REDIS_TLS_CA"
    )]
    Unchecked,
    #[error("Redis cannot be reached: {0}. Check that the server runs and that address and password are right")]
    Unreachable(String),
    #[error("Redis refuses: {0}. Check that it is a primary with memory to spare and that we may run scripts")]
    Refuses(String),
    #[error("Redis may throw our keys away (maxmemory-policy is {0}): run `CONFIG SET maxmemory-policy noeviction`")]
    Evicts(String),
}

impl From<RedisError> for ConnectError {
    fn from(error: RedisError) -> Self {
        match error.kind() {
            // The server refuses for now: it loads its dump, runs a long script, or waits for its primary.
            ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::TryAgain | ServerErrorKind::MasterDown) => {
                Self::Unreachable(error.to_string())
            }
            ErrorKind::Server(_) | ErrorKind::Extension => Self::Refuses(error.to_string()),
            _ => Self::Unreachable(error.to_string()),
        }
    }
}

/// Why a call had no effect.
#[derive(Clone, Debug)]
pub(crate) enum LaneRefusal {
    /// The server has no lanes of this installation: it was emptied or restarted, or replaced by another.
    Blank,
    /// The lanes on the server have another version of the layout.
    Stale,
    /// The server did not answer, or the answer cannot be decoded.
    Away,
}
