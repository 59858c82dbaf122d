//! Seals audit rows into hash-linked blocks. Two sealers are harmless: a block is added only on the head it continues.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::Block;
use lockgate_ports::{AuditStore, Clock, StoreError};
use tokio::sync::watch;

use super::round::Round;
use super::{Lead, Leadership, LoopReports, tick};

/// Rows of one block at most.
const ROWS_MAX: usize = 1_000;

/// Seals the audit trail.
pub(crate) struct AuditSealer {
    audit: Arc<dyn AuditStore>,
    clock: Arc<dyn Clock>,
    leadership: Arc<Leadership>,
    reports: LoopReports,
    every: Duration,
}

impl AuditSealer {
    pub(crate) fn new(
        audit: Arc<dyn AuditStore>,
        clock: Arc<dyn Clock>,
        leadership: Arc<Leadership>,
        reports: LoopReports,
        every: Duration,
    ) -> Self {
        Self { audit, clock, leadership, reports, every }
    }

    pub(super) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        while tick(&mut stop, self.every).await {
            if let Err(error) = self.seal_once(&stop).await {
                self.reports.failed("seals", &error);
                tracing::warn!(%error, "the audit trail could not be sealed; trying again with the next tick");
            }
        }
    }

    async fn seal_once(&self, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        let round = Round::begin(&self.leadership, stop, Lead::Seals, self.every).await?;
        let Some(mut round) = round else { return Ok(()) };
        while round.goes_on().await? {
            let head = self.audit.head().await?;
            let rows = self.audit.audit(head.as_ref().map_or(0, |head| head.last), ROWS_MAX).await?;
            let Some(block) = Block::over(head.as_ref(), &rows, self.clock.now()) else { break };
            if !self.audit.seal(&block).await? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lockgate_core::audit::{AuditAction, AuditEntry};
    use lockgate_core::time::Timestamp;
    use lockgate_model::{ManualClock, MemoryStore};
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::config::ActiveConfig;
    use crate::loops::StoreHealth;
    use crate::{Metrics, Settings};

    fn entry(at: Timestamp) -> AuditEntry {
        AuditEntry {
            at,
            tenant: "acme".into(),
            actor: "ann".into(),
            action: AuditAction::WorkerDrained,
            subject: "w".into(),
            detail: lockgate_core::request::Json::null(),
        }
    }

    #[tokio::test]
    async fn only_the_leader_seals_and_every_row_is_in_one_block() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_000_000)));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let (settings, metrics) = (Settings::default(), Metrics::new(&mut Registry::default()));
        let sealer = |holder: &str| {
            let (config, loops) = (Arc::new(ActiveConfig::default()), metrics.loops.clone());
            let reports = LoopReports { health: Arc::new(StoreHealth::new(&settings)), metrics: loops.clone() };
            let leads = Leadership::new(store.clone(), clock.clone(), config, loops, holder.into(), false);
            AuditSealer::new(store.clone(), clock.clone(), Arc::new(leads), reports, settings.seal_every)
        };
        let (a, b, (_, stop)) = (sealer("a"), sealer("b"), watch::channel(false));
        let rows = (0..=ROWS_MAX).map(|_| entry(clock.now())).collect();
        store.append_audit(rows).await.expect("stored");
        a.seal_once(&stop).await.expect("sealed");
        let head = store.head().await.expect("read").expect("sealed");
        assert_eq!(head.last, i64::try_from(ROWS_MAX).expect("small") + 1);
        store.append_audit(vec![entry(clock.now())]).await.expect("stored");
        b.seal_once(&stop).await.expect("no error");
        assert_eq!(store.head().await.expect("read"), Some(head), "another process leads");
    }
}
