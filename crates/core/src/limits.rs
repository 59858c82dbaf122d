//! Budgets and times of an installation; those that clients need too are in `lockgate-contract`.

use std::time::Duration;

pub use lockgate_contract::limits::{
    ATTEMPTS_MAX, BATCH_JOBS_MAX, CHILD_DEPTH_MAX, CHILDREN_MAX, ENTRIES_MAX, ERROR_BYTES_MAX, INVENTORY_MAX,
    PAYLOAD_BYTES_MAX, PREFETCH_MAX, SLOTS_MAX, SPAN_MS_MAX, VALUE_BYTES_MAX,
};

/// How long a worker may take to stop an attempt after its timeout. A run waits that long before it undoes work, see
/// [`Leaving`](crate::job::Leaving). If it were shorter, a compensation could overtake the work that it undoes; if it were
/// longer, a run would wait longer for a worker that neither answers nor is closed.
pub const LETTING_GO: Duration = Duration::from_secs(30);

/// How long a run waits for the scan of a late result. A stored duty guarantees the scan, so the wait ends by itself; the
/// span only has to be longer than any outage of a scanner.
pub const SCAN_PATIENCE: Duration = Duration::from_millis(SPAN_MS_MAX);

/// Budgets and times of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Attempts that may fail before a job is dead, if the client names no number.
    pub attempts_default: u32,
    /// Attempts that may be lost by the platform; never charged to the client's failure budget.
    pub infra_failures_max: u32,
    /// Snoozes before a job that never works ends as failed.
    pub snoozes_max: u32,
    /// The first retry delay; doubled with each failure.
    pub backoff_base: Duration,
    /// The longest retry delay.
    pub backoff_max: Duration,
    /// How often placement is tried for a job that no worker can take before the job is given up.
    pub placing_tries_max: u32,
    /// How long a job without a verdict waits before it is judged again.
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
