//! Metric families of governance.

use std::sync::Arc;

use lockgate_core::breaker::BreakerState;
use lockgate_core::output::OutputDecision;
use lockgate_core::verdict::{Decision, Judgement};
use lockgate_ports::{BreakerMove, BreakerView, Sharing};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::begin_at_zero;
use super::catalogue::MetricFamilies;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByDecision {
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByBreaker {
    breaker: &'static str,
    /// Whose calls it counts.
    sharing: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByMove {
    breaker: &'static str,
    /// The new one.
    state: &'static str,
}

#[derive(Clone)]
pub(crate) struct GovernanceMetrics {
    verdicts: Arc<[Counter; 5]>,
    verdicts_missing: Counter,
    outputs: Arc<[Counter; 4]>,
    bypass_refused: Counter,
    breakers: Family<ByBreaker, Gauge>,
    breaker_moves: Family<ByMove, Counter>,
}

impl GovernanceMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let verdicts = Family::<ByDecision, Counter>::default();
        registry.register("policy_verdicts", "Verdicts on attempts", verdicts.clone());
        let verdicts_missing = Counter::default();
        registry.register("policy_unavailable", "Verdicts that could not be had", verdicts_missing.clone());
        let outputs = Family::<ByDecision, Counter>::default();
        registry.register("output_verdicts", "Verdicts on the content of results", outputs.clone());
        let bypass_refused = Counter::default();
        registry.register("bypass_refused", "Attempts let through that a later verdict refused", bypass_refused.clone());
        let breakers = Family::<ByBreaker, Gauge>::default();
        registry.register(
            "breaker_state",
            "Circuit breaker: 0 closed, 1 half-open, 2 open; by whose calls it counts",
            breakers.clone(),
        );
        let breaker_moves = Family::<ByMove, Counter>::default();
        registry.register(
            "breaker_transitions",
            "Changes of state of a circuit breaker, by the new one",
            breaker_moves.clone(),
        );
        let verdict = |(decision, _)| verdicts.get_or_create_owned(&ByDecision { decision });
        let output = |decision: OutputDecision| outputs.get_or_create_owned(&ByDecision { decision: decision.as_str() });
        Self {
            verdicts: Arc::new(Decision::words().map(verdict)),
            verdicts_missing,
            outputs: Arc::new(OutputDecision::ALL.map(output)),
            bypass_refused,
            breakers,
            breaker_moves,
        }
    }

    pub(super) fn judged(&self, judgements: &[Judgement]) {
        for judgement in judgements {
            match judgement {
                Judgement::Decided(verdict) => self.decided(verdict.decision),
                Judgement::Unavailable(_) => drop(self.verdicts_missing.inc()),
            }
        }
    }

    fn decided(&self, decision: Decision) {
        // No kernel of this version gives another.
        if let Some(place) = Decision::ALL.iter().position(|known| *known == decision) {
            self.verdicts[place].inc();
        }
    }

    pub(crate) fn bypasses_refused(&self, count: usize) {
        self.bypass_refused.inc_by(count as u64);
    }

    pub(crate) fn output_judged(&self, decision: OutputDecision) {
        self.outputs[decision as usize].inc();
    }

    pub(crate) fn breaker_moved(&self, moved: &BreakerMove) {
        self.breaker_moves.get_or_create(&ByMove { breaker: moved.breaker, state: moved.to.as_str() }).inc();
    }

    pub(crate) fn breakers(&self, views: &[BreakerView]) {
        for view in views {
            let level = match view.state {
                BreakerState::Closed => 0,
                BreakerState::HalfOpen => 1,
                BreakerState::Open => 2,
            };
            let series = |sharing: Sharing| ByBreaker { breaker: view.name, sharing: sharing.as_str() };
            // A breaker has one series at a time: an old one would tell its last state for ever.
            for other in Sharing::ALL.into_iter().filter(|sharing| *sharing != view.sharing) {
                self.breakers.remove(&series(other));
            }
            self.breakers.get_or_create(&series(view.sharing)).set(level);
            let moves = BreakerState::ALL.map(|state| ByMove { breaker: view.name, state: state.as_str() });
            begin_at_zero(&self.breaker_moves, moves);
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_breaker_shows_its_state_and_whose_calls_it_counts_once() {
        let mut registry = Registry::default();
        let metrics = GovernanceMetrics::new(&mut MetricFamilies::new(&mut registry));
        let view =
            |state, sharing| BreakerView { name: "input", state, failures: 3, open_until: None, last_error: None, sharing };
        let shown = || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("encoded");
            text.lines().filter(|line| line.starts_with("breaker_state{")).map(str::to_owned).collect::<Vec<_>>()
        };
        metrics.breakers(&[view(BreakerState::Closed, Sharing::Shared)]);
        assert_eq!(shown(), [r#"breaker_state{breaker="input",sharing="shared"} 0"#]);
        metrics.breakers(&[view(BreakerState::Open, Sharing::LocalFallback)]);
        assert_eq!(shown(), [r#"breaker_state{breaker="input",sharing="local_fallback"} 2"#]);
    }
}
