//! Workers and queues.

use lockgate_api::ToWire;
use lockgate_core::time::Timestamp;
use lockgate_engine::{LaneView, Queues, WorkerView};
use lockgate_proto::v1;

pub(crate) fn workers(views: &[WorkerView]) -> v1::ListWorkersResponse {
    v1::ListWorkersResponse { workers: views.iter().map(worker).collect() }
}

fn worker(view: &WorkerView) -> v1::WorkerStatus {
    let profile = &view.profile;
    v1::WorkerStatus {
        worker_id: profile.worker.to_string(),
        session: view.session.to_string(),
        pool: profile.pool.to_string(),
        topics: profile.topics.iter().map(ToString::to_string).collect(),
        capabilities: profile.capabilities.iter().map(ToString::to_string).collect(),
        labels: profile.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        slots: profile.slots,
        busy: u32::try_from(view.busy).unwrap_or(u32::MAX),
        last_beat_ms: view.last_beat.map_or(0, Timestamp::as_millis),
        status: view.status.as_str().to_owned(),
        cpu_load: view.load.cpu,
        gpu_utilization: view.load.gpu,
        memory_load: view.load.memory,
        active_jobs: view.active_jobs,
    }
}

pub(crate) fn queues(queues: Queues) -> v1::ListQueuesResponse {
    v1::ListQueuesResponse {
        queues: queues.lanes.iter().map(queue).collect(),
        dead_letters: queues.dead_letters.into_iter().map(|(p, n)| (p.as_str().to_owned(), n)).collect(),
        live: queues.live,
        ended: queues.ended,
        held: queues.held,
    }
}

fn queue(view: &LaneView) -> v1::QueueStatus {
    v1::QueueStatus {
        pool: view.pool.as_ref().map(ToString::to_string).unwrap_or_default(),
        priority: view.lane.priority.to_wire().into(),
        tenant: view.lane.tenant.to_string(),
        shape: view.lane.shape.to_string(),
        waiting: view.waiting,
        oldest_ms: view.oldest.map(Timestamp::as_millis),
    }
}

#[cfg(test)]
mod tests {
    use lockgate_api::view::WorkerStatusName;
    use lockgate_engine::WorkerStatus;

    #[test]
    fn the_document_names_every_status_of_a_worker() {
        let name = |status: WorkerStatus| match status {
            WorkerStatus::Attached | WorkerStatus::Detached | WorkerStatus::Draining | WorkerStatus::Elsewhere => {
                status.as_str()
            }
        };
        let all = [WorkerStatus::Attached, WorkerStatus::Detached, WorkerStatus::Draining, WorkerStatus::Elsewhere];
        assert!(WorkerStatusName::all().eq(all.map(name)));
    }
}
