//! Doorbells: "look here". A ring may be lost or doubled and never matters; it only saves waiting. So it is with what processes
//! post of their workers: it only makes answers better.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::{JobId, RunId, TenantId};
use tokio::sync::{Notify, broadcast};

use crate::registry::{Sighting, Sightings};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bell {
    /// Some lane has work. Workers of one pool may serve the jobs of another, so every edge looks.
    Lanes,
    /// The job has new events. A run rings like a job, under its own id: no client can choose such an id for a job.
    Job(JobId),
}

impl Bell {
    /// The run has changed, or has news to hear.
    pub fn run(id: &RunId) -> Self {
        Self::Job(JobId::new(id.as_str()))
    }

    /// Rows of sessions changed. Rings like a job too, under a reserved name.
    pub fn sessions() -> Self {
        Self::Job(JobId::new(SESSIONS))
    }

    /// Whether the id of a bell is the one of [`Bell::sessions`].
    pub fn is_sessions(id: &JobId) -> bool {
        id.as_str() == SESSIONS
    }

    /// The job or run of this id has ended. Rung beside the bell of the job itself, which rings for every event: a process that
    /// waits for the end alone is not woken by the others.
    pub fn ended(id: &str) -> Self {
        Self::Job(JobId::new(format!("{ENDED}{id}")))
    }

    /// The id of the job or run whose end this bell tells of.
    pub fn ended_id(id: &JobId) -> Option<&str> {
        id.as_str().strip_prefix(ENDED)
    }

    /// The schedule was changed by a process that may not be the one that turns schedules. Names that are too long for a Bus
    /// to carry are found by the next tick.
    pub fn schedule(tenant: &TenantId, name: &str) -> Self {
        Self::Job(JobId::new(format!("{SCHEDULE}{tenant}{BETWEEN}{name}")))
    }

    /// Tenant and name of the schedule that this bell tells of.
    pub fn schedule_key(id: &JobId) -> Option<(TenantId, Arc<str>)> {
        let (tenant, name) = id.as_str().strip_prefix(SCHEDULE)?.split_once(BETWEEN)?;
        Some((TenantId::new(tenant), name.into()))
    }
}

/// No client can choose a job id that begins like these.
const SESSIONS: &str = "~sessions";
const ENDED: &str = "~ended:";
const SCHEDULE: &str = "~schedule:";
/// In no tenant's and no schedule's name.
const BETWEEN: char = '\n';

#[async_trait]
pub trait Bus: Send + Sync {
    async fn ring(&self, bells: Vec<Bell>);

    /// Listens for one bell until the ear is dropped.
    fn listen(&self, bell: Bell) -> Ear;

    /// Hears of every job that another process rings for.
    fn overhear(&self) -> Overheard;

    /// Tells other processes how workers fare that are attached to this one. May be lost, as rings may.
    async fn post(&self, seen: Vec<Sighting>);

    /// Hears what other processes post.
    fn sightings(&self) -> Sightings;

    /// Why rings do not reach other processes now, if they do not.
    fn away(&self) -> Option<String> {
        None
    }
}

/// Jobs that other processes rang for, in batches.
pub struct Overheard(broadcast::Receiver<Arc<[JobId]>>);

impl Overheard {
    pub fn new(rings: broadcast::Receiver<Arc<[JobId]>>) -> Self {
        Self(rings)
    }

    /// The next batch. A slow listener misses some: rings may be lost. Never ends. Safe to use in `select!`.
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

/// Hears rings of one bell; rings that come while the ear is not polled are kept as one.
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
