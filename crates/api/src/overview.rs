//! Workers and queues.

use std::collections::BTreeMap;

use lockgate_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use crate::name_set::{LanePriorityName, WorkerStatusName};
use crate::time::Time;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkerList)]
pub struct Workers {
    pub workers: Vec<Worker>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Worker {
    pub worker_id: String,
    pub session: String,
    pub pool: String,
    pub topics: Vec<String>,
    pub capabilities: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub slots: u32,
    pub busy: u32,
    /// Absent while nothing was heard of a worker that is attached to another gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_beat_at: Option<Time>,
    /// attached, detached, draining, or elsewhere: attached to another gateway
    pub status: WorkerStatusName,
    /// Slots in use by its own count, at its latest beat.
    pub active_jobs: u32,
    /// What it measured of its machine, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_load: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_utilization: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_load: Option<u32>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueueList)]
pub struct Queues {
    pub queues: Vec<Queue>,
    /// By priority.
    pub dead_letters: BTreeMap<String, u64>,
    /// Jobs that have not ended.
    pub live: u64,
    /// Jobs that ended and are kept.
    pub ended: u64,
    /// Attempts that workers hold.
    pub held: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Queue {
    /// The first choice of its jobs; empty when no pool may take them.
    pub pool: String,
    pub priority: LanePriorityName,
    pub tenant: String,
    /// The topic, and what it requires.
    pub shape: String,
    pub waiting: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Time>,
}

impl From<v1::ListWorkersResponse> for Workers {
    fn from(wire: v1::ListWorkersResponse) -> Self {
        Self { workers: wire.workers.into_iter().map(Worker::from).collect() }
    }
}

impl From<v1::WorkerStatus> for Worker {
    fn from(wire: v1::WorkerStatus) -> Self {
        Self {
            worker_id: wire.worker_id,
            session: wire.session,
            pool: wire.pool,
            topics: wire.topics,
            capabilities: wire.capabilities,
            labels: wire.labels.into_iter().collect(),
            slots: wire.slots,
            busy: wire.busy,
            last_beat_at: (wire.last_beat_ms > 0).then(|| Time::from_millis(wire.last_beat_ms)),
            status: wire.status.into(),
            active_jobs: wire.active_jobs,
            cpu_load: wire.cpu_load,
            gpu_utilization: wire.gpu_utilization,
            memory_load: wire.memory_load,
        }
    }
}

impl From<v1::ListQueuesResponse> for Queues {
    fn from(wire: v1::ListQueuesResponse) -> Self {
        Self {
            queues: wire.queues.into_iter().map(Queue::from).collect(),
            dead_letters: wire.dead_letters.into_iter().collect(),
            live: wire.live,
            ended: wire.ended,
            held: wire.held,
        }
    }
}

impl From<v1::QueueStatus> for Queue {
    fn from(wire: v1::QueueStatus) -> Self {
        Self {
            priority: wire.priority().into(),
            pool: wire.pool,
            tenant: wire.tenant,
            shape: wire.shape,
            waiting: wire.waiting,
            oldest_at: wire.oldest_ms.map(Time::from_millis),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_which_nothing_was_heard_has_no_time() {
        let json = serde_json::to_string(&Worker::from(v1::WorkerStatus::default())).expect("serializable");
        assert!(!json.contains("last_beat_at"), "{json}");
    }
}
