//! Metric families of admission.

use lockgate_core::quotas::LimitedBy;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::catalogue::Catalogue;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct By {
    by: &'static str,
}

#[derive(Clone)]
pub(crate) struct AdmissionMetrics {
    refused: Family<By, Counter>,
}

impl AdmissionMetrics {
    pub(super) fn new(registry: &mut Catalogue<'_>) -> Self {
        let refused = Family::<By, Counter>::default();
        registry.register(
            "admission_refused",
            "Jobs and runs for which there was no room: by a rate, a tenant's quota, or a ceiling for all",
            refused.clone(),
        );
        Self { refused }
    }

    pub(crate) fn refused(&self, by: LimitedBy) {
        let by = match by {
            LimitedBy::Rate => "rate",
            LimitedBy::Quota => "quota",
            LimitedBy::Ceiling => "ceiling",
        };
        self.refused.get_or_create(&By { by }).inc();
    }
}
