//! Metric families of the engine. Handles are kept; nothing is looked up by name on the hot path.

mod access;
mod governance;
mod runs;
mod schedules;
mod sharing;

use std::sync::Arc;

use lockgate_core::job::{Job, JobState, Reason};
use lockgate_core::lane::Priority;
use lockgate_core::time::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub(crate) use access::AccessMetrics;
pub(crate) use governance::GovernanceMetrics;
pub(crate) use runs::RunMetrics;
pub(crate) use schedules::ScheduleMetrics;
pub(crate) use sharing::SharingMetrics;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Level(Priority);

impl EncodeLabelValue for Level {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPriority {
    priority: Level,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cause(Reason);

impl EncodeLabelValue for Cause {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: Cause,
}

/// Counters of one priority, resolved once.
#[derive(Clone)]
struct PriorityCounters {
    enqueued: Counter,
    dequeued: Counter,
    succeeded: Counter,
    failed: Counter,
    retried: Counter,
    enqueue_to_start: Histogram,
    queue_depth: Gauge,
    retry_depth: Gauge,
    dlq_depth: Gauge,
}

/// Gauges, by priority in the order of `Priority::ALL`.
#[derive(Default)]
pub(crate) struct Levels {
    pub(crate) queued: [u64; 4],
    /// Waiting for a time or a verdict.
    pub(crate) later: [u64; 4],
    pub(crate) dead: [u64; 4],
    pub(crate) held: u64,
}

/// Shared by clones.
#[derive(Clone)]
pub struct Metrics {
    by_priority: Arc<[PriorityCounters; 4]>,
    reaped: Family<ByReason, Counter>,
    run_seconds: Histogram,
    inflight: Gauge,
    ready_rows: Counter,
    pub access: AccessMetrics,
    pub(crate) governance: GovernanceMetrics,
    pub(crate) runs: RunMetrics,
    pub(crate) schedules: ScheduleMetrics,
    pub(crate) sharing: SharingMetrics,
}

impl Metrics {
    /// Registers every family under `lockgate_`.
    pub fn new(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("lockgate");
        let counters = [
            ("tasks_enqueued", "Jobs accepted"),
            ("dequeued", "Attempts dispatched to workers"),
            ("succeeded", "Jobs that succeeded"),
            ("failed", "Jobs that ended badly"),
            ("retried", "Attempts that failed and were scheduled again"),
        ]
        .map(|(name, help)| {
            let family = Family::<ByPriority, Counter>::default();
            registry.register(name, help, family.clone());
            family
        });
        let gauges = [
            ("queue_depth", "Jobs that wait for a worker"),
            ("retry_depth", "Jobs that wait for a time or a verdict: retries, delayed and pending jobs"),
            ("dlq_depth", "Dead letters"),
        ]
        .map(|(name, help)| {
            let family = Family::<ByPriority, Gauge>::default();
            registry.register(name, help, family.clone());
            family
        });
        let start = Family::<ByPriority, Histogram>::new_with_constructor(latency);
        registry.register("enqueue_to_start_seconds", "From ready to dispatched", start.clone());
        let by_priority = Priority::ALL.map(|priority| {
            let label = ByPriority { priority: Level(priority) };
            let [enqueued, dequeued, succeeded, failed, retried] =
                counters.each_ref().map(|f| f.get_or_create_owned(&label));
            let [queue_depth, retry_depth, dlq_depth] = gauges.each_ref().map(|f| f.get_or_create_owned(&label));
            let enqueue_to_start = start.get_or_create_owned(&label);
            PriorityCounters {
                enqueued,
                dequeued,
                succeeded,
                failed,
                retried,
                enqueue_to_start,
                queue_depth,
                retry_depth,
                dlq_depth,
            }
        });
        let reaped = Family::<ByReason, Counter>::default();
        registry.register("reaped", "Attempts taken from workers that lost, never started or overran them", reaped.clone());
        let run_seconds = latency();
        registry.register("task_run_seconds", "Running time of attempts", run_seconds.clone());
        let inflight = Gauge::default();
        registry.register("inflight_leases", "Attempts that workers hold", inflight.clone());
        let ready_rows = Counter::default();
        registry.register("ready_rows_read", "Rows read from the Store to refill lanes", ready_rows.clone());
        let access = AccessMetrics::new(registry);
        let governance = GovernanceMetrics::new(registry);
        let runs = RunMetrics::new(registry);
        let schedules = ScheduleMetrics::new(registry);
        let sharing = SharingMetrics::new(registry);
        Self {
            by_priority: Arc::new(by_priority),
            reaped,
            run_seconds,
            inflight,
            ready_rows,
            access,
            governance,
            runs,
            schedules,
            sharing,
        }
    }

    fn of(&self, job: &Job) -> &PriorityCounters {
        &self.by_priority[job.request.priority() as usize]
    }

    pub(crate) fn entered(&self, job: &Job) {
        self.of(job).enqueued.inc();
    }

    pub(crate) fn dispatched(&self, jobs: &[Arc<Job>]) {
        for job in jobs {
            let counters = self.of(job);
            counters.dequeued.inc();
            if let Some(binding) = &job.life.attempt.binding {
                counters.enqueue_to_start.observe(binding.dispatched_at.since(job.life.due_at).as_secs_f64());
            }
        }
    }

    /// A committed step of a known job.
    pub(crate) fn moved(&self, before: &Job, after: &Job, now: Timestamp) {
        if before.state().is_held() && (after.life.attempt.no != before.life.attempt.no || after.state().is_terminal()) {
            let same = after.life.attempt.no == before.life.attempt.no;
            let started = after.life.attempt.started_at.filter(|_| same).or(before.life.attempt.started_at);
            if let Some(started) = started {
                self.run_seconds.observe(now.since(started).as_secs_f64());
            }
        }
        match after.state() {
            JobState::Succeeded => {
                self.of(after).succeeded.inc();
            }
            state if state.is_dead() => {
                self.of(after).failed.inc();
            }
            JobState::Scheduled | JobState::Pending if after.life.counters.failures > before.life.counters.failures => {
                self.of(after).retried.inc();
            }
            _ => {}
        }
    }

    pub(crate) fn reaped(&self, reason: Reason, count: usize) {
        if count > 0 {
            self.reaped.get_or_create(&ByReason { reason: Cause(reason) }).inc_by(count as u64);
        }
    }

    pub(crate) fn read_ready(&self, rows: usize) {
        self.ready_rows.inc_by(rows as u64);
    }

    pub(crate) fn set_levels(&self, levels: &Levels) {
        for (i, counters) in self.by_priority.iter().enumerate() {
            counters.queue_depth.set(level(levels.queued[i]));
            counters.retry_depth.set(level(levels.later[i]));
            counters.dlq_depth.set(level(levels.dead[i]));
        }
        self.inflight.set(level(levels.held));
    }
}

fn level(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn latency() -> Histogram {
    Histogram::new(exponential_buckets(0.000_5, 2.0, 20))
}
