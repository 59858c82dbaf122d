//! The state of the whole: workers and queues.

use std::sync::Arc;

use lockgate_core::ids::{PoolName, SessionId};
use lockgate_core::lane::{LaneKey, Priority};
use lockgate_core::time::Timestamp;
use lockgate_core::worker::{Load, WorkerProfile};

use crate::Engine;
use crate::error::ApiError;

#[derive(Clone, Debug)]
pub struct WorkerView {
    pub session: SessionId,
    pub profile: Arc<WorkerProfile>,
    pub busy: usize,
    pub load: Load,
    /// Slots in use by its own count: a stopped handler uses its slot until it is gone.
    pub active_jobs: u32,
    pub last_beat: Timestamp,
    pub status: WorkerStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerStatus {
    Attached,
    /// Its stream ended; it may come back.
    Detached,
    /// It takes no more jobs.
    Draining,
    /// It is attached to another process, which alone knows what it does.
    Elsewhere,
}

impl WorkerStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Detached => "detached",
            Self::Draining => "draining",
            Self::Elsewhere => "elsewhere",
        }
    }
}

#[derive(Clone, Debug)]
pub struct LaneView {
    /// The pool that serves it first; none if no pool may.
    pub pool: Option<PoolName>,
    pub lane: LaneKey,
    pub waiting: u64,
    pub oldest: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct Queues {
    pub lanes: Vec<LaneView>,
    pub dead_letters: Vec<(Priority, u64)>,
    /// Jobs that have not ended.
    pub live: u64,
    /// Jobs ended and kept.
    pub ended: u64,
    /// Attempts that workers hold.
    pub held: u64,
}

/// Most lanes of one answer; the deepest come first.
const LANES_MAX: usize = 1_000;

impl Engine {
    pub fn workers(&self) -> Vec<WorkerView> {
        let view = |view: crate::edge::SessionView| WorkerView {
            status: match (view.attached, view.draining) {
                (false, _) => WorkerStatus::Detached,
                (true, true) => WorkerStatus::Draining,
                (true, false) => WorkerStatus::Attached,
            },
            session: view.session,
            profile: view.profile,
            busy: view.busy,
            load: view.load,
            active_jobs: view.active_jobs,
            last_beat: view.heard_at,
        };
        let own = self.inner.edge.views().into_iter().map(view);
        let now = self.inner.ports.clock.now();
        let elsewhere = self.inner.edge.elsewhere().into_iter().map(|(session, profile)| WorkerView {
            session,
            profile,
            busy: 0,
            load: Load::default(),
            active_jobs: 0,
            last_beat: now,
            status: WorkerStatus::Elsewhere,
        });
        own.chain(elsewhere).collect()
    }

    pub async fn queues(&self) -> Result<Queues, ApiError> {
        let totals = self.inner.ports.store.totals().await?;
        let lanes = self.inner.ports.lanes.depths(LANES_MAX).await;
        Ok(Queues {
            lanes: lanes
                .into_iter()
                .map(|d| LaneView { pool: d.pool, lane: d.lane, waiting: d.waiting, oldest: d.oldest.map(|key| key.due_at) })
                .collect(),
            dead_letters: Priority::ALL.into_iter().zip(totals.dead_letters).collect(),
            live: totals.live.iter().sum(),
            ended: totals.ended,
            held: self.inner.edge.held().iter().sum(),
        })
    }
}
