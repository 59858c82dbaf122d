//! Metric families of what somebody else than a worker still has to do.

use std::time::Duration;

use lockgate_core::job::{Duty, Job};
use lockgate_core::time::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::catalogue::MetricFamilies;
use super::{Seconds, count};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByDuty {
    duty: &'static str,
}

#[derive(Clone)]
pub(crate) struct OwedMetrics {
    approvals: Gauge,
    owed: Family<ByDuty, Gauge>,
    oldest: Family<ByDuty, Seconds>,
    pending: Seconds,
    unsealed: Seconds,
}

impl OwedMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let approvals = Gauge::default();
        registry.register("approvals_waiting", "Jobs that wait for a person, counted up to a hundred", approvals.clone());
        let owed = Family::<ByDuty, Gauge>::default();
        let help = "Jobs that still owe an approval, a scan of their result, a verdict that was bypassed, the end of their children (gather) or an end to them (disown), counted up to a hundred";
        registry.register("duties_owed", help, owed.clone());
        let oldest = Family::<ByDuty, Seconds>::default();
        registry.register("duties_oldest_seconds", "For how long the oldest of them has been owed", oldest.clone());
        let pending = Seconds::default();
        let help = "For how long the oldest job without a verdict has been due for one";
        registry.register("pending_oldest_seconds", help, pending.clone());
        let unsealed = Seconds::default();
        registry.register("audit_unsealed_seconds", "Age of the oldest audit row that no block seals", unsealed.clone());
        Self { approvals, owed, oldest, pending, unsealed }
    }

    /// The first jobs that owe something.
    pub(crate) fn owing(&self, duty: Duty, jobs: &[Job], now: Timestamp) {
        let label = ByDuty { duty: duty.as_str() };
        let oldest = jobs.iter().map(|job| now.since(since(duty, job))).max();
        self.owed.get_or_create(&label).set(count(jobs.len()));
        self.oldest.get_or_create(&label).set(oldest.unwrap_or_default().as_secs_f64());
        if duty == Duty::Approve {
            self.approvals.set(count(jobs.len()));
        }
    }

    pub(crate) fn oldest_pending(&self, age: Duration) {
        self.pending.set(age.as_secs_f64());
    }

    pub(crate) fn oldest_unsealed(&self, age: Duration) {
        self.unsealed.set(age.as_secs_f64());
    }
}

/// When the duty began.
fn since(duty: Duty, job: &Job) -> Timestamp {
    let life = &job.life;
    let began = match duty {
        Duty::Approve => life.approval.as_ref().map(|approval| approval.asked_at),
        Duty::Rejudge => life.bypass.as_ref().map(|bypass| bypass.at),
        Duty::Gather => job.barrier().map(|barrier| barrier.since),
        Duty::Disown => life.ended_at,
        // A held result has no end yet; it was dispatched before it was made.
        Duty::Scan => life.ended_at.or_else(|| life.attempt.binding.as_ref().map(|binding| binding.dispatched_at)),
    };
    began.unwrap_or(life.due_at)
}
