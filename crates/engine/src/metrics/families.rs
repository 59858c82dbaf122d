//! Metric families of children and of the barriers behind which their parents wait.

use lockgate_core::job::{Job, JobState};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::begin_at_zero;
use super::catalogue::MetricFamilies;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByChildOutcome {
    outcome: &'static str,
}

#[derive(Clone)]
pub(crate) struct FamilyMetrics {
    submitted: Counter,
    barriers: Family<ByChildOutcome, Counter>,
}

impl FamilyMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let submitted = Counter::default();
        registry.register("children_submitted", "Jobs that running jobs submitted as their children", submitted.clone());
        let barriers = Family::<ByChildOutcome, Counter>::default();
        let help = "Waits of jobs for their children that are over: opened, timed out, put to a person, or the job ended";
        registry.register("barriers", help, barriers.clone());
        begin_at_zero(&barriers, ["opened", "review", "timed_out", "ended"].map(|outcome| ByChildOutcome { outcome }));
        Self { submitted, barriers }
    }

    pub(crate) fn submitted(&self) {
        self.submitted.inc();
    }

    pub(crate) fn moved(&self, before: &Job, job: &Job) {
        if before.barrier().is_none() || job.barrier().is_some() {
            return;
        }
        let rounds = |job: &Job| job.life.family.as_ref().map_or(0, |family| family.rounds);
        let outcome = match job.state() {
            _ if rounds(job) > rounds(before) => "opened",
            JobState::ApprovalRequired => "review",
            JobState::Failed => "timed_out",
            _ => "ended",
        };
        self.barriers.get_or_create(&ByChildOutcome { outcome }).inc();
    }
}
