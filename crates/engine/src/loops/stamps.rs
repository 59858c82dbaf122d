//! Brings back what a clock that was ahead had stamped, once the time is right again.
//!
//! That a stamp lies in the future says that a wrong clock made it; which clock was wrong is told by time. A clock that was set back
//! by a jump has stood for `--clock-settle` when it is followed. After a start it must stand for as long: a machine that starts with
//! a clock behind, and gets the right time a minute later, would move what was right. Every clock that can be asked must agree.

use std::ops::AddAssign;
use std::sync::Arc;

use lockgate_core::ids::TenantId;
use lockgate_core::job::{Input, Job, JobState};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::RunRefusal;
use lockgate_ports::{JobQuery, RunQuery, StoreError};
use tokio::sync::watch;

use super::round::Round;
use super::{Lead, tick};
use crate::Inner;
use crate::commit::{Driven, Undriven};
use crate::metrics::Stamped;
use crate::schedules::{DecidedSchedule, Unturned};

/// The newest rows of each kind that are looked at after a start.
const NEWEST: usize = 100;
/// Tenants and schedules of one page.
const PAGE: usize = 500;
const LIVE: [JobState; 5] =
    [JobState::Pending, JobState::ApprovalRequired, JobState::Scheduled, JobState::Dispatched, JobState::Running];

/// What a round did to rows of one kind.
#[derive(Clone, Copy, Default)]
struct StampCounts {
    done: u64,
    /// Another commit was faster.
    contended: u64,
}

impl AddAssign for StampCounts {
    fn add_assign(&mut self, more: Self) {
        self.done += more.done;
        self.contended += more.contended;
    }
}

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut looked = false;
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.clocks_once(&mut looked, &stop).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("stamps");
            tracing::warn!(%error, "timestamps of a wrong clock could not be corrected; trying again with the next tick");
        }
    }
}

impl Inner {
    /// One look at the Store's clock, so that each process knows of its jumps, and what follows from what is known of clocks.
    async fn clocks_once(&self, looked: &mut bool, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        if *looked && !self.settings.exclusive_store {
            let _ = self.store_time().await?;
        }
        self.look_at_stamps(looked).await?;
        self.stamps_once(stop).await
    }

    /// Once after the start: compares the newest stamps of the Store with the time.
    async fn look_at_stamps(&self, looked: &mut bool) -> Result<(), StoreError> {
        if !*looked {
            let newest = self.newest_stamp().await?;
            self.clocks.found_stamp(newest, self.right_time().await?);
            *looked = true;
        }
        Ok(())
    }

    /// The time by the clock that is ahead of the others, of those that may be asked.
    async fn right_time(&self) -> Result<Timestamp, StoreError> {
        let guarded = self.store_time().await?.1;
        // As the Store itself says it: the earlier of two clocks, by which this process may go, may be the wrong one.
        let (_, said) = self.ports.store.next_schedule().await?;
        Ok(guarded.max(said).max(self.ports.clock.now()))
    }

    /// A few rows by their numbers, newest first, and the leases of edges, which are renewed every few seconds.
    async fn newest_stamp(&self) -> Result<Timestamp, StoreError> {
        let jobs = self.ports.store.list(JobQuery { limit: NEWEST, ..JobQuery::default() }).await?.items;
        let runs = self.ports.store.list_runs(RunQuery { limit: NEWEST, ..RunQuery::default() }).await?.items;
        let edges = self.ports.store.open_edges().await?;
        let of_jobs = jobs.iter().map(|job| job.life.ended_at.unwrap_or(job.life.began_at));
        let of_runs = runs.iter().map(|run| run.ended_at.unwrap_or(run.began_at));
        let of_edges = edges.iter().map(|edge| edge.expires_at - self.settings.edge_ttl);
        Ok(of_jobs.chain(of_runs).chain(of_edges).max().unwrap_or_default())
    }

    /// Does nothing unless stamps are known to be ahead, and the clocks stand.
    pub(crate) async fn stamps_once(&self, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        let Some(suspicion) = self.clocks.may_bring_back(&*self.ports.clock) else { return Ok(()) };
        let every = self.settings.expire_every;
        let Some(mut round) = Round::begin(&self.leadership, stop, Lead::Stamps, every).await? else { return Ok(()) };
        let right = self.right_time().await?;
        // Jobs last: what a schedule or a run starts meanwhile is stamped by the right clock.
        let schedules = self.bring_back_schedules(&mut round, right).await?;
        let runs = self.bring_back_all_runs(&mut round, right).await?;
        let jobs = self.bring_back_jobs(&mut round, right).await?;
        let moved = [jobs, runs, schedules];
        if moved.iter().any(|moved| moved.done > 0) {
            let [jobs, runs, schedules] = moved.map(|moved| moved.done);
            tracing::warn!(jobs, runs, schedules, "timestamps of a clock that was ahead were corrected");
        }
        // What another commit moved meanwhile may have been stamped ahead once more: the next tick looks at it.
        if moved.iter().all(|moved| moved.contended == 0) && round.goes_on().await? {
            self.clocks.brought_back(suspicion);
        }
        Ok(())
    }

    async fn bring_back_schedules(&self, round: &mut Round<'_>, right: Timestamp) -> Result<StampCounts, StoreError> {
        let (mut moved, mut after) = (StampCounts::default(), None);
        while round.goes_on().await? {
            let tenants = self.ports.store.tenants(after.as_ref(), PAGE).await?;
            for (tenant, _) in &tenants {
                moved += self.bring_back_schedules_of(tenant, round, right).await?;
            }
            after = tenants.last().filter(|_| tenants.len() == PAGE).map(|(tenant, _)| tenant.clone());
            if after.is_none() {
                break;
            }
        }
        Ok(moved)
    }

    async fn bring_back_schedules_of(
        &self,
        tenant: &TenantId,
        round: &mut Round<'_>,
        right: Timestamp,
    ) -> Result<StampCounts, StoreError> {
        let (mut moved, mut after): (StampCounts, Option<Arc<str>>) = (StampCounts::default(), None);
        while round.goes_on().await? {
            let page = self.ports.store.list_schedules(tenant, after.as_deref(), PAGE).await?;
            let decided: Vec<DecidedSchedule> =
                page.iter().filter_map(|schedule| schedule.bring_back(right)).map(DecidedSchedule::of).collect();
            let turned = self.commit_turns(decided, right).await?;
            moved += self.restamped(Stamped::Schedule, &turned, |error| *error == Unturned::Conflict);
            after = page.last().filter(|_| page.len() == PAGE).map(|last| last.name.clone());
            if after.is_none() {
                break;
            }
        }
        Ok(moved)
    }

    async fn bring_back_all_runs(&self, round: &mut Round<'_>, right: Timestamp) -> Result<StampCounts, StoreError> {
        let (mut moved, mut after) = (StampCounts::default(), None);
        while round.goes_on().await? {
            let (answers, next) = self.bring_back_runs(after.as_ref(), right).await?;
            moved += self.restamped(Stamped::Run, &answers, |error| *error == RunRefusal::Conflict);
            after = next;
            if after.is_none() {
                break;
            }
        }
        Ok(moved)
    }

    async fn bring_back_jobs(&self, round: &mut Round<'_>, right: Timestamp) -> Result<StampCounts, StoreError> {
        let mut moved = StampCounts::default();
        for state in LIVE {
            let mut cursor = None;
            while round.goes_on().await? {
                let query = JobQuery { state: Some(state), cursor, limit: self.settings.batch_max, ..JobQuery::default() };
                let page = self.ports.store.list(query).await?;
                let ahead = page.items.into_iter().filter(|job| job.may_be_ahead(right)).collect();
                let driven = self.restamp(ahead, right).await?;
                moved += self.restamped(Stamped::Job, &driven, |error| matches!(error, Undriven::Contended));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(moved)
    }

    /// The stamp of its latest event tells what a wrong clock delayed from what was to wait.
    async fn restamp(&self, jobs: Vec<Job>, right: Timestamp) -> Result<Vec<Driven>, StoreError> {
        let ids: Vec<_> = jobs.iter().map(|job| job.request.job_id.clone()).collect();
        let mut inputs = Vec::new();
        // Loaded whole: a listing leaves out payloads, and what waits is offered again.
        for job in self.load_each(&ids).await?.into_iter().filter_map(crate::damage::ReadRow::there) {
            let page = self.ports.store.events(&job.request.job_id, job.life.events.saturating_sub(1)).await?;
            let latest = page.and_then(|page| page.events.last().map(|event| event.at));
            inputs.extend(latest.map(|changed_at| (Arc::new(job), Input::Restamped { changed_at, right })));
        }
        self.drive(inputs).await
    }

    fn restamped<T, E>(&self, what: Stamped, answers: &[Result<T, E>], is_contended: fn(&E) -> bool) -> StampCounts {
        let done = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
        self.metrics.clocks.restamped(what, done);
        let contended = answers.iter().filter(|answer| answer.as_ref().is_err_and(is_contended)).count() as u64;
        StampCounts { done, contended }
    }
}
