//! The bypass ledger: jobs that ran unjudged are judged when the kernel is back.

use std::sync::Arc;

use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Duty, Input, Job};
use lockgate_ports::StoreError;
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.ledger_once().await {
            inner.health.store_failed(&error);
            tracing::warn!(%error, "bypassed jobs could not be judged; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn ledger_once(&self) -> Result<(), StoreError> {
        if !self.leads(Lead::Ledger, self.settings.expire_every).await? {
            return Ok(());
        }
        let mut after = JobSeq::default();
        while self.ports.kernel.ready() {
            let jobs = self.ports.store.owing(Duty::Rejudge, after, self.settings.batch_max).await?;
            let Some(last) = jobs.last() else { return Ok(()) };
            after = last.seq;
            let driven = self.drive(jobs.into_iter().map(|job| (Arc::new(job), Input::Rejudged)).collect()).await?;
            let refused = |job: &&Arc<Job>| job.life.bypass.as_ref().is_some_and(|bypass| bypass.wrong);
            self.metrics.governance.bypasses_refused(driven.iter().flatten().filter(refused).count());
        }
        Ok(())
    }
}
