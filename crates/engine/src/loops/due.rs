//! Retries and delayed jobs: offers what has become due. At most half a second late.

use std::sync::Arc;

use lockgate_core::ids::JobSeq;
use lockgate_core::lane::ReadyKey;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::round::Round;
use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, recovered: Timestamp, mut stop: watch::Receiver<bool>) {
    // Lanes that others share were not rebuilt for this process, and it does not know how far the others came.
    let recovered = if inner.settings.exclusive_store { recovered } else { Timestamp::ZERO };
    let mut seen = ReadyKey { due_at: recovered, seq: JobSeq::default() };
    while tick(&mut stop, inner.settings.due_every).await {
        if let Err(error) = inner.due_once(&mut seen, &stop).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("due");
            tracing::warn!(%error, "due jobs could not be read; trying again with the next tick");
        }
    }
}

impl Inner {
    /// Offers everything that became due after what was seen. A row comes into this list with a time that the Store's clock has
    /// yet to reach, so behind the cursor is what this process has offered itself, whichever process led meanwhile; one whose commit
    /// outlasted its delay was offered by its committer, who asks that clock after the commit, or is left to the re-offers. A
    /// round that was cut short therefore goes on where it was: if each leader began at the beginning, those that lose their
    /// lease within a page would never come to its end.
    pub(crate) async fn due_once(&self, seen: &mut ReadyKey, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        // A clock that was set back would leave new retries behind the cursor.
        seen.due_at = seen.due_at.min(self.ports.clock.now());
        let every = self.settings.due_every;
        let Some(mut round) = Round::begin(&self.leadership, stop, Lead::Due, every).await? else { return Ok(()) };
        while round.goes_on().await? {
            let mut jobs = self.ports.store.due(*seen, self.settings.batch_max).await?;
            let more = jobs.len() == self.settings.batch_max;
            // What a clock behind the Store's calls early is not offered, so it is not seen either.
            let now = self.ports.clock.now();
            jobs.retain(|job| job.life.due_at <= now);
            let Some(last) = jobs.last() else { break };
            *seen = last.ready_key();
            self.offer(jobs.into_iter().map(Arc::new).collect()).await;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
