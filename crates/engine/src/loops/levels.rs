//! Sets the gauges.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::JobSeq;
use lockgate_core::job::Duty;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::tick;
use crate::Inner;
use crate::metrics::Levels;

const EVERY: Duration = Duration::from_secs(2);
/// More than this many questions are as bad as this many.
const APPROVALS_COUNTED: usize = 1_000;

/// Tenants with gauges of their own: those with the most claims.
const TENANTS_SHOWN: usize = 100;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, EVERY).await {
        if let Err(error) = inner.levels_once().await {
            tracing::warn!(%error, "gauges could not be read; they keep their last value");
        }
    }
}

impl Inner {
    async fn levels_once(&self) -> Result<(), StoreError> {
        let totals = self.ports.store.totals().await?;
        let held = self.edge.held();
        let mut levels = Levels { dead: totals.dead_letters, held: held.iter().sum(), ..Levels::default() };
        for depth in self.ports.lanes.depths(usize::MAX).await {
            levels.queued[depth.lane.priority as usize] += depth.waiting;
        }
        for (p, live) in totals.live.into_iter().enumerate() {
            levels.later[p] = live.saturating_sub(held[p] + levels.queued[p]);
        }
        self.metrics.set_levels(&levels);
        let waiting = self.ports.store.owing(Duty::Approve, JobSeq::default(), APPROVALS_COUNTED).await?;
        self.metrics.governance.approvals_waiting(waiting.len());
        self.metrics.sharing.set(&self.ports.lanes.shares(TENANTS_SHOWN).await, self.ports.clock.now());
        self.metrics.governance.breakers(&self.ports.kernel.breakers());
        Ok(())
    }
}
