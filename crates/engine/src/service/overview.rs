//! The state of the whole: workers and queues.

use std::sync::Arc;

use lockgate_core::ids::{PoolName, SessionId};
use lockgate_core::lane::{LaneKey, Priority};
use lockgate_core::time::Timestamp;
use lockgate_core::worker::{Load, WorkerProfile};
use lockgate_ports::Sighting;

use crate::Engine;
use crate::error::ApiError;
use lockgate_core::edge::{EdgeState, SessionView, StrangerView};

#[derive(Clone, Debug)]
pub struct WorkerView {
    pub session: SessionId,
    pub profile: Arc<WorkerProfile>,
    pub busy: usize,
    pub load: Load,
    /// Slots in use by its own count: a stopped handler uses its slot until it is gone.
    pub active_jobs: u32,
    /// None of one that is attached to another process, of which nothing was heard yet.
    pub last_beat: Option<Timestamp>,
    pub status: WorkerStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerStatus {
    Attached,
    /// Its stream ended; it may come back.
    Detached,
    /// It takes no more jobs.
    Draining,
    /// It is attached to another process, which says every few seconds what it does.
    Elsewhere,
}

impl WorkerView {
    fn elsewhere(view: StrangerView, now: Timestamp) -> Self {
        let seen = view.seen.as_ref().map(|(sighting, _)| sighting);
        Self {
            session: view.session,
            profile: view.profile,
            busy: seen.map_or(0, |seen| seen.busy as usize),
            load: seen.map(|seen| seen.load).unwrap_or_default(),
            active_jobs: seen.map_or(0, |seen| seen.active_jobs),
            last_beat: view.seen.as_ref().map(|(_, ago)| now - *ago),
            status: match seen {
                Some(Sighting { attached: false, .. }) => WorkerStatus::Detached,
                Some(Sighting { draining: true, .. }) => WorkerStatus::Draining,
                _ => WorkerStatus::Elsewhere,
            },
        }
    }
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
        let view = |view: SessionView| WorkerView {
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
            last_beat: Some(view.heard_at),
        };
        let own = self.inner.edge.survey(|edge, _| edge.views()).into_iter().map(view);
        let now = self.inner.ports.clock.now();
        let others = self.inner.edge.ask(|edge, now| edge.elsewhere(now));
        own.chain(others.into_iter().map(|view| WorkerView::elsewhere(view, now))).collect()
    }

    pub async fn queues(&self) -> Result<Queues, ApiError> {
        let totals = self.inner.ports.store.totals().await?;
        let lanes = self.inner.ports.lanes.depths(LANES_MAX).await?;
        Ok(Queues {
            lanes: lanes
                .into_iter()
                .map(|d| LaneView { pool: d.pool, lane: d.lane, waiting: d.waiting, oldest: d.oldest.map(|key| key.due_at) })
                .collect(),
            dead_letters: Priority::ALL.into_iter().zip(totals.dead_letters).collect(),
            live: totals.live.iter().sum(),
            ended: totals.ended,
            held: self.inner.edge.look(EdgeState::held).iter().sum(),
        })
    }
}
