//! The bypass ledger: jobs that ran unjudged are judged when the kernel is back, at the rate of those that waited for it. What
//! has no answer keeps nothing else from its turn: each round goes on where the last one stopped.

use std::sync::Arc;

use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Duty, Input, Job};
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut after = JobSeq::default();
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.ledger_once(&mut after).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("ledger");
            tracing::warn!(%error, "bypassed jobs could not be judged; trying again with the next tick");
        }
    }
}

impl Inner {
    /// Goes on behind `after`, and with the first one again when there is nothing behind it.
    async fn ledger_once(&self, after: &mut JobSeq) -> Result<(), StoreError> {
        if !self.leadership.leads(Lead::Ledger, self.settings.expire_every).await? {
            return Ok(());
        }
        let mut left = self.released_at_once();
        while left > 0 && self.ports.kernel.ready() {
            let jobs = self.ports.store.owing(Duty::Rejudge, *after, self.settings.batch_max.min(left)).await?;
            let Some(last) = jobs.last() else {
                *after = JobSeq::default();
                return Ok(());
            };
            let last = last.seq;
            left -= jobs.len().min(left);
            // Also if they cannot be judged: those behind them have their turn.
            *after = last;
            let driven = self.drive(jobs.into_iter().map(|job| (Arc::new(job), Input::Rejudged)).collect()).await?;
            let refused = |job: &&Arc<Job>| job.life.bypass.as_ref().is_some_and(|bypass| bypass.wrong);
            self.metrics.governance.bypasses_refused(driven.iter().flatten().filter(refused).count());
            // A kernel that answers under another policy has no answer for the rest either.
            if driven.iter().all(Result::is_err) {
                return Ok(());
            }
        }
        Ok(())
    }
}
