//! Doorbells: messages that say "look at this row". A ring may be lost or doubled without harm, because it only saves
//! waiting. The same holds for what processes post about their workers: it only improves answers.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::{JobId, RunId, TenantId};
use tokio::sync::{Notify, broadcast};

use crate::registry::{Sighting, Sightings};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bell {
    /// Some lane has work. Workers of one pool may serve jobs of another, so every edge looks.
    Lanes,
    /// The job has new events. A run rings like a job, under its own id, which no client can choose for a job.
    Job(JobId),
}

impl Bell {
    /// The run has changed, or has messages to take.
    pub fn run(id: &RunId) -> Self {
        Self::Job(JobId::new(id.as_str()))
    }

    /// Rows of sessions changed. Rings like a job, under a reserved id.
    pub fn sessions() -> Self {
        Self::Job(JobId::new(SESSIONS))
    }

    /// Whether the id of a bell is that of [`Bell::sessions`].
    pub fn is_sessions(id: &JobId) -> bool {
        id.as_str() == SESSIONS
    }

    /// The job or run of this id has ended. Rung beside the job's own bell, which rings for every event, so that a process
    /// which waits only for the end is not woken by other events.
    pub fn ended(id: &str) -> Self {
        Self::Job(JobId::new(format!("{ENDED}{id}")))
    }

    /// The id of the job or run whose end this bell announces.
    pub fn ended_id(id: &JobId) -> Option<&str> {
        id.as_str().strip_prefix(ENDED)
    }

    /// A schedule was changed by a process that may not be the one that turns schedules. A name too long for the Bus is
    /// found by the next tick.
    pub fn schedule(tenant: &TenantId, name: &str) -> Self {
        Self::Job(JobId::new(format!("{SCHEDULE}{tenant}{BETWEEN}{name}")))
    }

    /// Tenant and name of the schedule that this bell announces.
    pub fn schedule_key(id: &JobId) -> Option<(TenantId, Arc<str>)> {
        let (tenant, name) = id.as_str().strip_prefix(SCHEDULE)?.split_once(BETWEEN)?;
        Some((TenantId::new(tenant), name.into()))
    }
}

/// Prefixes that no client can choose for a job id.
const SESSIONS: &str = "~sessions";
const ENDED: &str = "~ended:";
const SCHEDULE: &str = "~schedule:";
/// Occurs in no tenant's and no schedule's name.
const BETWEEN: char = '\n';

#[async_trait]
pub trait Bus: Send + Sync {
    async fn ring(&self, bells: Vec<Bell>);

    /// Listens for one bell until the ear is dropped.
    fn listen(&self, bell: Bell) -> Ear;

    /// Receives the id of every job that another process rings for.
    fn overhear(&self) -> Overheard;

    /// Posts how the workers attached to this process fare, for other processes. May be lost, like rings.
    async fn post(&self, seen: Vec<Sighting>);

    /// Receives the posts of other processes.
    fn sightings(&self) -> Sightings;

    /// Why rings do not reach other processes now, if they do not.
    fn away(&self) -> Option<String> {
        None
    }
}

/// The jobs that other processes rang for, in batches.
pub struct Overheard(broadcast::Receiver<Arc<[JobId]>>);

impl Overheard {
    pub fn new(rings: broadcast::Receiver<Arc<[JobId]>>) -> Self {
        Self(rings)
    }

    /// The next batch. A slow listener misses some, since rings may be lost. Never ends. Safe to use in `select!`.
    pub async fn next(&mut self) -> Arc<[JobId]> {
        loop {
            match self.0.recv().await {
                Ok(jobs) => return jobs,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

/// Listens for one bell. Rings that come while it is not polled are merged into one.
pub struct Ear {
    notify: Arc<Notify>,
    _until_drop: Box<dyn Send + Sync>,
}

impl Ear {
    /// `until_drop` lives as long as the ear: adapters unsubscribe when it is dropped.
    pub fn new(notify: Arc<Notify>, until_drop: Box<dyn Send + Sync>) -> Self {
        Self { notify, _until_drop: until_drop }
    }

    /// Waits for the next ring. Safe to use in `select!`: a ring is never lost by dropping the future.
    pub async fn heard(&self) {
        self.notify.notified().await;
    }
}
