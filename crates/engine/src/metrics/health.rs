//! Metric families of what a process finds wrong with itself and with its Store.

use lockgate_ports::Pinned;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::Seconds;
use super::catalogue::MetricFamilies;
use crate::health::{HealthProblem, ProblemKind};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTrouble {
    code: &'static str,
}

#[derive(Clone)]
pub(crate) struct HealthMetrics {
    found: Family<ByTrouble, Gauge>,
    held_for: Seconds,
    dead_rows: Gauge,
}

impl HealthMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let found = Family::<ByTrouble, Gauge>::default();
        let help = "What this process finds wrong with itself: 1 while there is a finding with the code, else 0";
        registry.register("health", help, found.clone());
        let (held_for, dead_rows) = (Seconds::default(), Gauge::default());
        let help = "For how long the oldest open transaction has held PostgreSQL's xmin horizon; 0 if none does";
        registry.register("store_horizon_held_seconds", help, held_for.clone());
        let help = "Dead rows of the tables of jobs while a transaction holds the xmin horizon: those since its begin cannot be removed";
        registry.register("store_horizon_dead_rows", help, dead_rows.clone());
        let metrics = Self { found, held_for, dead_rows };
        // Nothing found is an answer too: a series that is not there would say nothing.
        metrics.found(&[]);
        metrics
    }

    pub(crate) fn pinned(&self, pinned: Option<&Pinned>) {
        let held_for = pinned.and_then(|pinned| pinned.held_for).unwrap_or_default();
        self.held_for.set(held_for.as_secs_f64());
        self.dead_rows.set(i64::try_from(pinned.map_or(0, |pinned| pinned.dead_rows)).unwrap_or(i64::MAX));
    }

    pub(crate) fn found(&self, findings: &[HealthProblem]) {
        for trouble in ProblemKind::ALL {
            let found = findings.iter().any(|finding| finding.trouble == trouble);
            self.found.get_or_create(&ByTrouble { code: trouble.code() }).set(i64::from(found));
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn every_code_is_there_from_the_start_and_says_what_is_found() {
        let mut registry = Registry::default();
        let metrics = HealthMetrics::new(&mut MetricFamilies::new(&mut registry));
        let shown = |ending: &str| {
            let mut text = String::new();
            encode(&mut text, &registry).expect("encoded");
            let series = |line: &&str| line.starts_with("health{") && line.ends_with(ending);
            text.lines().filter(series).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!((shown(" 0").len(), shown(" 1").len()), (ProblemKind::ALL.len(), 0));
        metrics.found(&[HealthProblem { trouble: ProblemKind::LoopStuck, detail: "sending for 90 s".to_owned() }]);
        assert_eq!(shown(" 1"), [r#"health{code="loop_stuck"} 1"#]);
        metrics.found(&[]);
        assert_eq!(shown(" 1"), [""; 0]);
    }
}
