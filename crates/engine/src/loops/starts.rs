//! Makes start reports durable. Most results come first, and then there is nothing to write.

use std::sync::Arc;

use lockgate_core::job::{Illegal, Input, Job};
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::tick;
use crate::Inner;
use crate::commit::Undriven;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.start_flush).await {
        if let Err(error) = inner.starts_once().await {
            inner.health.store_answered(false);
            tracing::warn!(%error, "starts could not be stored; trying again with the next flush");
        }
    }
}

impl Inner {
    pub(crate) async fn starts_once(&self) -> Result<(), StoreError> {
        let starts = self.edge.take_starts();
        let started = |(job, at): &(Arc<Job>, Timestamp)| {
            (job.clone(), Input::Started { token: job.life.attempt.token.clone(), at: *at })
        };
        match self.drive(starts.iter().map(started).collect()).await {
            Ok(driven) => {
                for ((held, _), outcome) in starts.iter().zip(driven) {
                    match outcome {
                        Ok(job) => self.edge.update(&job),
                        Err(Undriven::Illegal(Illegal::Superseded | Illegal::Terminal(_))) => self.free_held(held),
                        Err(_) => {}
                    }
                }
                Ok(())
            }
            Err(error) => {
                self.edge.put_starts_back(starts.into_iter().map(|(job, _)| job).collect());
                Err(error)
            }
        }
    }
}
