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
use crate::damage::Found;
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
    /// The first ids, so that a person can check.
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
            done.name(&listing.items);
            if !request.dry_run {
                let (inner, by) = (self.inner.clone(), caller.clone());
                let page = to_the_end(async move { inner.replay_page(&by, listing.items).await }).await??;
                (done.replayed, done.no_room) = (done.replayed + page.replayed, done.no_room + page.refused);
                limited = limited.or(page.limited);
            }
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
    fn name(&mut self, letters: &[DeadLetter]) {
        let room = IDS_MAX.saturating_sub(self.job_ids.len());
        self.job_ids.extend(letters.iter().take(room).map(|letter| letter.job_id.clone()));
    }
}

/// What became of a page of letters.
struct Page {
    /// Got a new life.
    replayed: u64,
    refused: u64,
    limited: Option<Limited>,
}

impl Inner {
    /// Those that neither live again nor were refused: others were faster with them, or their workflows are closed.
    async fn replay_page(self: &Arc<Self>, by: &Caller, letters: Vec<DeadLetter>) -> Result<Page, ApiError> {
        let ids: Vec<JobId> = letters.into_iter().map(|letter| letter.job_id).collect();
        let jobs = self.load_each(&ids).await?.into_iter().filter_map(Found::there).collect();
        let jobs = self.revivable(jobs).await?.into_iter().flatten();
        let returning = self.admit_replays(jobs).await?;
        let replay = |job: Arc<Job>| (job, Input::Replay { actor: by.actor.clone() });
        let driven = self.drive_from(by.source, returning.jobs.into_iter().map(replay).collect()).await?;
        drop(returning.tickets);
        let replayed = driven.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        Ok(Page { replayed, refused: returning.refused, limited: returning.limited })
    }
}
