//! Scans the content of results. The duty is a row written with the result, so a crash never skips a scan.

use std::sync::Arc;

use futures::{StreamExt, stream};
use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Duty, Input, Job, LetOut, Scanned};
use lockgate_core::policy::FailMode;
use lockgate_ports::{OutputContent, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, wait};
use crate::Inner;
use crate::edge::NOBODY_SCANNED;
use crate::health::moved;
use crate::metrics::Phase;

/// Results of one commit.
const PAGE: usize = 64;
/// Results in memory, and with a kernel elsewhere, at once; each may have a mebibyte.
const AT_ONCE: usize = 16;

/// A walk through everything that is owed rests so many times longer than it took, while nobody can look.
const RESTS: u32 = 10;

/// What came of one result.
enum Scan {
    Done(Arc<Job>, Input),
    /// Nobody looked, and the fail mode does not let the result wait.
    Unscanned(Arc<Job>, Input),
    /// Somebody was faster.
    NotOwed,
    NobodyLooked,
}

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut outage = Outage::default();
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
        if let Err(error) = inner.scans_once(came, &mut outage).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("scans");
            tracing::warn!(%error, "results could not be scanned; trying again with the next tick");
        }
    }
}

/// While nobody can look at contents, every result that comes out adds to what is owed: it is walked through once, and then
/// again when a breaker let somebody try in vain, but not all the time.
#[derive(Default)]
struct Outage {
    walked: bool,
    rests_until: Option<Instant>,
    /// Behind results that nobody could look at: those after them have their turn before these are tried again.
    after: JobSeq,
}

impl Inner {
    async fn scans_once(&self, came: bool, outage: &mut Outage) -> Result<(), StoreError> {
        outage.walked &= !self.ports.kernel.scans();
        if outage.walked || (!came && !self.leads(Lead::Scans, self.settings.scan_every).await?) {
            return Ok(());
        }
        let (mut after, began) = (std::mem::take(&mut outage.after), Instant::now());
        let from_the_first = after == JobSeq::default();
        loop {
            let mut jobs = self.ports.store.owing(Duty::Scan, after, PAGE).await?;
            let away = !self.ports.kernel.scans();
            let Some(last) = jobs.last() else {
                outage.walked = away && from_the_first;
                outage.rests_until = outage.walked.then(|| Instant::now() + began.elapsed() * RESTS);
                return Ok(());
            };
            after = last.seq;
            if away && outage.rests_until.is_some_and(|until| Instant::now() < until) {
                outage.walked = true;
                return Ok(());
            }
            if away {
                jobs.retain(|job| self.must_not_wait(job));
            }
            let scans: Vec<_> = stream::iter(jobs).map(|job| self.scan(job)).buffered(AT_ONCE).collect().await;
            let scans = scans.into_iter().collect::<Result<Vec<_>, _>>()?;
            let silent = !scans.iter().any(|scan| matches!(scan, Scan::Done(..) | Scan::NotOwed));
            let input = |scan| match scan {
                Scan::Done(job, input) | Scan::Unscanned(job, input) => Some((job, input)),
                Scan::NotOwed | Scan::NobodyLooked => None,
            };
            self.drive(scans.into_iter().filter_map(input).collect()).await?;
            // Whoever could look at none of these cannot look at the next, which wait for another tick. Once the breaker
            // is open, that may be long: what must not wait comes out first.
            if silent && self.ports.kernel.scans() {
                outage.after = after;
                return Ok(());
            }
        }
    }

    fn must_not_wait(&self, job: &Job) -> bool {
        job.result_is_held() && self.ports.kernel.output_fail_mode(&job.request) == FailMode::Open
    }

    async fn scan(&self, job: Job) -> Result<Scan, StoreError> {
        let detail = match self.ports.store.detail(&job.request.job_id).await {
            // It is owed until somebody can read it, and must not keep the others from being scanned.
            Err(error @ StoreError::Corrupt(_)) => {
                self.health.store_failed(&error);
                return Ok(Scan::NotOwed);
            }
            detail => detail?,
        };
        let Some((job, result)) = detail.and_then(|detail| Some((detail.job, detail.result?))) else {
            return Ok(Scan::NotOwed);
        };
        let Some(check) = job.life.output.as_ref().filter(|_| job.needs_scan()) else { return Ok(Scan::NotOwed) };
        let attempt = check.attempt;
        let content = OutputContent { request: job.request.clone(), result: result.clone() };
        let (began, since) = (Instant::now(), self.traces.begin());
        let scanned = self.ports.kernel.scan(&content).await;
        // Each may take half a minute, and a page has many.
        moved();
        let job = Arc::new(job);
        Ok(match scanned {
            Some(verdict) => {
                self.traces.checked(self.traces.lap(since), &job, attempt, "output scan");
                self.metrics.topics.checked(&job.request.topic, Phase::Content, began.elapsed());
                self.metrics.governance.output_judged(verdict.decision);
                let scanned = Scanned { attempt, verdict: Arc::new(verdict), result };
                Scan::Done(job, Input::Scanned(scanned))
            }
            None if self.must_not_wait(&job) => {
                self.metrics.topics.skipped(&job.request.topic);
                let let_out = LetOut { attempt, why: NOBODY_SCANNED.into(), result };
                Scan::Unscanned(job, Input::LetOut(let_out))
            }
            None => Scan::NobodyLooked,
        })
    }
}
