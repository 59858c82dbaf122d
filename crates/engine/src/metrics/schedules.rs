//! Metric families of schedules.

use std::time::Duration;

use lockgate_core::schedule::SlotOutcome;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::begin_at_zero;
use super::catalogue::MetricFamilies;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Came(SlotOutcome);

impl EncodeLabelValue for Came {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.as_str().to_ascii_lowercase().as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BySlotOutcome {
    outcome: Came,
}

#[derive(Clone)]
pub(crate) struct ScheduleMetrics {
    slots: Family<BySlotOutcome, Counter>,
    lag: Histogram,
}

impl ScheduleMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let slots = Family::<BySlotOutcome, Counter>::default();
        registry.register("schedule_slots", "What times of schedules came to, every step of theirs", slots.clone());
        begin_at_zero(&slots, SlotOutcome::ALL.map(|outcome| BySlotOutcome { outcome: Came(outcome) }));
        // From milliseconds, when all is well, to a day, when it was not.
        let lag = Histogram::new(exponential_buckets(0.001, 2.0, 27));
        registry.register("schedule_lag_seconds", "From when a time was due to when it was started", lag.clone());
        Self { slots, lag }
    }

    /// A slot was written with this outcome.
    pub(crate) fn decided(&self, outcome: SlotOutcome) {
        self.slots.get_or_create(&BySlotOutcome { outcome: Came(outcome) }).inc();
    }

    pub(crate) fn started(&self, lag: Duration) {
        self.lag.observe(lag.as_secs_f64());
    }
}
