//! Scans the content of results. The duty is a row written with the result, so a crash never skips a scan.

use std::sync::Arc;

use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Duty, Input, Job, Scanned};
use lockgate_ports::{OutputContent, StoreError};
use tokio::sync::watch;

use super::{Lead, wait};
use crate::Inner;

/// Results in memory at once; each may have a mebibyte.
const PAGE: usize = 32;

enum Scan {
    Done(Arc<Job>, Scanned),
    /// Somebody was faster.
    NotOwed,
    NobodyLooked,
}

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    loop {
        // What came in here is scanned here; the leader sees to what nobody scanned.
        let mut came = false;
        let arrival = async {
            inner.wake.scan.notified().await;
            came = true;
        };
        if !wait(&mut stop, inner.settings.scan_every, arrival).await {
            return;
        }
        if let Err(error) = inner.scans_once(came).await {
            inner.health.store_answered(false);
            tracing::warn!(%error, "results could not be scanned; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn scans_once(&self, came: bool) -> Result<(), StoreError> {
        if !came && !self.leads(Lead::Scans, self.settings.scan_every).await? {
            return Ok(());
        }
        let mut after = JobSeq::default();
        loop {
            let jobs = self.ports.store.owing(Duty::Scan, after, PAGE).await?;
            let Some(last) = jobs.last() else { return Ok(()) };
            after = last.seq;
            let mut inputs = Vec::with_capacity(jobs.len());
            let mut answered = true;
            for job in jobs {
                match self.scan(job).await? {
                    Scan::Done(job, scanned) => inputs.push((job, Input::Scanned(scanned))),
                    Scan::NotOwed => {}
                    Scan::NobodyLooked => {
                        answered = false;
                        break;
                    }
                }
            }
            self.drive(inputs).await?;
            // Whoever could not look at this one cannot look at the next: the rest waits for the next tick.
            if !answered {
                return Ok(());
            }
        }
    }

    async fn scan(&self, job: Job) -> Result<Scan, StoreError> {
        let detail = self.ports.store.detail(&job.request.job_id).await?;
        let Some((job, result)) = detail.and_then(|detail| Some((detail.job, detail.result?))) else {
            return Ok(Scan::NotOwed);
        };
        let Some(check) = job.life.output.as_ref().filter(|_| job.needs_scan()) else { return Ok(Scan::NotOwed) };
        let attempt = check.attempt;
        let content = OutputContent { request: job.request.clone(), result: result.clone() };
        let Some(verdict) = self.ports.kernel.scan(&content).await else { return Ok(Scan::NobodyLooked) };
        self.metrics.governance.output_judged(verdict.decision);
        let scanned = Scanned { attempt, verdict: Arc::new(verdict), result };
        Ok(Scan::Done(Arc::new(job), scanned))
    }
}
