//! Workers and queues.

use std::collections::BTreeMap;

use lockgate_engine::{LaneView, Queues as EngineQueues, WorkerView};
use serde::Serialize;
use utoipa::ToSchema;

use super::names::{LanePriorityName, WorkerStatusName};
use super::{Name, Time};

#[derive(Serialize, ToSchema)]
#[schema(as = WorkerList)]
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
    /// Absent while nothing was heard of a worker that is attached to another gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_beat_at: Option<Time>,
    /// attached, detached, draining, or elsewhere: attached to another gateway
    status: WorkerStatusName,
    /// Slots in use by its own count, at its latest beat.
    active_jobs: u32,
    /// What it measured of its machine, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_load: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_utilization: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_load: Option<u32>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = QueueList)]
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
    /// The first choice of its jobs; empty when no pool may take them.
    pool: String,
    priority: LanePriorityName,
    tenant: String,
    /// The topic, and what it requires.
    shape: String,
    waiting: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_at: Option<Time>,
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
            last_beat_at: view.last_beat.map(Time),
            status: Name(view.status),
            active_jobs: view.active_jobs,
            cpu_load: view.load.cpu,
            gpu_utilization: view.load.gpu,
            memory_load: view.load.memory,
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
            pool: view.pool.as_ref().map(ToString::to_string).unwrap_or_default(),
            priority: Name(view.lane.priority),
            tenant: view.lane.tenant.to_string(),
            shape: view.lane.shape.to_string(),
            waiting: view.waiting,
            oldest_at: view.oldest.map(Time),
        }
    }
}
