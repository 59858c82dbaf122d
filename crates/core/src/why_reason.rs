//! The codes by which `why` says what a job waits for, or why it is where it is. They are part of the API.

use crate::placement::Refusal;
use crate::pools::Unrouted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyReason {
    OutputCheck,
    Throttled,
    WaitingForVerdict,
    SafetyKernelUnavailable,
    ConfigUnreadable,
    LanesUnavailable,
    NoPoolMapping,
    PreferredPoolNotMapped,
    NoAllowedPool,
    PoolPaused,
    PoolDraining,
    BehindPausedPool,
    NoWorkers,
    WorkersAway,
    PoolOverloaded,
    WorkersBusy,
    Starting,
    RateLimited,
    TenantLimit,
    PoolLimit,
    LimitFull,
    ClockWasAhead,
    DispatchFailed,
    WaitingForRetry,
    WaitingForTime,
    WaitingForApproval,
    WaitingForChildren,
    WaitingForRollback,
    WaitingForWorker,
    Dispatched,
    Running,
    SafetyDenied,
    Ended,
}

impl WhyReason {
    pub const ALL: [Self; 33] = [
        Self::OutputCheck,
        Self::Throttled,
        Self::WaitingForVerdict,
        Self::SafetyKernelUnavailable,
        Self::ConfigUnreadable,
        Self::LanesUnavailable,
        Self::NoPoolMapping,
        Self::PreferredPoolNotMapped,
        Self::NoAllowedPool,
        Self::PoolPaused,
        Self::PoolDraining,
        Self::BehindPausedPool,
        Self::NoWorkers,
        Self::WorkersAway,
        Self::PoolOverloaded,
        Self::WorkersBusy,
        Self::Starting,
        Self::RateLimited,
        Self::TenantLimit,
        Self::PoolLimit,
        Self::LimitFull,
        Self::ClockWasAhead,
        Self::DispatchFailed,
        Self::WaitingForRetry,
        Self::WaitingForTime,
        Self::WaitingForApproval,
        Self::WaitingForChildren,
        Self::WaitingForRollback,
        Self::WaitingForWorker,
        Self::Dispatched,
        Self::Running,
        Self::SafetyDenied,
        Self::Ended,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutputCheck => "output_check",
            Self::Throttled => "throttled",
            Self::WaitingForVerdict => "waiting_for_verdict",
            Self::SafetyKernelUnavailable => "safety_kernel_unavailable",
            Self::ConfigUnreadable => "config_unreadable",
            Self::LanesUnavailable => "lanes_unavailable",
            Self::NoPoolMapping => "no_pool_mapping",
            Self::PreferredPoolNotMapped => "preferred_pool_not_mapped",
            Self::NoAllowedPool => "no_allowed_pool",
            Self::PoolPaused => "pool_paused",
            Self::PoolDraining => "pool_draining",
            Self::BehindPausedPool => "behind_paused_pool",
            Self::NoWorkers => "no_workers",
            Self::WorkersAway => "workers_away",
            Self::PoolOverloaded => "pool_overloaded",
            Self::WorkersBusy => "workers_busy",
            Self::Starting => "starting",
            Self::RateLimited => "rate_limited",
            Self::TenantLimit => "tenant_limit",
            Self::PoolLimit => "pool_limit",
            Self::LimitFull => "limit_full",
            Self::ClockWasAhead => "clock_was_ahead",
            Self::DispatchFailed => "dispatch_failed",
            Self::WaitingForRetry => "waiting_for_retry",
            Self::WaitingForTime => "waiting_for_time",
            Self::WaitingForApproval => "waiting_for_approval",
            Self::WaitingForChildren => "waiting_for_children",
            Self::WaitingForRollback => "waiting_for_rollback",
            Self::WaitingForWorker => "waiting_for_worker",
            Self::Dispatched => "dispatched",
            Self::Running => "running",
            Self::SafetyDenied => "safety_denied",
            Self::Ended => "ended",
        }
    }
}

/// Why no worker takes the job.
impl From<&Refusal> for WhyReason {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Unrouted(Unrouted::NoMapping) => Self::NoPoolMapping,
            Refusal::Unrouted(Unrouted::PreferredPool) => Self::PreferredPoolNotMapped,
            Refusal::Unrouted(Unrouted::AllowedPools) => Self::NoAllowedPool,
            Refusal::PoolPaused => Self::PoolPaused,
            Refusal::PoolDraining => Self::PoolDraining,
            Refusal::BehindPaused => Self::BehindPausedPool,
            Refusal::NoWorkers => Self::NoWorkers,
            Refusal::WorkersAway => Self::WorkersAway,
            Refusal::PoolOverloaded => Self::PoolOverloaded,
            Refusal::WorkersBusy => Self::WorkersBusy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_one_code_wherever_it_is_told() {
        let refusals = [
            Refusal::Unrouted(Unrouted::NoMapping),
            Refusal::Unrouted(Unrouted::PreferredPool),
            Refusal::Unrouted(Unrouted::AllowedPools),
            Refusal::PoolPaused,
            Refusal::PoolDraining,
            Refusal::BehindPaused,
            Refusal::NoWorkers,
            Refusal::WorkersAway,
            Refusal::PoolOverloaded,
            Refusal::WorkersBusy,
        ];
        for refusal in refusals {
            assert_eq!(WhyReason::from(&refusal).as_str(), refusal.to_string());
        }
    }
}
