//! Metric families of runs.

use lockgate_core::dag::plan::RunTransition;
use lockgate_core::dag::{AnyRun, NodeState, RunHead, RunState};
use lockgate_core::job::Job;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::catalogue::MetricFamilies;
use super::sagas::SagaMetrics;
use super::{begin_at_zero, latency, level};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StateLabel(&'static str);

impl EncodeLabelValue for StateLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.to_ascii_lowercase().as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByRunState {
    state: StateLabel,
}

impl ByRunState {
    const fn new(state: &'static str) -> Self {
        Self { state: StateLabel(state) }
    }
}

/// What a step does to nodes, read off the rows it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndedRuns {
    /// In the order of `NodeState::ALL`.
    states: [u64; NodeState::ALL.len()],
    /// Those whose work can be undone.
    undoable: u64,
}

impl EndedRuns {
    pub(crate) fn of(live: &AnyRun, next: &RunTransition) -> Self {
        let mut ended = Self::default();
        for (key, row) in &next.nodes {
            let (now, late) = (next.settled.ended.contains(key), next.settled.done_late.contains(key));
            ended.states[row.state as usize] += u64::from(now);
            ended.undoable += u64::from((now || late) && live.can_undo(*key, row));
        }
        ended
    }
}

/// Live runs, counted page by page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    pub(crate) live: u64,
    pub(crate) undoing: u64,
    /// Those of them that wait for a person.
    pub(crate) stuck: u64,
}

impl std::ops::AddAssign for Swept {
    fn add_assign(&mut self, page: Self) {
        self.live += page.live;
        self.undoing += page.undoing;
        self.stuck += page.stuck;
    }
}

impl Swept {
    pub(crate) fn add(&mut self, state: RunState) {
        self.live += 1;
        self.undoing += u64::from(is_undoing(state));
        self.stuck += u64::from(state == RunState::CompensationStuck);
    }
}

const fn is_undoing(state: RunState) -> bool {
    matches!(state, RunState::Compensating | RunState::CompensationStuck)
}

#[derive(Clone)]
pub(crate) struct RunMetrics {
    started: Counter,
    steps: Counter,
    reached: Family<ByRunState, Counter>,
    orphaned: Counter,
    nodes: Family<ByRunState, Counter>,
    memoised: Counter,
    live: Gauge,
    seconds: Histogram,
    pub(super) sagas: SagaMetrics,
}

impl RunMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let started = Counter::default();
        registry.register("dag_runs_started", "Runs that began", started.clone());
        let steps = Counter::default();
        registry.register("dag_steps", "Steps of runs that were committed", steps.clone());
        let reached = Family::<ByRunState, Counter>::default();
        registry.register(
            "dag_runs_reached",
            "Runs that reached an end, began to be undone or got stuck doing so, by state",
            reached.clone(),
        );
        begin_at_zero(&reached, RunState::ALL.map(|state| ByRunState::new(state.as_str())));
        let orphaned = Counter::default();
        let help = "Runs that waited for nothing, that no sweep could move, and that were ended";
        registry.register("dag_runs_orphaned", help, orphaned.clone());
        let nodes = Family::<ByRunState, Counter>::default();
        registry.register(
            "dag_nodes_ended",
            "Nodes of runs that came to an end, by which; items of a list too",
            nodes.clone(),
        );
        let ends = NodeState::ALL.into_iter().filter(|state| state.is_over());
        begin_at_zero(&nodes, ends.map(|state| ByRunState::new(state.as_str())));
        let memoised = Counter::default();
        let help = "Jobs of runs that were not done because what came of the same work before stands for them";
        registry.register("dag_nodes_memoised", help, memoised.clone());
        let live = Gauge::default();
        registry.register(
            "dag_runs_live",
            "Runs that are not over, as the last sweep of this process counted them",
            live.clone(),
        );
        let seconds = latency();
        registry.register("dag_run_seconds", "From the start of a run to its end", seconds.clone());
        Self { started, steps, reached, orphaned, nodes, memoised, live, seconds, sagas: SagaMetrics::new(registry) }
    }

    /// A committed step from one state to another.
    pub(crate) fn stepped(&self, before: RunState, head: &RunHead, ended: &EndedRuns) {
        self.steps.inc();
        if head.version == 1 {
            self.started.inc();
        }
        let settled = head.state.is_over() || is_undoing(head.state);
        if settled && (before != head.state || head.version == 1) {
            self.reached.get_or_create(&ByRunState::new(head.state.as_str())).inc();
        }
        if is_undoing(head.state) && !is_undoing(before) {
            self.sagas.triggered();
        }
        if let Some(ended) = head.ended_at.filter(|_| head.state.is_over()) {
            self.seconds.observe(ended.since(head.began_at).as_secs_f64());
        }
        for (state, count) in NodeState::ALL.into_iter().zip(ended.states).filter(|(_, count)| *count > 0) {
            self.nodes.get_or_create(&ByRunState::new(state.as_str())).inc_by(count);
        }
        self.sagas.recorded(ended.undoable);
    }

    /// A run was ended because nothing would ever move it again.
    pub(crate) fn orphaned(&self) {
        self.orphaned.inc();
    }

    /// A job of a run began.
    pub(super) fn entered(&self, job: &Job) {
        if job.memo_of().is_some() {
            self.memoised.inc();
        }
        self.sagas.entered(job);
    }

    /// A run whose work was undone: how long that took, from the end of its last node.
    pub(crate) fn undone(&self, live: &AnyRun) {
        let run = live.run();
        let worked = run.nodes.values().filter_map(|node| node.ended_at).max();
        if let (RunState::Compensated, Some(ended), Some(worked)) = (run.head.state, run.head.ended_at, worked) {
            self.sagas.undone(ended.since(worked));
        }
    }

    /// A sweep came to its end.
    pub(crate) fn swept(&self, swept: Swept) {
        self.live.set(level(swept.live));
        self.sagas.active(swept.undoing);
        self.sagas.stuck(swept.stuck);
    }
}
