//! Failures of the Store, by what the caller can do about them.

use lockgate_core::ids::{JobId, TenantId};
use lockgate_core::job::JobState;
use lockgate_core::request::RequestHash;

/// The whole call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written. Trying again later may help.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Nothing was written: no space is left. Retrying helps once space is freed.
    #[error("the store is full: {0}")]
    Full(String),
    /// The commit may or may not have happened: read it back before acting.
    #[error("the outcome of the commit is unknown: {0}")]
    UnknownOutcome(String),
    /// A row that was read cannot be decoded. A person must look.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// Nothing was written: a row or a statement is at fault, not the Store, which accepts others. A retry fails until a
    /// person repairs it.
    #[error("the store does not take it: {0}")]
    Refused(String),
}

impl StoreError {
    /// Whether the error is about the row that was asked for and not about the Store: calls for other rows may succeed.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::Refused(_))
    }

    pub fn certainly_not_applied(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Full(_) | Self::Refused(_))
    }
}

/// One item of a commit was refused. The other items are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The version or the evidence no longer holds: load again, decide again.
    #[error("the job changed meanwhile")]
    Conflict,
    /// The id or the idempotency key of a new job belongs to an existing job.
    #[error("taken by job {}", .0.job_id)]
    Taken(Box<DuplicateJob>),
    /// The Store refuses this row: a constraint, a trigger, a value that is too large. Deciding again does not help.
    #[error("the store does not take it: {0}")]
    Refused(String),
}

/// The job that already has an id or key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateJob {
    pub job_id: JobId,
    pub tenant: TenantId,
    pub hash: RequestHash,
    pub state: JobState,
    /// Whether the idempotency key was taken; otherwise the job id.
    pub by_key: bool,
}
