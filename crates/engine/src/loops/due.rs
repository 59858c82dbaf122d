//! Retries and delayed jobs: offers what has become due. At most half a second late.

use std::sync::Arc;

use lockgate_core::ids::JobSeq;
use lockgate_core::lane::ReadyKey;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::tick;
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, recovered: Timestamp, mut stop: watch::Receiver<bool>) {
    let mut seen = ReadyKey { due_at: recovered, seq: JobSeq::default() };
    while tick(&mut stop, inner.settings.due_every).await {
        if let Err(error) = inner.due_once(&mut seen).await {
            inner.health.store_answered(false);
            tracing::warn!(%error, "due jobs could not be read; trying again with the next tick");
        }
    }
}

impl Inner {
    /// Offers everything that became due after `seen` and moves `seen` on.
    pub(crate) async fn due_once(&self, seen: &mut ReadyKey) -> Result<(), StoreError> {
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
