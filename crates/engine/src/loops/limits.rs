//! Compares what limits count with the attempts that workers really hold, so that nothing leaks for long and nothing runs uncounted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::ids::{AttemptToken, JobId, PoolName, SessionId};
use lockgate_core::pools::Pools;
use lockgate_ports::{Hold, SessionRow, StoreError};
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;
use crate::damage::Found;

/// What the last look found. Another process may be about to say something that explains it: only what is found again at the next
/// look is wrong.
#[derive(Default)]
struct Doubts {
    /// Attempts that were counted when nobody held them. Their worker may be letting go of them.
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
        if !self.leads(Lead::Limits, self.settings.limits_every).await? {
            return Ok(());
        }
        let Ok(counted) = self.ports.lanes.holding().await else {
            *doubts = before;
            return Ok(());
        };
        let counted: BTreeSet<AttemptToken> = counted.into_iter().collect();
        let open = self.ports.store.open_sessions().await?;
        let (held, unreadable) = self.held_by_these(&open).await?;
        let tokens: BTreeSet<AttemptToken> = held.iter().map(|hold| hold.token.clone()).collect();
        doubts.uncounted = tokens.difference(&counted).cloned().collect();
        self.count_missed(held, &before.uncounted, &doubts.uncounted).await;
        let Some(leaving) = self.edge.leaving(&open).filter(|_| !unreadable) else {
            // Somebody whom nobody here can hear may be waiting for a worker to let go, or hold what nobody here can read.
            doubts.over = before.over;
            return Ok(());
        };
        doubts.over = counted.into_iter().filter(|token| !tokens.contains(token) && !leaving.contains(token)).collect();
        let leaked: Vec<_> = doubts.over.intersection(&before.over).cloned().collect();
        if leaked.is_empty() {
            return Ok(());
        }
        tracing::warn!(attempts = leaked.len(), "limits counted attempts that are over; they are freed");
        self.metrics.sharing.leaked(leaked.len());
        if self.ports.lanes.release(leaked).await {
            self.wake.dispatch.notify_one();
        }
        Ok(())
    }

    /// Whoever dispatched these died before it told the lanes. One that ends at this moment is found to be over at the next looks.
    async fn count_missed(&self, held: Vec<Hold>, before: &BTreeSet<AttemptToken>, now: &BTreeSet<AttemptToken>) {
        let routing = self.routing();
        let missed = |hold: &Hold| now.contains(&hold.token) && before.contains(&hold.token);
        let missed: Vec<Hold> = held.into_iter().filter(|hold| missed(hold) && is_limited(&routing.pools, hold)).collect();
        if missed.is_empty() {
            return;
        }
        tracing::warn!(attempts = missed.len(), "attempts ran that no limit counted; they are counted now");
        self.metrics.sharing.uncounted(missed.len());
        self.ports.lanes.hold(missed).await;
    }

    /// Every attempt that the Store says a worker holds.
    pub(crate) async fn held_by_workers(&self) -> Result<Vec<Hold>, StoreError> {
        Ok(self.held_by_these(&self.ports.store.open_sessions().await?).await?.0)
    }

    /// What these sessions hold by the Store, and those that are closed; and whether some of it cannot be read.
    async fn held_by_these(&self, open: &[SessionRow]) -> Result<(Vec<Hold>, bool), StoreError> {
        let closed = self.ports.store.closed_holding().await?;
        let pool = |row: &SessionRow| (row.session.clone(), row.profile.pool.clone());
        let pools: BTreeMap<SessionId, PoolName> = open.iter().chain(&closed).map(pool).collect();
        let sessions: Vec<SessionId> = pools.keys().cloned().collect();
        let bound = self.ports.store.bound(&sessions).await?;
        let ids: Vec<JobId> = bound.into_iter().map(|(_, id)| id).collect();
        let (mut holds, mut unreadable) = (Vec::with_capacity(ids.len()), false);
        for page in ids.chunks(self.settings.batch_max) {
            // One that moved on since, or whose result waits to be checked, is not held, or by another worker that is known here, or
            // begins only now.
            for found in self.load_each(page).await? {
                unreadable |= matches!(found, Found::Unreadable);
                let Some(job) = found.there() else { continue };
                if let Some(pool) = job.holder().and_then(|binding| pools.get(&binding.session)) {
                    holds.push(Hold { lane: job.lane(), pool: pool.clone(), token: job.life.attempt.token.clone() });
                }
            }
        }
        Ok((holds, unreadable))
    }
}

/// Whether anything bounds what is held. Lanes keep nothing of the rest.
fn is_limited(pools: &Pools, hold: &Hold) -> bool {
    let bounded = pools.pool(&hold.pool).is_some_and(|pool| pool.max_concurrent.is_some());
    bounded || !pools.limits(&hold.lane).is_empty()
}
