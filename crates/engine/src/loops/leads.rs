//! Loops that one process runs for all. Two leaders are harmless, for every statement repeats its evidence: leading only
//! saves work.

use std::time::Duration;

use lockgate_ports::StoreError;

use crate::Inner;

/// A loop with a leader. The names are rows in the Store's leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Closes edges of processes that are gone.
    Closer,
    Deadlines,
    Due,
    Ledger,
    Limits,
    Pending,
    Placing,
    Rebuild,
    Reoffer,
    Retention,
    Runs,
    Scans,
    Schedules,
    Seals,
}

impl Lead {
    pub(super) const ALL: [Self; 14] = [
        Self::Closer,
        Self::Deadlines,
        Self::Due,
        Self::Ledger,
        Self::Limits,
        Self::Pending,
        Self::Placing,
        Self::Rebuild,
        Self::Reoffer,
        Self::Retention,
        Self::Runs,
        Self::Scans,
        Self::Schedules,
        Self::Seals,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Closer => "lockgate:edge:closer",
            Self::Deadlines => "lockgate:reconciler:default",
            Self::Due => "lockgate:retry:pump",
            Self::Ledger => "lockgate:bypass:ledger",
            Self::Limits => "lockgate:limits",
            Self::Pending => "lockgate:replayer:pending",
            Self::Placing => "lockgate:placing",
            Self::Rebuild => "lanes:rebuild",
            Self::Reoffer => "lockgate:replayer:lanes",
            Self::Retention => "lockgate:retention",
            Self::Runs => "lockgate:workflow-engine:reconciler:default",
            Self::Scans => "lockgate:output:scans",
            Self::Schedules => "lockgate:cron",
            Self::Seals => "lockgate:audit:sealer",
        }
    }
}

impl Inner {
    /// Whether this process does the next round of a loop that comes round `every` so often. The cadence is the poll: the
    /// lease outlives one round and no more.
    pub(crate) async fn leads(&self, lead: Lead, every: Duration) -> Result<bool, StoreError> {
        Ok(self.leads_since(lead, every).await?.is_some())
    }

    /// The epoch of this process's leadership, if it leads. A new one means that somebody else may have led in between.
    pub(crate) async fn leads_since(&self, lead: Lead, every: Duration) -> Result<Option<u64>, StoreError> {
        if self.settings.exclusive_store {
            return Ok(Some(0));
        }
        self.ports.store.acquire(lead.name(), self.edge.id().as_str(), every * 2).await
    }

    /// A graceful stop gives leadership away at once.
    pub(crate) async fn hand_over(&self) {
        let shared = Lead::ALL.into_iter().filter(|_| !self.settings.exclusive_store);
        for lead in shared {
            if let Err(error) = self.ports.store.release(lead.name(), self.edge.id().as_str()).await {
                tracing::warn!(%error, "leadership could not be handed over; it expires by itself");
                return;
            }
        }
    }
}
