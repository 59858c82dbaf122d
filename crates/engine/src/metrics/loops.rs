//! Metric families of what happens by itself: who leads which loop, when it last came round, and what it could not do.

use std::time::Duration;

use lockgate_core::job::JobState;
use lockgate_core::time::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::catalogue::MetricFamilies;
use super::decisions::DecisionMetrics;
use super::{Seconds, count};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByLoop {
    r#loop: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct JobStateLabel(JobState);

impl EncodeLabelValue for JobStateLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByJobState {
    state: JobStateLabel,
}

/// Loops that ask the Store what there is to do, or write there what they did. Counted from nothing, so that the first failure is
/// seen as a rise.
const LISTING: [&str; 24] = [
    "deadlines",
    "dispatch",
    "due",
    "edges",
    "families",
    "feed",
    "lanes",
    "ledger",
    "limits",
    "neighbours",
    "outbox",
    "pending",
    "placing",
    "policies",
    "reap",
    "reoffer",
    "retention",
    "runs",
    "scans",
    "schedules",
    "seals",
    "sending",
    "stamps",
    "starts",
];

#[derive(Clone)]
pub(crate) struct LoopMetrics {
    leader: Family<ByLoop, Gauge>,
    ticked: Family<ByLoop, Seconds>,
    failed: Family<ByLoop, Counter>,
    decisions: DecisionMetrics,
    stale: Family<ByJobState, Gauge>,
    deferred: Seconds,
    tasks: Gauge,
}

impl LoopMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>, decisions: DecisionMetrics) -> Self {
        let leader = Family::<ByLoop, Gauge>::default();
        registry.register("leader", "Whether this process does the rounds of a loop that one does for all", leader.clone());
        let ticked = Family::<ByLoop, Seconds>::default();
        let help = "When a loop with a leader last came round here, leading or not, in seconds since 1970";
        registry.register("loop_tick_timestamp_seconds", help, ticked.clone());
        let failed = Family::<ByLoop, Counter>::default();
        let help = "Rounds of loops that the Store did not answer in full; the next tick tries again";
        registry.register("reaper_list_errors", help, failed.clone());
        for name in LISTING {
            drop(failed.get_or_create(&ByLoop { r#loop: name }));
        }
        let stale = Family::<ByJobState, Gauge>::default();
        let help = "Jobs past their deadline that the last round could not end, by state";
        registry.register("stale_jobs", help, stale.clone());
        let deferred = Seconds::default();
        let help = "For how long no worker has been called lost and no attempt late, because calls that they wait for fail";
        registry.register("reaping_deferred_seconds", help, deferred.clone());
        let tasks = Gauge::default();
        registry.register("runtime_tasks", "Tasks of the process that have not ended", tasks.clone());
        Self { leader, ticked, failed, decisions, stale, deferred, tasks }
    }

    pub(crate) fn came_round(&self, name: &'static str, leads: bool, now: Timestamp) {
        let label = ByLoop { r#loop: name };
        self.leader.get_or_create(&label).set(i64::from(leads));
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age are exact in a double")]
        self.ticked.get_or_create(&label).set(now.as_millis() as f64 / 1e3);
    }

    /// A loop got no answer from the Store to all of what it asked.
    pub(crate) fn failed(&self, name: &'static str) {
        debug_assert!(LISTING.contains(&name), "{name} is not counted from nothing: an alert would miss its first failures");
        self.failed.get_or_create(&ByLoop { r#loop: name }).inc();
        self.decisions.unanswered(name);
    }

    /// The states of jobs that should have ended.
    pub(crate) fn found_stale(&self, jobs: impl Iterator<Item = JobState>) {
        let mut found = JobState::ALL.map(|state| (state, 0));
        for job in jobs {
            found.iter_mut().filter(|(state, _)| *state == job).for_each(|(_, count)| *count += 1);
        }
        for (state, jobs) in found.into_iter().filter(|(state, _)| !state.is_terminal()) {
            self.stale.get_or_create(&ByJobState { state: JobStateLabel(state) }).set(jobs);
        }
    }

    /// Nobody has been reaped for so long.
    pub(crate) fn deferred(&self, span: Duration) {
        self.deferred.set(span.as_secs_f64());
    }

    pub(crate) fn tasks(&self, alive: usize) {
        self.tasks.set(count(alive));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn jobs_that_do_not_end_are_counted_by_state_until_they_do() {
        let mut registry = Registry::default();
        let mut families = MetricFamilies::new(&mut registry);
        let decisions = DecisionMetrics::new(&mut families);
        let metrics = LoopMetrics::new(&mut families, decisions);
        let shown = || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("encoded");
            let stale = |line: &&str| line.starts_with("stale_jobs{") && !line.ends_with(" 0");
            text.lines().filter(stale).map(str::to_owned).collect::<Vec<_>>()
        };
        metrics.found_stale([JobState::Running, JobState::Running].into_iter());
        assert_eq!(shown(), [r#"stale_jobs{state="RUNNING"} 2"#]);
        metrics.found_stale(std::iter::empty());
        assert_eq!(shown(), [""; 0]);
    }

    #[test]
    fn reaping_deferred_seconds_say_for_how_long() {
        let mut registry = Registry::default();
        let mut families = MetricFamilies::new(&mut registry);
        let decisions = DecisionMetrics::new(&mut families);
        let metrics = LoopMetrics::new(&mut families, decisions);
        metrics.deferred(Duration::from_millis(1_500));
        let mut text = String::new();
        encode(&mut text, &registry).expect("encoded");
        assert!(text.contains("reaping_deferred_seconds 1.5"), "{text}");
    }
}
