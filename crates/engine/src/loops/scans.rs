//! Scans the content of results. The duty is a row written with the result, so a crash never skips a scan.

use std::sync::Arc;

use futures::{StreamExt, stream};
use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Duty, Input, Job, Scanned, UnscannedRelease};
use lockgate_core::policy::FailMode;
use lockgate_ports::{JobQuery, OutputContent, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::round::Round;
use super::{Lead, wait};
use crate::Inner;
use crate::edge::NOBODY_SCANNED;
use crate::health::progress;
use crate::metrics::ResultPhase;

/// Results of one commit.
const PAGE: usize = 64;
/// Results in memory, and with a kernel elsewhere, at once; each may have a mebibyte.
const AT_ONCE: usize = 16;

/// A walk through everything that is owed rests so many times longer than it took, while no scanner answers.
const RESTS: u32 = 10;

/// What came of one result.
enum DueScan {
    Done(Arc<Job>, Input),
    /// No scanner answered, and the fail mode does not let the result wait.
    Unscanned(Arc<Job>, Input),
    /// Another commit came first.
    NotOwed,
    NobodyLooked,
}

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut outage = ScanOutage::default();
    loop {
        // What came in here is scanned here; the leader scans what is left over.
        let mut came = false;
        let arrival = async {
            inner.wake.scan.notified().await;
            came = true;
        };
        if !wait(&mut stop, inner.settings.scan_every, arrival).await {
            return;
        }
        if let Err(error) = inner.scans_once(came, &mut outage, &stop).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("scans");
            tracing::warn!(%error, "results could not be scanned; trying again with the next tick");
        }
    }
}

/// While no scanner answers, every result that comes out adds to what is owed: it is walked through once, and then
/// again when a breaker let a call through that failed, but not all the time.
#[derive(Default)]
struct ScanOutage {
    walked: bool,
    rests_until: Option<Instant>,
    /// Behind results that could not be scanned: those after them have their turn before these are tried again.
    after: JobSeq,
}

impl ScanOutage {
    /// Everything that was owed was walked through.
    fn over(&mut self, in_vain: bool, began: Instant) {
        self.walked = in_vain;
        self.rests_until = in_vain.then(|| Instant::now() + began.elapsed() * RESTS);
    }
}

impl Inner {
    async fn scans_once(&self, came: bool, outage: &mut ScanOutage, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        outage.walked &= !self.ports.kernel.scans();
        if outage.walked {
            return Ok(());
        }
        let round = match came {
            true => Some(Round::of_own(stop)),
            false => Round::begin(&self.leadership, stop, Lead::Scans, self.settings.scan_every).await?,
        };
        match round {
            Some(mut round) => self.walk(&mut round, outage).await,
            None => Ok(()),
        }
    }

    async fn walk(&self, round: &mut Round<'_>, outage: &mut ScanOutage) -> Result<(), StoreError> {
        let (from, began) = (std::mem::take(&mut outage.after), Instant::now());
        let (mut after, mut newest) = (from, None);
        while round.goes_on().await? {
            let mut jobs = self.ports.store.owing(Duty::Scan, after, PAGE).await?;
            let away = !self.ports.kernel.scans();
            let Some(last) = jobs.last().map(|job| job.seq) else {
                outage.over(away && from == JobSeq::default(), began);
                return Ok(());
            };
            if away && outage.rests_until.is_some_and(|until| Instant::now() < until) {
                outage.walked = true;
                return Ok(());
            }
            if away {
                jobs.retain(|job| self.must_not_wait(job));
            }
            // Results may come faster than they are scanned: a walk of several pages ends with what there was.
            if after > from && newest.is_none() {
                newest = self.newest().await?;
            }
            after = last;
            let silent = self.scan_page(jobs, round).await?;
            // Once the breaker is open, the next scan may be long in coming: what must not wait comes out first.
            if !self.ports.kernel.scans() {
                continue;
            }
            // A scanner that answered for none of these will not answer for the next, which wait for another tick.
            if silent {
                outage.after = after;
                return Ok(());
            }
            // What is behind has its turn before what came since: older jobs may have ended meanwhile.
            if newest.is_some_and(|newest| newest <= after) {
                outage.over(false, began);
                return Ok(());
            }
        }
        Ok(())
    }

    /// The latest of all jobs. None if it cannot be told.
    async fn newest(&self) -> Result<Option<JobSeq>, StoreError> {
        let newest = self.ports.store.list(JobQuery { limit: 1, ..JobQuery::default() }).await?;
        Ok(newest.items.first().map(|job| job.seq))
    }

    /// Whether none of them could be scanned. A stop does not wait for scans under way: nothing is written of them before
    /// they are done, so they stay owed.
    async fn scan_page(&self, jobs: Vec<Job>, round: &mut Round<'_>) -> Result<bool, StoreError> {
        let scans = stream::iter(jobs).map(|job| self.scan(job)).buffered(AT_ONCE);
        let scans: Vec<_> = scans.take_until(round.stopped()).collect().await;
        let scans = scans.into_iter().collect::<Result<Vec<_>, _>>()?;
        let silent = !scans.iter().any(|scan| matches!(scan, DueScan::Done(..) | DueScan::NotOwed));
        let input = |scan| match scan {
            DueScan::Done(job, input) | DueScan::Unscanned(job, input) => Some((job, input)),
            DueScan::NotOwed | DueScan::NobodyLooked => None,
        };
        self.drive(scans.into_iter().filter_map(input).collect()).await?;
        Ok(silent)
    }

    fn must_not_wait(&self, job: &Job) -> bool {
        job.result_is_held() && self.ports.kernel.output_fail_mode(&job.request) == FailMode::Open
    }

    async fn scan(&self, job: Job) -> Result<DueScan, StoreError> {
        // A scan may cost a lot, and its outcome could not be stored.
        if self.damage.jobs.has(&job.request.job_id) {
            return Ok(DueScan::NotOwed);
        }
        let detail = match self.ports.store.detail(&job.request.job_id).await {
            // It is owed until a process can read it, and must not keep the others from being scanned.
            Err(error @ StoreError::Corrupt(_)) => {
                self.health.store_failed(&error);
                return Ok(DueScan::NotOwed);
            }
            detail => detail?,
        };
        let Some((job, result)) = detail.and_then(|detail| Some((detail.job, detail.result?))) else {
            return Ok(DueScan::NotOwed);
        };
        let Some(check) = job.life.output.as_ref().filter(|_| job.needs_scan()) else { return Ok(DueScan::NotOwed) };
        let attempt = check.attempt;
        let content = OutputContent { request: job.request.clone(), result: result.clone() };
        let (began, since) = (Instant::now(), self.traces.begin());
        let scanned = self.ports.kernel.scan(&content).await;
        // Each may take half a minute, and a page has many.
        progress();
        let job = Arc::new(job);
        Ok(match scanned {
            Some(verdict) => {
                self.traces.checked(self.traces.lap(since), &job, attempt, "output scan");
                self.metrics.topics.looked(&job.request.topic, ResultPhase::Content, began.elapsed());
                self.metrics.governance.output_judged(verdict.decision);
                let scanned = Scanned { attempt, verdict: Arc::new(verdict), result };
                DueScan::Done(job, Input::Scanned(scanned))
            }
            None if self.must_not_wait(&job) => {
                self.metrics.topics.skipped(&job.request.topic);
                let let_out = UnscannedRelease { attempt, why: NOBODY_SCANNED.into(), result };
                DueScan::Unscanned(job, Input::LetOut(let_out))
            }
            None => DueScan::NobodyLooked,
        })
    }
}
