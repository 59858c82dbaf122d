//! Metric families of undoing.

use std::time::Duration;

use lockgate_core::job::{Job, Reason};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::catalogue::MetricFamilies;
use super::{latency, level};

#[derive(Clone)]
pub(crate) struct SagaMetrics {
    recorded: Counter,
    rollbacks: Counter,
    dispatched: Counter,
    failed: Counter,
    unreadable: Counter,
    seconds: Histogram,
    active: Gauge,
    stuck: Gauge,
}

impl SagaMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let mut counter = |name, help| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let recorded = counter("saga_recorded", "Nodes and plain jobs whose work was done and could be undone");
        let rollbacks = counter("saga_rollback_triggered", "Runs and workflows that began to undo their work");
        let dispatched = counter("saga_compensation_dispatched", "Jobs that undo what a node or a plain job did");
        let failed = counter("saga_compensation_failed", "Jobs that were to undo something and ended badly");
        let unreadable =
            counter("saga_unmarshal_errors", "Entries of sagas that could not be read, so that people must undo");
        let seconds = latency();
        registry.register(
            "saga_rollback_seconds",
            "From the end of a run's own work to the end of undoing it",
            seconds.clone(),
        );
        let active = Gauge::default();
        let help = "Runs that undo their work or are stuck doing so, as the last sweep of this process counted them";
        registry.register("saga_active", help, active.clone());
        let stuck = Gauge::default();
        let help = "Runs that are stuck undoing their work, as the last sweep of this process counted them";
        registry.register("saga_stuck", help, stuck.clone());
        Self { recorded, rollbacks, dispatched, failed, unreadable, seconds, active, stuck }
    }

    pub(super) fn recorded(&self, nodes: u64) {
        self.recorded.inc_by(nodes);
    }

    pub(super) fn triggered(&self) {
        self.rollbacks.inc();
    }

    pub(super) fn undone(&self, span: Duration) {
        self.seconds.observe(span.as_secs_f64());
    }

    pub(super) fn entered(&self, job: &Job) {
        if is_unreadable(job) {
            self.unreadable.inc();
        } else if undoes(job) {
            self.dispatched.inc();
        }
    }

    pub(super) fn ended_badly(&self, job: &Job) {
        if undoes(job) {
            self.failed.inc();
        }
    }

    pub(super) fn active(&self, runs: u64) {
        self.active.set(level(runs));
    }

    pub(super) fn stuck(&self, runs: u64) {
        self.stuck.set(level(runs));
    }
}

fn undoes(job: &Job) -> bool {
    job.request.run.as_ref().is_some_and(|part| part.undo)
}

fn is_unreadable(job: &Job) -> bool {
    job.life.last_error.as_ref().is_some_and(|failure| failure.reason == Reason::SagaUnmarshalFailed)
}
