//! PENDING jobs are the wait-list of the kernel: judged when due, page by page, until it fails to answer. A kernel that comes
//! back to a long list is not to go down again under it: so many are judged each second and no more.

use std::sync::Arc;

use lockgate_core::job::{Input, JobState};
use lockgate_core::lane::ReadyKey;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;
use crate::commit::Undriven;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.pending_once().await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("pending");
            tracing::warn!(%error, "pending jobs could not be judged; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn pending_once(&self) -> Result<(), StoreError> {
        if !self.leadership.leads(Lead::Pending, self.settings.expire_every).await? {
            return Ok(());
        }
        let (mut after, mut left, mut judged) = (ReadyKey::default(), self.released_at_once(), Ok(()));
        // A Store that takes nothing at all must not have one round walk through everything.
        let mut given_back = left;
        // While the kernel is away the rows are the wait-list: no job is asked about one by one, and nothing is written.
        while left > 0 && self.ports.kernel.ready() {
            let jobs = self.ports.store.pending(after, self.settings.batch_max.min(left)).await?;
            let Some(last) = jobs.last() else { return judged };
            after = last.ready_key();
            left -= jobs.len().min(left);
            // F-2: a parent whose children have all ended is not late.
            let (jobs, looked) = self.open_barriers(jobs).await;
            let inputs = jobs.into_iter().map(|job| (Arc::new(job), Input::Judged)).collect();
            let driven = match self.drive(inputs).await {
                Ok(driven) => driven,
                // One page's damage must not keep the pages behind it waiting.
                Err(error) if error.is_damage() => {
                    judged = judged.and(Err(error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            for job in driven.iter().flatten().filter(|job| job.state() != JobState::Pending) {
                self.metrics.topics.replayed(&job.request.topic);
            }
            match looked {
                Err(error) if !error.is_damage() => return judged.and(Err(error)),
                looked => judged = judged.and(looked),
            }
            // What the Store does not take takes no turn either, or it would be all that ever has one.
            let refused = driven.iter().filter(|one| one.as_ref().is_err_and(Undriven::is_refused)).count();
            left += refused.min(given_back);
            given_back -= refused.min(given_back);
            if driven.len() > refused && driven.iter().flatten().all(|job| job.state() == JobState::Pending) {
                return judged;
            }
        }
        judged
    }

    /// Jobs of one round, of each kind that asks a kernel which may have been away.
    pub(super) fn released_at_once(&self) -> usize {
        let jobs = u128::from(self.settings.release_rate) * self.settings.expire_every.as_millis() / 1_000;
        usize::try_from(jobs).unwrap_or(usize::MAX).max(1)
    }
}
