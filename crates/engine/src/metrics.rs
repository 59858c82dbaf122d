//! Metric families of the engine. Handles are kept; nothing is looked up by name on the hot path.

mod access;
mod admission;
mod catalogue;
mod clocks;
mod decisions;
mod families;
mod governance;
mod health;
mod loops;
mod outbox;
mod owed;
mod pools;
mod registry;
mod runs;
mod sagas;
mod schedules;
mod sharing;
mod topics;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lockgate_core::job::{Job, JobState, OutputStage, Reason};
use lockgate_core::lane::Priority;
use lockgate_core::request::JobRequest;
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::{Decision, Judgement};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub(crate) use access::AccessMetrics;
pub(crate) use admission::AdmissionMetrics;
pub use catalogue::Described;
use catalogue::MetricFamilies;
pub(crate) use clocks::{ClockMetrics, Stamped, Whose};
use decisions::DecisionMetrics;
pub(crate) use families::FamilyMetrics;
pub(crate) use governance::GovernanceMetrics;
pub(crate) use health::HealthMetrics;
pub(crate) use loops::LoopMetrics;
pub(crate) use outbox::OutboxMetrics;
pub(crate) use owed::OwedMetrics;
pub(crate) use pools::PoolMetrics;
pub use pools::{PoolLevel, PoolLevels};
pub(crate) use registry::{RegistryMetrics, SnapshotRound};
pub(crate) use runs::{EndedRuns, RunMetrics, Swept};
pub(crate) use schedules::ScheduleMetrics;
pub(crate) use sharing::SharingMetrics;
pub(crate) use topics::{ResultPhase, TopicMetrics};

/// A gauge of a span or a moment in seconds, or of a part of something.
type Seconds = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PriorityGauge(Priority);

impl EncodeLabelValue for PriorityGauge {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPriority {
    priority: PriorityGauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ReasonLabel(Reason);

impl EncodeLabelValue for ReasonLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: ReasonLabel,
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
    live: Gauge,
    queue_depth: Gauge,
    approvals: Gauge,
    retry_depth: Gauge,
    dlq_depth: Gauge,
    inflight: Gauge,
}

/// Gauges, by priority in the order of `Priority::ALL`.
#[derive(Default)]
pub(crate) struct Levels {
    /// Not ended.
    pub(crate) live: [u64; 4],
    pub(crate) dead: [u64; 4],
    pub(crate) held: [u64; 4],
}

/// Gauges of what only the lanes know, by priority.
#[derive(Default)]
pub(crate) struct LaneGauges {
    pub(crate) queued: [u64; 4],
    /// Waiting for an approval.
    pub(crate) approvals: [u64; 4],
    /// Waiting for a time, a verdict or other jobs.
    pub(crate) later: [u64; 4],
}

/// Shared by clones.
#[derive(Clone)]
pub struct Metrics {
    by_priority: Arc<[PriorityCounters; 4]>,
    reaped: Family<ByReason, Counter>,
    decisions: DecisionMetrics,
    ready_rows: Counter,
    unreadable_rows: Counter,
    refused_rows: Counter,
    described: Arc<[Described]>,
    pub access: AccessMetrics,
    pub(crate) admission: AdmissionMetrics,
    pub(crate) families: FamilyMetrics,
    pub(crate) governance: GovernanceMetrics,
    pub(crate) health: HealthMetrics,
    pub(crate) loops: LoopMetrics,
    pub(crate) outbox: OutboxMetrics,
    pub(crate) clocks: ClockMetrics,
    pub(crate) owed: OwedMetrics,
    pub(crate) pools: PoolMetrics,
    pub(crate) registry: RegistryMetrics,
    pub(crate) runs: RunMetrics,
    pub(crate) schedules: ScheduleMetrics,
    pub(crate) sharing: SharingMetrics,
    pub(crate) topics: TopicMetrics,
}

impl Metrics {
    /// Registers every family under `lockgate_`.
    pub fn new(registry: &mut Registry) -> Self {
        let mut registry = MetricFamilies::new(registry.sub_registry_with_prefix("lockgate"));
        let by_priority = Arc::new(priorities(&mut registry));
        let reaped = Family::<ByReason, Counter>::default();
        registry.register("reaped", "Attempts taken from workers that lost, never started or overran them", reaped.clone());
        // An increase sees nothing of a series that begins with its first count.
        for reason in [Reason::AgentLost, Reason::DispatchLost, Reason::ExecutionTimeout, Reason::DeadlineExceeded] {
            drop(reaped.get_or_create(&ByReason { reason: ReasonLabel(reason) }));
        }
        let decisions = DecisionMetrics::new(&mut registry);
        let ready_rows = Counter::default();
        registry.register("ready_rows_read", "Rows read from the Store to refill lanes", ready_rows.clone());
        let unreadable_rows = Counter::default();
        let help = "Rows of the Store that were passed by because they cannot be decoded; each counts whenever it is met";
        registry.register("store_unreadable_rows", help, unreadable_rows.clone());
        let refused_rows = Counter::default();
        let help = "Rows that the Store did not take, and that stayed as they were; each counts whenever it is tried";
        registry.register("store_refused_rows", help, refused_rows.clone());
        Self {
            by_priority,
            reaped,
            decisions: decisions.clone(),
            ready_rows,
            unreadable_rows,
            refused_rows,
            access: AccessMetrics::new(&mut registry),
            admission: AdmissionMetrics::new(&mut registry),
            families: FamilyMetrics::new(&mut registry),
            governance: GovernanceMetrics::new(&mut registry),
            health: HealthMetrics::new(&mut registry),
            loops: LoopMetrics::new(&mut registry, decisions),
            outbox: OutboxMetrics::new(&mut registry),
            clocks: ClockMetrics::new(&mut registry),
            owed: OwedMetrics::new(&mut registry),
            pools: PoolMetrics::new(&mut registry),
            registry: RegistryMetrics::new(&mut registry),
            runs: RunMetrics::new(&mut registry),
            schedules: ScheduleMetrics::new(&mut registry),
            sharing: SharingMetrics::new(&mut registry),
            topics: TopicMetrics::new(&mut registry),
            described: registry.into_described().into(),
        }
    }

    /// Every family there is, moved or not.
    pub fn described(&self) -> &[Described] {
        &self.described
    }

    fn of(&self, job: &Job) -> &PriorityCounters {
        &self.by_priority[job.request.priority() as usize]
    }

    /// A new job, or one of a run.
    pub(crate) fn entered(&self, job: &Job) {
        self.of(job).enqueued.inc();
        self.topics.received(&job.request.topic);
        self.runs.entered(job);
        if job.state().is_terminal() {
            self.ended(job);
        }
    }

    pub(crate) fn dispatched(&self, jobs: &[Arc<Job>]) {
        for job in jobs {
            self.of(job).dequeued.inc();
            let binding = job.life.attempt.binding.as_ref();
            let waited = binding.map(|binding| binding.dispatched_at.since(job.life.due_at));
            self.topics.dispatched(&job.request.topic, waited);
        }
    }

    /// The worker said that the attempt of this dispatched job began.
    pub(crate) fn started(&self, job: &Job, at: Timestamp) {
        self.of(job).enqueue_to_start.observe(at.since(job.life.due_at).as_secs_f64());
    }

    /// The worker said that an attempt of this job came to an end after so long.
    pub(crate) fn ran(&self, job: &Job, span: Duration) {
        self.topics.ran(&job.request.topic, span);
    }

    /// An attempt ended without a report of its worker: it was lost, overran its time or was cancelled.
    pub(crate) fn cut_short(&self, before: &Job, after: &Job, now: Timestamp) {
        let over = after.life.attempt.no != before.life.attempt.no || after.state().is_terminal();
        if let Some(started) = before.life.attempt.started_at.filter(|_| before.state().is_held() && over) {
            self.ran(before, now.since(started));
        }
    }

    pub(crate) fn judged(&self, requests: &[Arc<JobRequest>], judgements: &[Judgement]) {
        self.governance.judged(judgements);
        for (request, judgement) in requests.iter().zip(judgements) {
            match judgement {
                Judgement::Decided(verdict) if verdict.decision == Decision::Deny => self.topics.denied(&request.topic),
                Judgement::Decided(_) => {}
                Judgement::Unavailable(_) => self.topics.unavailable(&request.topic),
            }
        }
    }

    /// A committed step of a known job.
    pub(crate) fn moved(&self, before: &Job, after: &Job) {
        if is_checked(after) && !is_checked(before) {
            self.topics.checked(&after.request.topic);
        }
        let retried = after.life.counters.failures > before.life.counters.failures;
        match after.state() {
            // A scan or a late verdict that changes nothing is no second end.
            state if state.is_terminal() && state != before.state() => self.ended(after),
            JobState::Scheduled | JobState::Pending if retried => {
                self.of(after).retried.inc();
            }
            _ => {}
        }
    }

    fn ended(&self, job: &Job) {
        self.topics.completed(&job.request.topic, job.state());
        if job.state() == JobState::Succeeded {
            self.of(job).succeeded.inc();
        }
        // What policy denies is policy at work, and no failure: it must not burn the budget for errors.
        if job.state().is_dead() && job.state() != JobState::Denied {
            self.of(job).failed.inc();
        }
        if job.state().is_dead() {
            self.runs.sagas.ended_badly(job);
        }
    }

    pub(crate) fn reaped(&self, reason: Reason, count: usize) {
        if count > 0 {
            self.reaped.get_or_create(&ByReason { reason: ReasonLabel(reason) }).inc_by(count as u64);
            self.decisions.reaped(reason, count as u64);
        }
    }

    /// A run that nothing would have moved was ended.
    pub(crate) fn orphan_reaped(&self) {
        self.runs.orphaned();
        self.decisions.orphan_reaped();
    }

    pub(crate) fn read_ready(&self, rows: usize) {
        self.ready_rows.inc_by(rows as u64);
    }

    pub(crate) fn unreadable(&self, rows: u64) {
        self.unreadable_rows.inc_by(rows);
    }

    pub(crate) fn refused_row(&self) {
        self.refused_rows.inc();
    }

    pub(crate) fn set_levels(&self, levels: &Levels) {
        for (i, counters) in self.by_priority.iter().enumerate() {
            counters.live.set(level(levels.live[i]));
            counters.dlq_depth.set(level(levels.dead[i]));
            counters.inflight.set(level(levels.held[i]));
        }
    }

    pub(crate) fn set_waiting(&self, waiting: &LaneGauges) {
        for (i, counters) in self.by_priority.iter().enumerate() {
            counters.queue_depth.set(level(waiting.queued[i]));
            counters.approvals.set(level(waiting.approvals[i]));
            counters.retry_depth.set(level(waiting.later[i]));
        }
    }
}

/// Policy has looked at the result that the job has now.
fn is_checked(job: &Job) -> bool {
    job.life.output.as_ref().is_some_and(|check| check.stage == OutputStage::Checked)
}

/// An increase sees nothing of a series that begins with its first count.
fn begin_at_zero<L: Clone + Eq + std::hash::Hash>(family: &Family<L, Counter>, labels: impl IntoIterator<Item = L>) {
    for label in labels {
        drop(family.get_or_create(&label));
    }
}

fn priorities(registry: &mut MetricFamilies<'_>) -> [PriorityCounters; 4] {
    let mut counter = |name, help| {
        let family = Family::<ByPriority, Counter>::default();
        registry.register(name, help, family.clone());
        family
    };
    let enqueued = counter("tasks_enqueued", "Jobs accepted");
    let dequeued = counter("dequeued", "Attempts dispatched to workers");
    let succeeded = counter("succeeded", "Jobs that succeeded");
    let failed = counter("failed", "Jobs that ended badly; not those that policy denied");
    let retried = counter("retried", "Attempts that failed and were scheduled again");
    let mut gauge = |name, help| {
        let family = Family::<ByPriority, Gauge>::default();
        registry.register(name, help, family.clone());
        family
    };
    let live = gauge("jobs_live", "Jobs that have not ended");
    let queue_depth = gauge("queue_depth", "Jobs that wait for a worker");
    let approvals = gauge("approvals_depth", "Jobs that wait for a person; of more than a thousand, a thousand");
    let help = "Jobs that wait for a time, a verdict or other jobs. Of one process among several it counts attempts of the others too";
    let retry_depth = gauge("retry_depth", help);
    let dlq_depth = gauge("dlq_depth", "Dead letters");
    let inflight = gauge("inflight_leases", "Attempts that workers attached to this process hold");
    let start = Family::<ByPriority, Histogram>::new_with_constructor(latency);
    registry.register("enqueue_to_start_seconds", "From ready to the start that the worker reports", start.clone());
    Priority::ALL.map(|priority| {
        let label = ByPriority { priority: PriorityGauge(priority) };
        PriorityCounters {
            enqueued: enqueued.get_or_create_owned(&label),
            dequeued: dequeued.get_or_create_owned(&label),
            succeeded: succeeded.get_or_create_owned(&label),
            failed: failed.get_or_create_owned(&label),
            retried: retried.get_or_create_owned(&label),
            enqueue_to_start: start.get_or_create_owned(&label),
            live: live.get_or_create_owned(&label),
            queue_depth: queue_depth.get_or_create_owned(&label),
            approvals: approvals.get_or_create_owned(&label),
            retry_depth: retry_depth.get_or_create_owned(&label),
            dlq_depth: dlq_depth.get_or_create_owned(&label),
            inflight: inflight.get_or_create_owned(&label),
        }
    })
}

fn level(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn latency() -> Histogram {
    Histogram::new(exponential_buckets(0.000_5, 2.0, 20))
}
