//! Metric families of runs.

use lockgate_core::dag::{RunHead, RunState};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::latency;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State(RunState);

impl EncodeLabelValue for State {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.as_str().to_ascii_lowercase().as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByState {
    state: State,
}

#[derive(Clone)]
pub(crate) struct RunMetrics {
    started: Counter,
    steps: Counter,
    reached: Family<ByState, Counter>,
    seconds: Histogram,
}

impl RunMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let started = Counter::default();
        registry.register("dag_runs_started", "Runs that began", started.clone());
        let steps = Counter::default();
        registry.register("dag_steps", "Steps of runs that were committed", steps.clone());
        let reached = Family::<ByState, Counter>::default();
        registry.register(
            "dag_runs_reached",
            "Runs that reached an end, began to be undone or got stuck doing so, by state",
            reached.clone(),
        );
        let seconds = latency();
        registry.register("dag_run_seconds", "From the start of a run to its end", seconds.clone());
        Self { started, steps, reached, seconds }
    }

    /// A committed step from one state to another.
    pub(crate) fn stepped(&self, before: RunState, head: &RunHead) {
        self.steps.inc();
        if head.version == 1 {
            self.started.inc();
        }
        let settled = head.state.is_over() || matches!(head.state, RunState::Compensating | RunState::CompensationStuck);
        if settled && (before != head.state || head.version == 1) {
            self.reached.get_or_create(&ByState { state: State(head.state) }).inc();
        }
        if let Some(ended) = head.ended_at.filter(|_| head.state.is_over()) {
            self.seconds.observe(ended.since(head.began_at).as_secs_f64());
        }
    }
}
