//! Metric families of the gate.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::catalogue::MetricFamilies;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByRefusal {
    code: &'static str,
}

#[derive(Clone)]
pub struct AccessMetrics {
    refused: Family<ByRefusal, Counter>,
}

impl AccessMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let refused = Family::<ByRefusal, Counter>::default();
        registry.register("access_refused", "Requests that were not let in, by the code they were told", refused.clone());
        // Counted from nothing, so that the first refusal is seen as a rise.
        for code in ["unauthenticated", "permission_denied"] {
            drop(refused.get_or_create(&ByRefusal { code }));
        }
        Self { refused }
    }

    pub fn refused(&self, code: &'static str) {
        self.refused.get_or_create(&ByRefusal { code }).inc();
    }
}
