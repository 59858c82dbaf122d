//! Ends jobs whose deadline has passed, whatever they wait for.

use std::sync::Arc;

use lockgate_core::job::{Input, Job, JobState};
use lockgate_core::lane::ReadyKey;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::round::Round;
use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.deadlines_once(&stop).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("deadlines");
            tracing::warn!(%error, "deadlines could not be enforced; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn deadlines_once(&self, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        let every = self.settings.expire_every;
        let Some(mut round) = Round::begin(&self.leadership, stop, Lead::Deadlines, every).await? else {
            self.metrics.loops.found_stale(std::iter::empty());
            return Ok(());
        };
        let (mut after, mut ended) = (ReadyKey::default(), Ok(()));
        let mut left: Vec<JobState> = Vec::new();
        while round.goes_on().await? {
            let jobs = self.ports.store.expired(after, self.settings.batch_max).await?;
            // They count while the write hangs, and go on to count if it fails. Jobs that miss their deadlines one after
            // another, and end, do not.
            self.metrics.loops.found_stale(left.iter().copied().chain(jobs.iter().map(|job| job.state())));
            let (full, last) = (jobs.len() == self.settings.batch_max, jobs.last().and_then(Job::deadline_key));
            let page = self.end_expired(jobs, &mut left).await;
            let away = page.as_ref().is_err_and(|error| !error.is_damage());
            ended = ended.and(page);
            self.metrics.loops.found_stale(left.iter().copied());
            // Behind those that could not be ended, others wait for their end: these are left to the next tick.
            match last {
                Some(last) if full && !away => after = last,
                _ => break,
            }
        }
        ended
    }

    /// One page, and the states of those that could not be ended.
    async fn end_expired(&self, jobs: Vec<Job>, left: &mut Vec<JobState>) -> Result<(), StoreError> {
        // F-2: children that had all ended were in time, even if no process saw it.
        let (jobs, looked) = self.open_barriers(jobs).await;
        let states: Vec<_> = jobs.iter().map(|job| job.state()).collect();
        let driven = match self.drive(jobs.into_iter().map(|job| (Arc::new(job), Input::Woken)).collect()).await {
            Ok(driven) => driven,
            Err(error) => {
                left.extend(states);
                return Err(error);
            }
        };
        left.extend(states.into_iter().zip(&driven).filter(|(_, driven)| driven.is_err()).map(|(state, _)| state));
        looked
    }
}
