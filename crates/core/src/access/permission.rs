//! What calls need, and which roles have it.

use super::Role;

/// What a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Know who one is.
    Enter,
    /// Look at jobs, runs, queues, pools and workers.
    Look,
    /// See payloads, results and logs too.
    SeePayloads,
    /// Submit jobs, start runs.
    Submit,
    /// Stop one's tenant's jobs and runs.
    Cancel,
    /// Answer approvals, release results.
    Approve,
    /// Replay, pause, drain, rerun, resolve.
    Operate,
    /// Store DAGs and schedules.
    Define,
    /// Look at policy, configuration and the audit trail.
    LookAtRules,
    /// Ask what policy would say.
    Explain,
    /// Put policy and configuration in force.
    Govern,
    /// Make and end credentials.
    ManageCredentials,
    /// Take jobs and report what became of them.
    Work,
    /// Have a single act of a running attempt judged.
    Check,
    /// Have jobs and results judged on behalf of another scheduler.
    Judge,
}

impl Permission {
    pub const ALL: [Self; 15] = [
        Self::Enter,
        Self::Look,
        Self::SeePayloads,
        Self::Submit,
        Self::Cancel,
        Self::Approve,
        Self::Operate,
        Self::Define,
        Self::LookAtRules,
        Self::Explain,
        Self::Govern,
        Self::ManageCredentials,
        Self::Work,
        Self::Check,
        Self::Judge,
    ];

    /// The matrix. A role that is not named does not have it.
    pub const fn is_given_to(self, role: Role) -> bool {
        use Role::{Admin, Approver, Operator, Scheduler, Submitter, Viewer, Worker};
        match self {
            Self::Enter => true,
            Self::Look | Self::SeePayloads => matches!(role, Viewer | Submitter | Approver | Operator | Admin),
            Self::Submit | Self::Cancel => matches!(role, Submitter | Operator | Admin),
            Self::Approve => matches!(role, Approver | Admin),
            Self::Operate | Self::Define => matches!(role, Operator | Admin),
            Self::LookAtRules => matches!(role, Approver | Operator | Admin),
            Self::Explain => matches!(role, Approver | Operator | Admin | Scheduler),
            Self::Govern | Self::ManageCredentials => matches!(role, Admin),
            Self::Check => matches!(role, Worker | Scheduler | Admin),
            Self::Judge => matches!(role, Scheduler | Admin),
            Self::Work => matches!(role, Worker),
        }
    }
}
