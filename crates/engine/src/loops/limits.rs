//! Compares what limits count with the attempts that workers really hold, so that nothing leaks for long and nothing runs uncounted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::ids::{AttemptToken, JobId, PoolName, SessionId};
use lockgate_core::job::JobEvent;
use lockgate_core::pools::Pools;
use lockgate_ports::{Hold, SessionRow, StoreError};
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;
use crate::damage::ReadRow;

/// Histories that are read to learn who ended attempts, one by one: what goes beyond is found by the next looks.
const HISTORIES_MAX: usize = 1_000;

/// An attempt that a worker held when the Store was asked.
pub(crate) struct HeldLimit {
    hold: Hold,
    job_id: JobId,
    no: u32,
    /// How much of its job's history was there by then.
    events: u64,
}

impl HeldLimit {
    /// As the lanes are told of it.
    pub(crate) fn hold(&self) -> Hold {
        self.hold.clone()
    }
}

/// What the last look found. Another process may be about to say something that explains it: only what is found again at the next
/// look is wrong.
#[derive(Default)]
struct Doubts {
    /// Attempts that were counted while no session held them. Their worker may be letting go of them.
    over: BTreeSet<AttemptToken>,
    /// Attempts that were held when no limit counted them. The lanes may not have been told yet.
    uncounted: BTreeSet<AttemptToken>,
}

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut doubts = Doubts::default();
    while tick(&mut stop, inner.settings.limits_every).await {
        if let Err(error) = inner.limits_once(&mut doubts).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("limits");
            tracing::warn!(%error, "limits could not be compared; trying again with the next tick");
        }
    }
}

impl Inner {
    /// Counts what runs uncounted, and frees what no worker holds. The lanes are asked first and compared second: an attempt that
    /// begins in between is no leak.
    async fn limits_once(&self, doubts: &mut Doubts) -> Result<(), StoreError> {
        let before = std::mem::take(doubts);
        if !self.leadership.leads(Lead::Limits, self.settings.limits_every).await? {
            return Ok(());
        }
        let Ok(counted) = self.ports.lanes.holding().await else {
            *doubts = before;
            return Ok(());
        };
        let counted: BTreeSet<AttemptToken> = counted.into_iter().collect();
        let open = self.ports.store.open_sessions().await?;
        let (held, unreadable) = self.held_by_these(&open).await?;
        let tokens: BTreeSet<AttemptToken> = held.iter().map(|bound| bound.hold.token.clone()).collect();
        doubts.uncounted = tokens.difference(&counted).cloned().collect();
        self.count_missed(held, &before.uncounted, &doubts.uncounted).await;
        let leaving = self.edge.ask(|edge, now| edge.leaving(open.iter().map(|row| (&row.session, row.epoch)), now));
        let Some(leaving) = leaving.filter(|_| !unreadable) else {
            // A process that cannot be heard here may be waiting for a worker to let go, or hold a row that cannot be read here.
            doubts.over = before.over;
            return Ok(());
        };
        doubts.over = counted.into_iter().filter(|token| !tokens.contains(token) && !leaving.contains(token)).collect();
        let leaked: Vec<_> = doubts.over.intersection(&before.over).cloned().collect();
        if leaked.is_empty() {
            return Ok(());
        }
        tracing::warn!(attempts = leaked.len(), "concurrency limits held ended attempts; released");
        self.metrics.sharing.leaked(leaked.len());
        if self.ports.lanes.release(leaked).await {
            self.wake.dispatch.notify_one();
        }
        Ok(())
    }

    /// The process that dispatched these died before it told the lanes.
    async fn count_missed(&self, held: Vec<HeldLimit>, before: &BTreeSet<AttemptToken>, now: &BTreeSet<AttemptToken>) {
        let routing = self.routing();
        let missed = |bound: &HeldLimit| {
            let token = &bound.hold.token;
            now.contains(token) && before.contains(token) && is_limited(&routing.pools, &bound.hold)
        };
        let missed: Vec<HeldLimit> = held.into_iter().filter(missed).collect();
        if missed.is_empty() {
            return;
        }
        tracing::warn!(attempts = missed.len(), "concurrency limits missed running attempts; counted now");
        self.metrics.sharing.uncounted(missed.len());
        self.ports.lanes.hold(missed.iter().map(HeldLimit::hold).collect()).await;
        self.free_ended(missed).await;
    }

    /// If an attempt ended between our read of the Store and `hold`, its release came first, so the slot that was just counted
    /// would leak. Only attempts that their worker ended are freed here. One that was told to stop may still run, wherever its
    /// worker is attached, and is freed when the worker confirms its end. If that came too early, the next rounds find the leak.
    pub(crate) async fn free_ended(&self, mut counted: Vec<HeldLimit>) {
        let routing = self.routing();
        let mut seen = BTreeSet::new();
        counted.retain(|bound| is_limited(&routing.pools, &bound.hold) && seen.insert(bound.hold.token.clone()));
        let mut histories = HISTORIES_MAX;
        for page in counted.chunks(self.settings.batch_max) {
            match self.ended_of(page, &mut histories).await {
                Ok(ended) => self.free_limits(ended).await,
                Err(error) => {
                    self.health.store_failed(&error);
                    tracing::warn!(%error, "recount of concurrency limits could not read ended attempts; the next round finds them");
                    return;
                }
            }
        }
    }

    /// Those of these attempts that their workers ended.
    async fn ended_of(&self, page: &[HeldLimit], histories: &mut usize) -> Result<Vec<AttemptToken>, StoreError> {
        let ids: Vec<JobId> = page.iter().map(|bound| bound.job_id.clone()).collect();
        let mut ended = Vec::new();
        for (bound, found) in page.iter().zip(self.load_each(&ids).await?) {
            let token = &bound.hold.token;
            let Some(job) = found.there() else { continue };
            if job.holder().is_some() && job.life.attempt.token == *token {
                continue;
            }
            // Most of them, and their rows tell it.
            let over = job.was_done_by(token) || (*histories > 0 && self.is_told_by_history(bound, histories).await?);
            ended.extend(over.then(|| token.clone()));
        }
        Ok(ended)
    }

    /// Whether the history says that its worker ended the attempt after the Store was asked.
    async fn is_told_by_history(&self, bound: &HeldLimit, histories: &mut usize) -> Result<bool, StoreError> {
        *histories -= 1;
        let history = self.ports.store.events(&bound.job_id, bound.events).await;
        let own_word = |event: &JobEvent| event.about() == bound.no && event.is_from_worker();
        match history {
            Ok(page) => Ok(page.is_some_and(|page| page.events.iter().any(own_word))),
            // Nothing is concluded from a row that cannot be read.
            Err(error) if error.is_damage() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Every attempt that the Store says a worker holds.
    pub(crate) async fn held_by_workers(&self) -> Result<Vec<HeldLimit>, StoreError> {
        Ok(self.held_by_these(&self.ports.store.open_sessions().await?).await?.0)
    }

    /// What these sessions hold by the Store, and those that are closed; and whether some of it cannot be read.
    async fn held_by_these(&self, open: &[SessionRow]) -> Result<(Vec<HeldLimit>, bool), StoreError> {
        let closed = self.ports.store.closed_holding().await?;
        let pool = |row: &SessionRow| (row.session.clone(), row.profile.pool.clone());
        let pools: BTreeMap<SessionId, PoolName> = open.iter().chain(&closed).map(pool).collect();
        let sessions: Vec<SessionId> = pools.keys().cloned().collect();
        let bound = self.ports.store.bound(&sessions).await?;
        let ids: Vec<JobId> = bound.into_iter().map(|(_, id)| id).collect();
        let (mut held, mut unreadable) = (Vec::with_capacity(ids.len()), false);
        for page in ids.chunks(self.settings.batch_max) {
            // One that moved on since, or whose result waits to be checked, is not held, or by another worker that is known here, or
            // begins only now.
            for found in self.load_each(page).await? {
                unreadable |= matches!(found, ReadRow::Unreadable);
                let Some(job) = found.there() else { continue };
                if let Some(pool) = job.holder().and_then(|binding| pools.get(&binding.session)) {
                    let hold = Hold { lane: job.lane(), pool: pool.clone(), token: job.life.attempt.token.clone() };
                    let (no, events) = (job.life.attempt.no, job.life.events);
                    held.push(HeldLimit { hold, job_id: job.request.job_id.clone(), no, events });
                }
            }
        }
        Ok((held, unreadable))
    }
}

/// Whether anything bounds what is held. Lanes keep nothing of the rest.
fn is_limited(pools: &Pools, hold: &Hold) -> bool {
    let bounded = pools.pool(&hold.pool).is_some_and(|pool| pool.max_concurrent.is_some());
    bounded || !pools.limits(&hold.lane).is_empty()
}
