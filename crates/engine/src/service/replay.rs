//! Replay: dead jobs get a new life, one or many, at a bounded rate.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{DeadLetter, Input, Job};
use lockgate_core::quotas::Limited;
use lockgate_core::request::Caller;
use lockgate_ports::DeadLetterQuery;
use tokio::time::Instant;

use super::read::check_reach;
use super::to_the_end;
use crate::damage::ReadRow;
use crate::error::ApiError;
use crate::{Engine, Inner};

#[derive(Clone, Debug, Default)]
pub struct ReplayRequest {
    /// Which dead letters; the cursor and limit of the query are not used.
    pub filter: DeadLetterQuery,
    /// Only say what would be replayed.
    pub dry_run: bool,
    /// Jobs a second; none is as fast as possible.
    pub rate: Option<u32>,
    /// At most this many.
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Replayed {
    pub matched: u64,
    pub replayed: u64,
    /// Had no room: within their tenant's quota, or under a ceiling.
    pub no_room: u64,
    /// Not to be replayed: jobs of runs, undos and jobs of closed workflows, and those that others were faster with.
    pub left_out: u64,
    /// The first ids of the others, so that a person can check.
    pub job_ids: Vec<JobId>,
}

/// Most ids named in one answer.
const IDS_MAX: usize = 1_000;
/// Most jobs of one request when none is named: a request must end.
const REPLAY_MAX: usize = 100_000;
const PAGE: usize = 500;

impl Engine {
    pub async fn replay_one(&self, caller: &Caller, id: &JobId) -> Result<Job, ApiError> {
        let job = self.inner.find(caller, id).await?;
        if let Some(Err(closed)) = self.inner.revivable(vec![Job::clone(&job)]).await?.pop() {
            return Err(ApiError::State(closed));
        }
        let input = Input::Replay { actor: caller.actor.clone() };
        let returning = self.inner.admit_replays([Job::clone(&job)]).await?;
        if let Some(limited) = returning.limited {
            return Err(ApiError::Limited(limited));
        }
        let replayed = self.inner.clone().drive_one(caller, job, input).await?;
        Ok(Job::clone(&replayed))
    }

    pub async fn replay(&self, caller: &Caller, request: ReplayRequest) -> Result<Replayed, ApiError> {
        check_reach(caller, request.filter.tenant.as_ref())?;
        let limit = request.limit.unwrap_or(REPLAY_MAX).min(REPLAY_MAX);
        let page = request.rate.map_or(PAGE, |rate| (rate as usize).clamp(1, PAGE));
        let (mut done, mut limited) = (Replayed::default(), None);
        let mut query = DeadLetterQuery { cursor: None, ..request.filter.clone() };
        let began = Instant::now();
        loop {
            let left = limit.saturating_sub(usize::try_from(done.matched).unwrap_or(usize::MAX));
            query.limit = page.min(left);
            if query.limit == 0 {
                break;
            }
            let listing = self.inner.ports.store.dead_letters(query.clone()).await?;
            done.matched += listing.items.len() as u64;
            let (inner, by, dry_run) = (self.inner.clone(), caller.clone(), request.dry_run);
            let page = to_the_end(async move { inner.replay_page(&by, listing.items, dry_run).await }).await??;
            let short = done.add(page);
            limited = limited.or(short);
            query.cursor = listing.next;
            if query.cursor.is_none() {
                break;
            }
            if let Some(rate) = request.rate.filter(|_| !request.dry_run) {
                tokio::time::sleep_until(began + Duration::from_secs_f64(done.matched as f64 / f64::from(rate.max(1))))
                    .await;
            }
        }
        // Where nobody found room, the answer says when to come back.
        limited.filter(|_| done.replayed == 0).map_or(Ok(done), |limited| Err(ApiError::Limited(limited)))
    }
}

impl Replayed {
    /// Why some found no room, if any did not.
    fn add(&mut self, page: ReplayedPage) -> Option<Limited> {
        let room = IDS_MAX.saturating_sub(self.job_ids.len());
        self.job_ids.extend(page.fit.into_iter().take(room));
        self.left_out += page.left_out;
        self.replayed += page.replayed;
        self.no_room += page.refused;
        page.limited
    }
}

/// What became of a page of letters.
struct ReplayedPage {
    /// Those that can be replayed.
    fit: Vec<JobId>,
    left_out: u64,
    /// Got a new life.
    replayed: u64,
    refused: u64,
    limited: Option<Limited>,
}

impl Inner {
    /// A dry run ends where something would be done.
    async fn replay_page(
        self: &Arc<Self>,
        by: &Caller,
        letters: Vec<DeadLetter>,
        dry_run: bool,
    ) -> Result<ReplayedPage, ApiError> {
        let ids: Vec<JobId> = letters.into_iter().map(|letter| letter.job_id).collect();
        let jobs = self.load_each(&ids).await?.into_iter().filter_map(ReadRow::there).collect();
        let open = if dry_run { self.in_open_sagas(jobs).await? } else { self.revivable(jobs).await? };
        let jobs: Vec<Job> = open.into_iter().flatten().filter(|job| job.replayable().is_ok()).collect();
        let fit: Vec<JobId> = jobs.iter().map(|job| job.request.job_id.clone()).collect();
        let left_out = (ids.len() - fit.len()) as u64;
        let page = ReplayedPage { fit, left_out, replayed: 0, refused: 0, limited: None };
        if dry_run {
            return Ok(page);
        }
        let returning = self.admit_replays(jobs).await?;
        let replay = |job: Arc<Job>| (job, Input::Replay { actor: by.actor.clone() });
        let driven = self.drive_from(by.source, returning.jobs.into_iter().map(replay).collect()).await?;
        drop(returning.tickets);
        let replayed = driven.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        // Somebody was faster, or the Store does not take it.
        let left_out = left_out + driven.len() as u64 - replayed;
        Ok(ReplayedPage { replayed, left_out, refused: returning.refused, limited: returning.limited, ..page })
    }
}
