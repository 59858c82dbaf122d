//! Budgets and times of an installation, beside the numbers that clients know too.

use std::time::Duration;

pub use lockgate_contract::limits::{
    ATTEMPTS_MAX, BATCH_JOBS_MAX, CHILD_DEPTH_MAX, CHILDREN_MAX, ENTRIES_MAX, ERROR_BYTES_MAX, INVENTORY_MAX,
    PAYLOAD_BYTES_MAX, PREFETCH_MAX, SLOTS_MAX, SPAN_MS_MAX, VALUE_BYTES_MAX,
};

/// How long a worker may take to stop an attempt whose time is over. What its run did is not undone before: see
/// [`Leaving`](crate::job::Leaving). Shorter, and an undo may overtake what it undoes; longer, and a run waits for a worker that
/// neither answers nor is closed.
pub const LETTING_GO: Duration = Duration::from_secs(30);

/// How long a run waits for the scan of a result that came after its attempt had been taken away. The scan is owed by a stored
/// row, so it ends by itself; the span only has to be longer than any outage of a scanner.
pub const SCAN_PATIENCE: Duration = Duration::from_millis(SPAN_MS_MAX);

/// Budgets and times of one installation. The defaults are the contract of the requirement documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Attempts that may fail before a job is dead, when the client names no number.
    pub attempts_default: u32,
    /// Attempts that may be lost by the platform, never charged to the client's budget.
    pub infra_failures_max: u32,
    /// Snoozes before a job that never works is called dead.
    pub snoozes_max: u32,
    /// First retry delay; doubled per failure.
    pub backoff_base: Duration,
    /// Longest retry delay.
    pub backoff_max: Duration,
    /// How often placing a job that nobody can ever take is tried before it is given up.
    pub placing_tries_max: u32,
    /// How long a job waits before it is judged again when no verdict could be had.
    pub judge_again_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            attempts_default: 3,
            infra_failures_max: 6,
            snoozes_max: 1_000,
            backoff_base: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            placing_tries_max: 50,
            judge_again_after: Duration::from_secs(5),
        }
    }
}
