//! Metric families of the snapshot that tells starting processes how workers fare.

use std::time::Duration;

use lockgate_core::time::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::catalogue::MetricFamilies;
use super::{Seconds, begin_at_zero, count};

const OUTCOMES: [&str; 3] = ["written", "skipped", "failed"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByRound {
    outcome: &'static str,
}

/// What became of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotRound {
    Written {
        workers: usize,
    },
    /// Another process writes it.
    Skipped,
    Failed,
}

#[derive(Clone)]
pub(crate) struct RegistryMetrics {
    rounds: Family<ByRound, Counter>,
    written: Seconds,
    workers: Gauge,
    warm: Gauge,
    warm_age: Seconds,
}

impl RegistryMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let rounds = Family::<ByRound, Counter>::default();
        let help = "Rounds of the snapshot of workers: written, skipped because another process writes it, or failed";
        registry.register("workers_snapshot_rounds", help, rounds.clone());
        begin_at_zero(&rounds, OUTCOMES.map(|outcome| ByRound { outcome }));
        let written = Seconds::default();
        let help = "When this process last wrote the snapshot of workers, in seconds since 1970";
        registry.register("workers_snapshot_timestamp_seconds", help, written.clone());
        let workers = Gauge::default();
        registry.register("workers_snapshot_size", "Workers in the snapshot that this process wrote last", workers.clone());
        let warm = Gauge::default();
        let help = "Workers of whom this process knew from the snapshot how they fare when it started";
        registry.register("workers_warm", help, warm.clone());
        let warm_age = Seconds::default();
        registry.register("workers_warm_age_seconds", "How old that snapshot was", warm_age.clone());
        Self { rounds, written, workers, warm, warm_age }
    }

    pub(crate) fn came_round(&self, round: SnapshotRound, now: Timestamp) {
        let outcome = match round {
            SnapshotRound::Written { workers } => {
                self.workers.set(count(workers));
                #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age are exact in a double")]
                self.written.set(now.as_millis() as f64 / 1e3);
                OUTCOMES[0]
            }
            SnapshotRound::Skipped => OUTCOMES[1],
            SnapshotRound::Failed => OUTCOMES[2],
        };
        self.rounds.get_or_create(&ByRound { outcome }).inc();
    }

    pub(crate) fn warmed(&self, workers: usize, age: Duration) {
        self.warm.set(count(workers));
        self.warm_age.set(age.as_secs_f64());
    }
}
