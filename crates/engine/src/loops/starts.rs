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
        let starts = self.edge.ask(|edge, _| edge.take_starts());
        // A stored start is not urgent enough to be tried ten times a second.
        let (starts, resting): (Vec<_>, Vec<_>) =
            starts.into_iter().partition(|(job, _)| !self.damage.jobs.has(&job.request.job_id));
        if !resting.is_empty() {
            self.put_starts_back(&resting);
        }
        let started = |(job, at): &(Arc<Job>, Timestamp)| {
            (job.clone(), Input::Started { token: job.life.attempt.token.clone(), at: *at })
        };
        match self.drive(starts.iter().map(started).collect()).await {
            Ok(driven) => {
                let mut unclear = Vec::new();
                for (start, outcome) in starts.iter().zip(driven) {
                    let held = &start.0;
                    match outcome {
                        Ok(job) => self.edge.ask(|edge, _| edge.on_started(&job)),
                        Err(Undriven::Illegal(Illegal::Superseded | Illegal::Terminal(_))) => {
                            self.stop_held(held, held).await;
                        }
                        Err(Undriven::Refused(_)) => self.put_starts_back(std::slice::from_ref(start)),
                        Err(_) => unclear.push(start.clone()),
                    }
                }
                self.follow_starts(unclear).await
            }
            Err(error) => {
                self.put_starts_back(&starts);
                Err(error)
            }
        }
    }

    /// They are tried again with the next flush.
    fn put_starts_back(&self, starts: &[(Arc<Job>, Timestamp)]) {
        self.edge.ask(|edge, _| edge.put_starts_back(starts.iter().map(|(job, _)| &**job)));
    }

    /// Another process moved these jobs, perhaps by storing this very start: the process that held the worker before. What is
    /// known here must follow, or the attempt would never be late here, however long it runs.
    async fn follow_starts(&self, starts: Vec<(Arc<Job>, Timestamp)>) -> Result<(), StoreError> {
        if starts.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = starts.iter().map(|(job, _)| job.request.job_id.clone()).collect();
        // Until it is known better, the start is still to be stored.
        self.put_starts_back(&starts);
        for job in self.load_each(&ids).await?.into_iter().filter_map(ReadRow::there) {
            let job = Arc::new(job);
            self.edge.ask(|edge, _| edge.on_started(&job));
        }
        Ok(())
    }
}
