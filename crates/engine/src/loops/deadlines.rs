//! Ends jobs whose deadline has passed, whatever they wait for.

use std::sync::Arc;

use lockgate_core::job::Input;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.deadlines_once().await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("deadlines");
            tracing::warn!(%error, "deadlines could not be enforced; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn deadlines_once(&self) -> Result<(), StoreError> {
        if !self.leads(Lead::Deadlines, self.settings.expire_every).await? {
            self.metrics.loops.found_stale(std::iter::empty());
            return Ok(());
        }
        loop {
            let jobs = self.ports.store.expired(self.settings.batch_max).await?;
            // They count while the write hangs, and go on to count if it fails. Jobs that miss their deadlines one after
            // another, and end, do not.
            self.metrics.loops.found_stale(jobs.iter().map(|job| job.state()));
            let full = jobs.len() == self.settings.batch_max;
            // F-2: children that had all ended were in time, even if nobody was there to see it.
            let (jobs, looked) = self.open_barriers(jobs).await;
            let states: Vec<_> = jobs.iter().map(|job| job.state()).collect();
            let driven = self.drive(jobs.into_iter().map(|job| (Arc::new(job), Input::Woken)).collect()).await?;
            let left = states.into_iter().zip(&driven).filter(|(_, driven)| driven.is_err());
            self.metrics.loops.found_stale(left.map(|(state, _)| state));
            looked?;
            // A page nobody could end would come again at once: leave it to the next tick.
            if !full || driven.iter().all(Result::is_err) {
                return Ok(());
            }
        }
    }
}
