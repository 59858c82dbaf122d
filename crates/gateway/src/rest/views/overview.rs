//! Workers, queues, and why a job waits.

use std::collections::BTreeMap;

use lockgate_core::ids::JobId;
use lockgate_engine::{LaneView, Queues as EngineQueues, Why as EngineWhy, WorkerView};
use serde::Serialize;
use utoipa::ToSchema;

use super::time;

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Why {
    job_id: String,
    state: &'static str,
    /// One sentence for people.
    summary: String,
    /// Stable code for machines.
    reason: &'static str,
    /// What would start it.
    next_step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// Workers that were considered.
    workers: Vec<Considered>,
    /// Jobs in the same lane, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane_waiting: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Considered {
    worker_id: String,
    /// `fits` or a reason code.
    verdict: String,
    free_slots: u32,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Workers {
    workers: Vec<Worker>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Worker {
    worker_id: String,
    session: String,
    pool: String,
    topics: Vec<String>,
    capabilities: Vec<String>,
    labels: BTreeMap<String, String>,
    slots: u32,
    busy: u32,
    last_beat_at: String,
    /// attached, detached or draining
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Queues {
    queues: Vec<Queue>,
    /// By priority.
    dead_letters: BTreeMap<&'static str, u64>,
    /// Jobs that have not ended.
    live: u64,
    /// Jobs that ended and are kept.
    ended: u64,
    /// Attempts that workers hold.
    held: u64,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Queue {
    pool: String,
    priority: &'static str,
    tenant: String,
    /// The topic, and what it requires.
    shape: String,
    waiting: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_at: Option<String>,
}

impl Why {
    pub(in crate::rest) fn new(id: &JobId, why: EngineWhy) -> Self {
        let considered = |worker: lockgate_engine::Considered| Considered {
            worker_id: worker.worker.to_string(),
            verdict: worker.verdict,
            free_slots: worker.free_slots,
        };
        Self {
            job_id: id.to_string(),
            state: why.state.as_str(),
            summary: why.summary,
            reason: why.reason,
            next_step: why.next_step,
            next_at: why.next_at.map(time),
            rule: why.rule,
            workers: why.workers.into_iter().map(considered).collect(),
            lane_waiting: why.lane_waiting,
        }
    }
}

impl From<Vec<WorkerView>> for Workers {
    fn from(views: Vec<WorkerView>) -> Self {
        Self { workers: views.into_iter().map(Worker::from).collect() }
    }
}

impl From<WorkerView> for Worker {
    fn from(view: WorkerView) -> Self {
        let profile = &view.profile;
        Self {
            worker_id: profile.worker.to_string(),
            session: view.session.to_string(),
            pool: profile.pool.to_string(),
            topics: profile.topics.iter().map(ToString::to_string).collect(),
            capabilities: profile.capabilities.iter().map(ToString::to_string).collect(),
            labels: profile.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            slots: profile.slots,
            busy: u32::try_from(view.busy).unwrap_or(u32::MAX),
            last_beat_at: time(view.last_beat),
            status: view.status.as_str(),
        }
    }
}

impl From<EngineQueues> for Queues {
    fn from(queues: EngineQueues) -> Self {
        Self {
            queues: queues.lanes.into_iter().map(Queue::from).collect(),
            dead_letters: queues.dead_letters.into_iter().map(|(priority, n)| (priority.as_str(), n)).collect(),
            live: queues.live,
            ended: queues.ended,
            held: queues.held,
        }
    }
}

impl From<LaneView> for Queue {
    fn from(view: LaneView) -> Self {
        Self {
            pool: view.lane.pool.to_string(),
            priority: view.lane.priority.as_str(),
            tenant: view.lane.tenant.to_string(),
            shape: view.lane.shape.to_string(),
            waiting: view.waiting,
            oldest_at: view.oldest.map(time),
        }
    }
}
