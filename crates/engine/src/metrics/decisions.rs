//! Decisions of the scheduler under the labels of the requirement documents: what was taken away, and what could not be looked at.

use lockgate_core::job::Reason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::begin_at_zero;
use super::catalogue::MetricFamilies;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BySchedulerDecision {
    decision: &'static str,
}

const AGENT_LOST: &str = "agent_lost";
const DISPATCH_LOST: &str = "dispatch_lost";
const ORPHAN_REAPED: &str = "orphan_reaped";
const DISPATCH_FAILED: &str = "dispatch_failed";
const AGENT_LOST_LIST_ERROR: &str = "agent_lost_list_error";
const DISPATCH_LOST_LIST_ERROR: &str = "dispatch_lost_list_error";
const ORPHAN_LIST_ERROR: &str = "orphan_list_error";

/// Shared by clones.
#[derive(Clone)]
pub(crate) struct DecisionMetrics(Family<BySchedulerDecision, Counter>);

impl DecisionMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let made = Family::<BySchedulerDecision, Counter>::default();
        let help = "What the scheduler took away or could not do, under the names that other schedulers use";
        registry.register("scheduler_decisions", help, made.clone());
        let all = [
            AGENT_LOST,
            DISPATCH_LOST,
            ORPHAN_REAPED,
            DISPATCH_FAILED,
            AGENT_LOST_LIST_ERROR,
            DISPATCH_LOST_LIST_ERROR,
            ORPHAN_LIST_ERROR,
        ];
        begin_at_zero(&made, all.map(|decision| BySchedulerDecision { decision }));
        Self(made)
    }

    pub(super) fn reaped(&self, reason: Reason, count: u64) {
        let decision = match reason {
            Reason::AgentLost => AGENT_LOST,
            Reason::DispatchLost => DISPATCH_LOST,
            _ => return,
        };
        self.0.get_or_create(&BySchedulerDecision { decision }).inc_by(count);
    }

    pub(crate) fn orphan_reaped(&self) {
        self.made(ORPHAN_REAPED);
    }

    /// A loop got no full answer from the Store. One round of `reap` looks for silent workers and for attempts that never began.
    pub(super) fn unanswered(&self, loop_name: &str) {
        let decisions: &[&'static str] = match loop_name {
            "reap" => &[AGENT_LOST_LIST_ERROR, DISPATCH_LOST_LIST_ERROR],
            "edges" => &[AGENT_LOST_LIST_ERROR],
            "runs" => &[ORPHAN_LIST_ERROR],
            "dispatch" | "sending" => &[DISPATCH_FAILED],
            _ => &[],
        };
        decisions.iter().for_each(|decision| self.made(decision));
    }

    fn made(&self, decision: &'static str) {
        self.0.get_or_create(&BySchedulerDecision { decision }).inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn each_decision_has_the_label_of_the_requirement_documents() {
        let mut registry = Registry::default();
        let metrics = DecisionMetrics::new(&mut MetricFamilies::new(&mut registry));
        metrics.reaped(Reason::AgentLost, 2);
        metrics.reaped(Reason::DispatchLost, 1);
        metrics.reaped(Reason::ExecutionTimeout, 1);
        metrics.orphan_reaped();
        ["reap", "edges", "runs", "dispatch", "sending", "seals"].iter().for_each(|name| metrics.unanswered(name));
        let mut text = String::new();
        encode(&mut text, &registry).expect("encoded");
        for (decision, count) in [
            ("agent_lost", 2),
            ("dispatch_lost", 1),
            ("orphan_reaped", 1),
            ("agent_lost_list_error", 2),
            ("dispatch_lost_list_error", 1),
            ("orphan_list_error", 1),
            ("dispatch_failed", 2),
        ] {
            let line = format!("scheduler_decisions_total{{decision=\"{decision}\"}} {count}\n");
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
    }
}
