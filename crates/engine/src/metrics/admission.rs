//! Metric families of admission.

use lockgate_core::quotas::LimitedBy;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::begin_at_zero;
use super::catalogue::MetricFamilies;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAdmission {
    by: &'static str,
}

impl ByAdmission {
    const fn of(by: LimitedBy) -> Self {
        let by = match by {
            LimitedBy::Rate => "rate",
            LimitedBy::Quota => "quota",
            LimitedBy::Ceiling => "ceiling",
        };
        Self { by }
    }
}

#[derive(Clone)]
pub(crate) struct AdmissionMetrics {
    refused: Family<ByAdmission, Counter>,
}

impl AdmissionMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let refused = Family::<ByAdmission, Counter>::default();
        registry.register(
            "admission_refused",
            "Jobs and runs for which there was no room: by a rate, a tenant's quota, or a ceiling for all",
            refused.clone(),
        );
        begin_at_zero(&refused, [LimitedBy::Rate, LimitedBy::Quota, LimitedBy::Ceiling].map(ByAdmission::of));
        Self { refused }
    }

    pub(crate) fn refused(&self, by: LimitedBy) {
        self.refused.get_or_create(&ByAdmission::of(by)).inc();
    }
}
