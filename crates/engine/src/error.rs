//! What a caller of the service can be told.

use lockgate_core::dag::plan::OrderRefusal;
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::Illegal;
use lockgate_core::quotas::Limited;
use lockgate_core::request::FieldError;
use lockgate_ports::{LanesAway, StoreError};

/// Errors by what the caller can do. `code` is stable and part of the API.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ApiError {
    /// The request itself is wrong. Every bad field is named.
    #[error("{}", join(.0))]
    Invalid(Vec<FieldError>),
    #[error("there is no job {0:?}")]
    NotFound(JobId),
    /// Something else than a job.
    #[error("there is no {what} {name:?}{more}")]
    NoSuch {
        what: &'static str,
        name: String,
        /// What there is instead, or how to find out.
        more: String,
    },
    /// The same idempotency key or job id was used for something else.
    #[error("{what} already belongs to {first:?}, which asked for something else")]
    KeyTaken { what: &'static str, first: String },
    /// The job is not in a state that allows this.
    #[error("{0}")]
    State(Illegal),
    /// The run is not in a state that allows this.
    #[error("{0}")]
    RunState(OrderRefusal),
    /// The caller is known, and may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// Somebody else changed it meanwhile.
    #[error("{0}")]
    Outdated(String),
    /// This server does not do it as it was started.
    #[error("{0}")]
    NotConfigured(String),
    /// No room. Later, or after somebody made room.
    #[error("{0}")]
    Exhausted(String),
    /// No room by the rules of the installation. Later.
    #[error(transparent)]
    Limited(Limited),
    /// Nothing was done. Try again.
    #[error("{0}")]
    Unavailable(String),
    /// What was asked for is there and cannot be read. Trying again does not help; everything else is served.
    #[error(
        "the stored row of {row} is damaged and cannot be read ({why}); nothing was done with it. Mend it or restore it from a \
         backup: docs/runbooks/LockgateRowsUnreadable.md"
    )]
    Damaged { row: String, why: String },
    /// A defect or damage on our side.
    #[error("{0}")]
    Internal(String),
}

impl ApiError {
    pub fn invalid(field: &str, message: impl std::fmt::Display) -> Self {
        Self::Invalid(vec![FieldError::new(field, message)])
    }

    pub(crate) fn no_such(what: &'static str, name: &(impl std::fmt::Display + ?Sized)) -> Self {
        Self::NoSuch { what, name: name.to_string(), more: String::new() }
    }

    pub(crate) fn no_run(id: &RunId) -> Self {
        Self::no_such("run", id)
    }

    /// The Store does not take this row, and would not at the next try.
    pub(crate) fn refused(row: impl std::fmt::Display, why: &str) -> Self {
        Self::Internal(format!("{row} was not stored: the Store does not take it ({why})"))
    }

    pub const fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid_argument",
            Self::NotFound(_) | Self::NoSuch { .. } => "not_found",
            Self::KeyTaken { .. } => "idempotency_conflict",
            Self::State(Illegal::Terminal(_)) => "already_ended",
            Self::State(Illegal::Superseded) => "superseded",
            Self::State(Illegal::SelfApproval) => "self_approval",
            Self::State(Illegal::StaleApproval(_)) => "stale_approval",
            Self::State(Illegal::ApprovalExpired) => "approval_expired",
            Self::State(Illegal::PayloadHidden) => "payload_hidden",
            Self::State(Illegal::Disowning) => "children_stopping",
            Self::State(Illegal::Discarded(_)) => "discarded",
            Self::State(_) | Self::RunState(_) => "wrong_state",
            Self::Forbidden(_) => "permission_denied",
            Self::Outdated(_) => "outdated",
            Self::NotConfigured(_) => "not_configured",
            Self::Exhausted(_) => "exhausted",
            Self::Limited(limited) => limited.by.code(),
            Self::Unavailable(_) => "unavailable",
            Self::Damaged { .. } => "row_damaged",
            Self::Internal(_) => "internal",
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(_) => Self::Exhausted(error.to_string()),
            StoreError::Unavailable(_) | StoreError::UnknownOutcome(_) => Self::Unavailable(error.to_string()),
            StoreError::Corrupt(_) | StoreError::Refused(_) => Self::Internal(error.to_string()),
        }
    }
}

impl From<LanesAway> for ApiError {
    fn from(away: LanesAway) -> Self {
        Self::Unavailable(away.to_string())
    }
}

fn join(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
