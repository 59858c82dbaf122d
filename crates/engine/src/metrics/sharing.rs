//! How turns and limits are shared out.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::time::Timestamp;
use lockgate_ports::{Condition, TenantShare};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::Seconds;
use super::catalogue::MetricFamilies;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct ByTenant {
    tenant: String,
}

/// Shared by clones.
#[derive(Clone)]
pub(crate) struct SharingMetrics {
    leaked: Counter,
    uncounted: Counter,
    rebuilt: Counter,
    reachable: Gauge,
    bus_reachable: Gauge,
    share_error: Family<ByTenant, Seconds>,
    oldest_wait: Family<ByTenant, Seconds>,
    /// Tenants that have gauges now. Those of others are taken away, so that labels stay bounded.
    shown: std::sync::Arc<Mutex<BTreeSet<ByTenant>>>,
}

impl SharingMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let leaked = Counter::default();
        registry.register("limits_leaked", "Attempts that a limit still counted after their end", leaked.clone());
        let uncounted = Counter::default();
        let help = "Attempts that ran without counting for their limits until they were found";
        registry.register("limits_uncounted", help, uncounted.clone());
        let rebuilt = Counter::default();
        registry.register("lanes_rebuilt", "Times that shared lanes were filled from the Store again", rebuilt.clone());
        let reachable = Gauge::default();
        reachable.set(1);
        registry.register(
            "lanes_reachable",
            "Whether the lanes can be asked: 0 while shared ones are away",
            reachable.clone(),
        );
        let bus_reachable = Gauge::default();
        bus_reachable.set(1);
        let help = "Whether the bus reaches other processes: 0 while a shared one is away";
        registry.register("bus_reachable", help, bus_reachable.clone());
        let share_error = Family::<ByTenant, Seconds>::default();
        let help = "Claims of a tenant beyond its fair share, as a part of that share; the most active tenants";
        registry.register("tenant_share_error_ratio", help, share_error.clone());
        let oldest_wait = Family::<ByTenant, Seconds>::default();
        registry.register("tenant_oldest_wait_seconds", "Wait of a tenant's oldest ready job", oldest_wait.clone());
        let shown = std::sync::Arc::default();
        Self { leaked, uncounted, rebuilt, reachable, bus_reachable, share_error, oldest_wait, shown }
    }

    pub(crate) fn leaked(&self, count: usize) {
        self.leaked.inc_by(count as u64);
    }

    pub(crate) fn uncounted(&self, count: usize) {
        self.uncounted.inc_by(count as u64);
    }

    pub(crate) fn rebuilt(&self) {
        self.rebuilt.inc();
    }

    pub(crate) fn lanes_are(&self, condition: &Condition) {
        self.reachable.set(i64::from(!matches!(condition, Condition::Away(_))));
    }

    /// Why the bus does not reach others, if it does not.
    pub(crate) fn bus_is(&self, away: Option<&str>) {
        self.bus_reachable.set(i64::from(away.is_none()));
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
    pub(crate) fn set(&self, shares: &[TenantShare], now: Timestamp) {
        let label = |share: &TenantShare| ByTenant { tenant: share.tenant.to_string() };
        let mut shown = self.shown.lock();
        let now_shown: BTreeSet<ByTenant> = shares.iter().map(label).collect();
        for gone in shown.difference(&now_shown) {
            self.share_error.remove(gone);
            self.oldest_wait.remove(gone);
        }
        for share in shares {
            let entitled = share.entitled.max(1.0);
            self.share_error.get_or_create(&label(share)).set((share.claims as f64 - share.entitled) / entitled);
            let wait = share.oldest.map_or(Duration::ZERO, |oldest| now.since(oldest));
            self.oldest_wait.get_or_create(&label(share)).set(wait.as_secs_f64());
        }
        *shown = now_shown;
    }
}
