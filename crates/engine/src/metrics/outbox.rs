//! Metric families of what leaves the system.

use lockgate_ports::{Delivered, OutboxBacklog};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use super::catalogue::MetricFamilies;
use super::{Seconds, count};

#[derive(Clone)]
pub(crate) struct OutboxMetrics {
    relayed: Counter,
    failed: Counter,
    waiting: Gauge,
    oldest: Seconds,
}

impl OutboxMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let relayed = Counter::default();
        registry.register("outbox_relayed", "Messages for outside that their sink acknowledged", relayed.clone());
        let failed = Counter::default();
        let help = "Times that a message for outside could not be delivered; it waits in the Store and is tried again";
        registry.register("outbox_failed", help, failed.clone());
        let waiting = Gauge::default();
        let help = "Messages for outside that no sink has acknowledged, counted up to ten thousand";
        registry.register("outbox_waiting", help, waiting.clone());
        let oldest = Seconds::default();
        registry.register("outbox_oldest_seconds", "For how long the oldest of them has been waiting", oldest.clone());
        Self { relayed, failed, waiting, oldest }
    }

    pub(crate) fn delivered(&self, delivered: &Delivered) {
        self.relayed.inc_by(delivered.done.len() as u64);
        self.failed.inc_by(delivered.failed.len() as u64);
    }

    pub(crate) fn waits(&self, backlog: OutboxBacklog) {
        self.waiting.set(count(usize::try_from(backlog.rows).unwrap_or(usize::MAX)));
        self.oldest.set(backlog.oldest.as_secs_f64());
    }
}
