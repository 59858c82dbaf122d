//! Retries and delayed jobs: offers what has become due. At most half a second late.

use std::sync::Arc;

use lockgate_core::ids::JobSeq;
use lockgate_core::lane::ReadyKey;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, recovered: Timestamp, mut stop: watch::Receiver<bool>) {
    let mut pump = Pump { seen: ReadyKey { due_at: recovered, seq: JobSeq::default() }, epoch: 0 };
    while tick(&mut stop, inner.settings.due_every).await {
        if let Err(error) = inner.due_once(&mut pump).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("due");
            tracing::warn!(%error, "due jobs could not be read; trying again with the next tick");
        }
    }
}

/// How far this process has come.
pub(crate) struct Pump {
    seen: ReadyKey,
    /// Of its leadership.
    epoch: u64,
}

impl Inner {
    /// Offers everything that became due after what was seen. A new leader does not know how far the others came, and begins
    /// at the beginning: offers are idempotent.
    pub(crate) async fn due_once(&self, pump: &mut Pump) -> Result<(), StoreError> {
        let Some(epoch) = self.leads_since(Lead::Due, self.settings.due_every).await? else { return Ok(()) };
        if std::mem::replace(&mut pump.epoch, epoch) != epoch {
            pump.seen = ReadyKey::default();
        }
        let seen = &mut pump.seen;
        // A clock that was set back would leave new retries behind the cursor.
        seen.due_at = seen.due_at.min(self.ports.clock.now());
        loop {
            let jobs = self.ports.store.due(*seen, self.settings.batch_max).await?;
            let Some(last) = jobs.last() else { return Ok(()) };
            *seen = last.ready_key();
            let more = jobs.len() == self.settings.batch_max;
            self.offer(jobs.into_iter().map(Arc::new).collect()).await;
            if !more {
                return Ok(());
            }
        }
    }
}
