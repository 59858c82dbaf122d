//! Makes start reports durable. Most results come first, and then there is nothing to write.

use std::sync::Arc;

use lockgate_core::job::{Illegal, Input, Job};
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::tick;
use crate::Inner;
use crate::commit::Undriven;
use crate::damage::ReadRow;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.start_flush).await {
        if let Err(error) = inner.starts_once().await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("starts");
            tracing::warn!(%error, "starts could not be stored; trying again with the next flush");
        }
    }
}

impl Inner {
    pub(crate) async fn starts_once(&self) -> Result<(), StoreError> {
        let starts = self.edge.take_starts();
        // A stored start is not urgent enough to be tried ten times a second.
        let (starts, resting): (Vec<_>, Vec<_>) =
            starts.into_iter().partition(|(job, _)| !self.damage.jobs.has(&job.request.job_id));
        if !resting.is_empty() {
            self.edge.put_starts_back(resting.into_iter().map(|(job, _)| job).collect());
        }
        let started = |(job, at): &(Arc<Job>, Timestamp)| {
            (job.clone(), Input::Started { token: job.life.attempt.token.clone(), at: *at })
        };
        match self.drive(starts.iter().map(started).collect()).await {
            Ok(driven) => {
                let mut unclear = Vec::new();
                for ((held, _), outcome) in starts.iter().zip(driven) {
                    match outcome {
                        Ok(job) => self.edge.update(&job),
                        Err(Undriven::Illegal(Illegal::Superseded | Illegal::Terminal(_))) => {
                            self.stop_held(held, held).await;
                        }
                        Err(Undriven::Refused(_)) => self.edge.put_starts_back(vec![held.clone()]),
                        Err(_) => unclear.push(held.clone()),
                    }
                }
                self.follow_starts(unclear).await
            }
            Err(error) => {
                self.edge.put_starts_back(starts.into_iter().map(|(job, _)| job).collect());
                Err(error)
            }
        }
    }

    /// Another process moved these jobs, perhaps by storing this very start: the process that held the worker before. What is
    /// known here must follow, or the attempt would never be late here, however long it runs.
    async fn follow_starts(&self, jobs: Vec<Arc<Job>>) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = jobs.iter().map(|job| job.request.job_id.clone()).collect();
        // Until it is known better, the start is still to be stored.
        self.edge.put_starts_back(jobs);
        for job in self.load_each(&ids).await?.into_iter().filter_map(ReadRow::there) {
            self.edge.update(&Arc::new(job));
        }
        Ok(())
    }
}
