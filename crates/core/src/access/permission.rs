//! Permissions of calls, and the roles that have them.

use super::Role;

/// The permission that a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Ask for one's own identity.
    Enter,
    /// Read jobs, runs, queues, pools and workers.
    Look,
    /// Read payloads, results and logs too.
    SeePayloads,
    /// Submit jobs, start runs.
    Submit,
    /// Cancel jobs and runs of one's tenant.
    Cancel,
    /// Answer approvals, release results.
    Approve,
    /// Replay, pause, drain, rerun, resolve.
    Operate,
    /// Store DAGs and schedules.
    Define,
    /// Read policy, configuration and the audit trail.
    LookAtRules,
    /// Ask what verdict a job would get.
    Explain,
    /// Activate policies and configuration.
    Govern,
    /// Create and end credentials.
    ManageCredentials,
    /// Take jobs and report their results.
    Work,
    /// Have one action of a running attempt judged.
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

    /// The matrix. A role that is not listed does not have the permission.
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
