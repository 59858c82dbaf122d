//! From gRPC answers to the JSON of the REST contract.

use std::collections::{BTreeMap, HashMap};

use lockgate_proto::v1;

use super::{Json, Queue, Queues, Time, Worker, Workers};

pub(super) fn time(ms: i64) -> Option<Time> {
    Some(Time::from_millis(ms))
}

/// proto3 has no absent text; an empty one means absent.
pub(super) fn present(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
}

pub(super) fn sorted(map: HashMap<String, String>) -> BTreeMap<String, String> {
    map.into_iter().collect()
}

pub(super) fn document(bytes: &[u8]) -> Option<Json> {
    serde_json::from_slice(bytes).ok()
}

/// `PRIORITY_HIGH` → `high`.
fn priority(priority: v1::Priority) -> String {
    let name = priority.as_str_name();
    name.strip_prefix("PRIORITY_").unwrap_or(name).to_lowercase()
}

impl From<v1::ListWorkersResponse> for Workers {
    fn from(response: v1::ListWorkersResponse) -> Self {
        Self { workers: response.workers.into_iter().map(Worker::from).collect() }
    }
}

impl From<v1::WorkerStatus> for Worker {
    fn from(worker: v1::WorkerStatus) -> Self {
        Self {
            worker_id: worker.worker_id,
            session: worker.session,
            pool: worker.pool,
            topics: worker.topics,
            capabilities: worker.capabilities,
            labels: sorted(worker.labels),
            slots: worker.slots,
            busy: worker.busy,
            last_beat_at: time(worker.last_beat_ms),
            status: worker.status,
            active_jobs: worker.active_jobs,
            cpu_load: worker.cpu_load,
            gpu_utilization: worker.gpu_utilization,
            memory_load: worker.memory_load,
        }
    }
}

impl From<v1::ListQueuesResponse> for Queues {
    fn from(response: v1::ListQueuesResponse) -> Self {
        Self {
            queues: response.queues.into_iter().map(Queue::from).collect(),
            dead_letters: response.dead_letters.into_iter().collect(),
            live: response.live,
            ended: response.ended,
            held: response.held,
        }
    }
}

impl From<v1::QueueStatus> for Queue {
    fn from(queue: v1::QueueStatus) -> Self {
        Self {
            priority: priority(queue.priority()),
            pool: queue.pool,
            tenant: queue.tenant,
            shape: queue.shape,
            waiting: queue.waiting,
            oldest_at: queue.oldest_ms.and_then(time),
        }
    }
}
