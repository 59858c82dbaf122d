//! Which families there are: for the reference, and for the test that wants each of them to move.

use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Metric, Registry};

/// A metric family as its readers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// As it is scraped: a counter ends in `_total`.
    pub name: String,
    pub kind: &'static str,
    pub help: &'static str,
}

/// Registers families, and remembers which. A family without series is not scraped, so the registry alone cannot tell that
/// one never moved.
pub(super) struct MetricFamilies<'r> {
    registry: &'r mut Registry,
    described: Vec<Described>,
}

impl<'r> MetricFamilies<'r> {
    /// Over a registry that adds `lockgate_` to every name.
    pub(super) fn new(registry: &'r mut Registry) -> Self {
        Self { registry, described: Vec::new() }
    }

    pub(super) fn register(&mut self, name: &'static str, help: &'static str, metric: impl Metric) {
        let (kind, suffix) = match EncodeMetric::metric_type(&metric) {
            MetricType::Counter => ("counter", "_total"),
            MetricType::Histogram => ("histogram", ""),
            MetricType::Gauge | MetricType::Info | MetricType::Unknown => ("gauge", ""),
        };
        self.described.push(Described { name: format!("lockgate_{name}{suffix}"), kind, help });
        self.registry.register(name, help, metric);
    }

    pub(super) fn into_described(self) -> Vec<Described> {
        self.described
    }
}
