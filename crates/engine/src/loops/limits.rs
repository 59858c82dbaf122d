//! Compares what limits count with the attempts that workers really hold, so that nothing leaks for long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::ids::{AttemptToken, JobId, PoolName, SessionId};
use lockgate_ports::{Hold, StoreError};
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

/// Attempts that were counted when nobody held them. Another process may be waiting for their worker to let go of them and not have
/// told yet: only what is still counted at the next look, and nobody's by then, has leaked.
type Suspects = BTreeSet<AttemptToken>;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut suspects = Suspects::new();
    while tick(&mut stop, inner.settings.limits_every).await {
        if let Err(error) = inner.limits_once(&mut suspects).await {
            inner.health.store_failed(&error);
            tracing::warn!(%error, "limits could not be compared; trying again with the next tick");
        }
    }
}

impl Inner {
    /// Frees what no worker holds. Asked first and compared second: an attempt that begins in between is no leak.
    async fn limits_once(&self, suspects: &mut Suspects) -> Result<(), StoreError> {
        let suspected = std::mem::take(suspects);
        if !self.leads(Lead::Limits, self.settings.limits_every).await? {
            return Ok(());
        }
        let Ok(counted) = self.ports.lanes.holding().await else {
            *suspects = suspected;
            return Ok(());
        };
        if counted.is_empty() {
            return Ok(());
        }
        let mut held: BTreeSet<_> = self.held_by_workers().await?.into_iter().map(|hold| hold.token).collect();
        held.append(&mut self.edge.leaving());
        *suspects = counted.into_iter().filter(|token| !held.contains(token)).collect();
        let leaked: Vec<_> = suspects.intersection(&suspected).cloned().collect();
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

    /// Every attempt that the Store says a worker holds.
    pub(crate) async fn held_by_workers(&self) -> Result<Vec<Hold>, StoreError> {
        let mut rows = self.ports.store.open_sessions().await?;
        rows.extend(self.ports.store.closed_holding().await?);
        let pools: BTreeMap<SessionId, PoolName> = rows.into_iter().map(|row| (row.session, row.profile.pool)).collect();
        let sessions: Vec<SessionId> = pools.keys().cloned().collect();
        let bound = self.ports.store.bound(&sessions).await?;
        let ids: Vec<JobId> = bound.into_iter().map(|(_, id)| id).collect();
        let mut holds = Vec::with_capacity(ids.len());
        for page in ids.chunks(self.settings.batch_max) {
            // One that moved on since is not held, or by another worker that is known here, or begins only now.
            for job in self.ports.store.load(page).await?.into_iter().flatten() {
                let binding = job.life.attempt.binding.as_ref().filter(|_| job.state().is_held());
                if let Some(pool) = binding.and_then(|binding| pools.get(&binding.session)) {
                    holds.push(Hold { lane: job.lane(), pool: pool.clone(), token: job.life.attempt.token.clone() });
                }
            }
        }
        Ok(holds)
    }
}
