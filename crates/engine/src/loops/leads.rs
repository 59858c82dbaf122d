//! Loops that one process runs for all. Two leaders are harmless, for every statement repeats its evidence: leading only
//! saves work.

use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::{Clock, Leases, StoreError};

use crate::Settings;
use crate::config::ActiveConfig;
use crate::health::leading;
use crate::metrics::LoopMetrics;

/// A loop with a leader. The names are rows in the Store's leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Closes edges of processes that are gone.
    Closer,
    Deadlines,
    Due,
    /// Looks over parents that wait, and those that left children behind.
    Families,
    Ledger,
    Limits,
    Outbox,
    Pending,
    Placing,
    Rebuild,
    Reoffer,
    Retention,
    Runs,
    Scans,
    Schedules,
    Seals,
    /// Brings back what a clock that was ahead had stamped.
    Stamps,
}

impl Lead {
    pub(crate) const ALL: [Self; 17] = [
        Self::Closer,
        Self::Deadlines,
        Self::Due,
        Self::Families,
        Self::Ledger,
        Self::Limits,
        Self::Outbox,
        Self::Pending,
        Self::Placing,
        Self::Rebuild,
        Self::Reoffer,
        Self::Retention,
        Self::Runs,
        Self::Scans,
        Self::Schedules,
        Self::Seals,
        Self::Stamps,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Closer => "lockgate:edge:closer",
            Self::Deadlines => "lockgate:reconciler:default",
            Self::Due => "lockgate:retry:pump",
            Self::Families => "lockgate:families",
            Self::Ledger => "lockgate:bypass:ledger",
            Self::Limits => "lockgate:limits",
            Self::Outbox => "lockgate:outbox:relay",
            Self::Pending => "lockgate:replayer:pending",
            Self::Placing => "lockgate:placing",
            Self::Rebuild => "lanes:rebuild",
            Self::Reoffer => "lockgate:replayer:lanes",
            Self::Retention => "lockgate:retention",
            Self::Runs => "lockgate:workflow-engine:reconciler:default",
            Self::Scans => "lockgate:output:scans",
            Self::Schedules => "lockgate:cron",
            Self::Seals => "lockgate:audit:sealer",
            Self::Stamps => "lockgate:clock:stamps",
        }
    }

    /// Whether its leader has something to say to the lanes.
    const fn is_of_lanes(self) -> bool {
        matches!(self, Self::Due | Self::Limits | Self::Pending | Self::Placing | Self::Rebuild | Self::Reoffer)
    }

    /// The role that leads it, and how often a leader comes round. None for what is led only while there is something to
    /// do, and for what every process looks after: a vacant lease means nothing there.
    pub(crate) const fn cadence(self, settings: &Settings) -> Option<(&'static str, Duration)> {
        match self {
            Self::Closer => Some(("scheduler", settings.edge_renew)),
            Self::Deadlines | Self::Ledger | Self::Pending => Some(("scheduler", settings.expire_every)),
            Self::Due => Some(("scheduler", settings.due_every)),
            Self::Families => Some(("scheduler", settings.families_every)),
            Self::Limits => Some(("scheduler", settings.limits_every)),
            Self::Reoffer => Some(("scheduler", settings.reoffer_every)),
            Self::Retention => Some(("scheduler", settings.prune_every)),
            Self::Seals => Some(("scheduler", settings.seal_every)),
            Self::Runs => Some(("orchestrator", settings.runs_every)),
            Self::Schedules => Some(("orchestrator", settings.schedules_every)),
            Self::Outbox | Self::Placing | Self::Rebuild | Self::Scans | Self::Stamps => None,
        }
    }
}

/// Says which leader-only loops this process runs, by the leases in the Store.
pub(crate) struct Leadership {
    leases: Arc<dyn Leases>,
    clock: Arc<dyn Clock>,
    config: Arc<ActiveConfig>,
    metrics: LoopMetrics,
    /// Who this process is where it leads, whatever becomes of its edge.
    holder: Arc<str>,
    /// No other process uses the Store, so this one leads everything.
    exclusive: bool,
}

impl Leadership {
    pub(crate) fn new(
        leases: Arc<dyn Leases>,
        clock: Arc<dyn Clock>,
        config: Arc<ActiveConfig>,
        metrics: LoopMetrics,
        holder: Arc<str>,
        exclusive: bool,
    ) -> Self {
        Self { leases, clock, config, metrics, holder, exclusive }
    }

    /// Whether this process does the next round of a loop that comes round `every` so often. The cadence is the poll: the
    /// lease outlives one round and no more.
    pub(crate) async fn leads(&self, lead: Lead, every: Duration) -> Result<bool, StoreError> {
        let epoch = if self.exclusive {
            Some(0)
        } else if lead.is_of_lanes() && self.config.is_unreadable() {
            // Lanes that are shared follow the pools in force, and take nothing from a process that speaks by others.
            None
        } else {
            self.leases.acquire(lead.name(), &self.holder, every * 2).await?
        };
        leading(lead.name(), epoch);
        self.metrics.came_round(lead.name(), epoch.is_some(), self.clock.now());
        Ok(epoch.is_some())
    }

    /// This process came round and leaves the lead to others: its lease runs out. Without a word it would look stuck.
    pub(crate) fn stand_aside(&self, lead: Lead) {
        leading(lead.name(), None);
        self.metrics.came_round(lead.name(), false, self.clock.now());
    }

    /// A graceful stop gives leadership away at once: that of each loop when it ends, for others may take longer.
    pub(crate) async fn hand_over(&self, led: impl IntoIterator<Item = &'static str>) {
        if self.exclusive {
            return;
        }
        for lease in led {
            if let Err(error) = self.leases.release(lease, &self.holder).await {
                tracing::warn!(%error, lease, "leader lease could not be released; it expires by itself");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lockgate_core::time::Timestamp;
    use lockgate_model::{ManualClock, MemoryStore};
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::Metrics;

    const EVERY: Duration = Duration::from_secs(1);

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::at(Timestamp::from_millis(1_000_000)))
    }

    fn process(store: &Arc<MemoryStore>, holder: &str, exclusive: bool) -> Leadership {
        let metrics = Metrics::new(&mut Registry::default()).loops;
        let config = Arc::new(ActiveConfig::default());
        Leadership::new(store.clone(), clock(), config, metrics, holder.into(), exclusive)
    }

    #[tokio::test]
    async fn one_process_leads_until_it_hands_over() {
        let store = Arc::new(MemoryStore::new(clock()));
        let (a, b) = (process(&store, "a", false), process(&store, "b", false));
        assert_eq!(a.leads(Lead::Seals, EVERY).await.ok(), Some(true));
        assert_eq!(b.leads(Lead::Seals, EVERY).await.ok(), Some(false));
        assert_eq!(b.leads(Lead::Due, EVERY).await.ok(), Some(true), "each loop has a lease of its own");
        a.hand_over([Lead::Seals.name()]).await;
        assert_eq!(b.leads(Lead::Seals, EVERY).await.ok(), Some(true));
        assert_eq!(a.leads(Lead::Seals, EVERY).await.ok(), Some(false));
    }

    #[tokio::test]
    async fn a_process_that_has_the_store_for_itself_asks_for_no_lease() {
        let store = Arc::new(MemoryStore::new(clock()));
        let (alone, other) = (process(&store, "a", true), process(&store, "b", false));
        assert_eq!(alone.leads(Lead::Seals, EVERY).await.ok(), Some(true));
        assert_eq!(other.leads(Lead::Seals, EVERY).await.ok(), Some(true));
    }
}
