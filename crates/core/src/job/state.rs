//! The states of a job.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobState {
    Pending,
    ApprovalRequired,
    Scheduled,
    Dispatched,
    Running,
    Succeeded,
    Failed,
    Timeout,
    Cancelled,
    Denied,
    OutputQuarantined,
}

/// The simplified view of a state, for clients that need no detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Queued,
    Running,
    Succeeded,
    Failed,
    DeadLetter,
}

impl JobState {
    pub const ALL: [Self; 11] = [
        Self::Pending,
        Self::ApprovalRequired,
        Self::Scheduled,
        Self::Dispatched,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Timeout,
        Self::Cancelled,
        Self::Denied,
        Self::OutputQuarantined,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::ApprovalRequired => "APPROVAL_REQUIRED",
            Self::Scheduled => "SCHEDULED",
            Self::Dispatched => "DISPATCHED",
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Timeout => "TIMEOUT",
            Self::Cancelled => "CANCELLED",
            Self::Denied => "DENIED",
            Self::OutputQuarantined => "OUTPUT_QUARANTINED",
        }
    }

    pub const fn is_terminal(self) -> bool {
        self.rank() == 5
    }

    /// Whether a worker holds the attempt.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Dispatched | Self::Running)
    }

    /// Terminal states that leave a dead letter.
    pub const fn is_dead(self) -> bool {
        matches!(self, Self::Failed | Self::Timeout | Self::Denied | Self::OutputQuarantined)
    }

    /// J-1: progress is monotone in (life, attempt number, rank).
    pub const fn rank(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::ApprovalRequired => 1,
            Self::Scheduled => 2,
            Self::Dispatched => 3,
            Self::Running => 4,
            Self::Succeeded | Self::Failed | Self::Timeout | Self::Cancelled | Self::Denied | Self::OutputQuarantined => 5,
        }
    }

    pub const fn phase(self) -> Phase {
        match self {
            Self::Pending | Self::ApprovalRequired | Self::Scheduled | Self::Dispatched => Phase::Queued,
            Self::Running => Phase::Running,
            Self::Succeeded => Phase::Succeeded,
            Self::Cancelled => Phase::Failed,
            Self::Failed | Self::Timeout | Self::Denied | Self::OutputQuarantined => Phase::DeadLetter,
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is not the name of a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a job state such as SCHEDULED or SUCCEEDED; not {0:?}")]
pub struct UnknownState(pub String);

impl FromStr for JobState {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|s| s.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| UnknownState(text.to_owned()))
    }
}
