//! The engine's answers on the wire.

use lockgate_core::limits::Limits;
use lockgate_core::time::Timestamp;
use lockgate_engine::{Considered, JobView, LaneView, Progress, Queues, WatchItem, Why, WorkerView};
use lockgate_ports::LogLine;
use lockgate_proto::json_bytes;
use lockgate_proto::v1::{self, explain_job_response, get_job_logs_response, watch_job_response};

pub(super) fn job_view(view: &JobView, limits: &Limits) -> v1::Job {
    v1::Job {
        payload_json: json_bytes(&view.job.request.payload),
        result_json: view.result.as_ref().map(json_bytes).unwrap_or_default(),
        history: view.attempts.iter().map(v1::Attempt::from).collect(),
        progress: view.progress.as_ref().map(progress),
        ..lockgate_proto::job(&view.job, limits)
    }
}

pub(super) fn progress(progress: &Progress) -> v1::Progress {
    v1::Progress { percent: progress.percent, message: progress.message.to_string(), at_ms: progress.at.as_millis() }
}

pub(super) fn watch_item(item: &WatchItem) -> v1::WatchJobResponse {
    let item = match item {
        WatchItem::Event(event) => watch_job_response::Item::Event(event.into()),
        WatchItem::Progress(seen) => watch_job_response::Item::Progress(progress(seen)),
    };
    v1::WatchJobResponse { item: Some(item) }
}

pub(super) fn why(why: Why) -> v1::ExplainJobResponse {
    let considered = |worker: Considered| explain_job_response::Considered {
        worker_id: worker.worker.to_string(),
        verdict: worker.verdict,
        free_slots: worker.free_slots,
    };
    v1::ExplainJobResponse {
        state: v1::JobState::from(why.state).into(),
        summary: why.summary,
        reason: why.reason.to_owned(),
        next_step: why.next_step,
        next_at_ms: why.next_at.map(Timestamp::as_millis),
        rule: why.rule.unwrap_or_default(),
        workers: why.workers.into_iter().map(considered).collect(),
        lane_waiting: why.lane_waiting,
    }
}

pub(super) fn log_line(line: &LogLine) -> get_job_logs_response::Line {
    get_job_logs_response::Line { attempt: line.attempt, at_ms: line.at.as_millis(), line: line.line.to_string() }
}

pub(super) fn worker(view: &WorkerView) -> v1::WorkerStatus {
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
        last_beat_ms: view.last_beat.as_millis(),
        status: view.status.as_str().to_owned(),
    }
}

pub(super) fn queues(queues: Queues) -> v1::ListQueuesResponse {
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
        pool: view.lane.pool.to_string(),
        priority: v1::Priority::from(view.lane.priority).into(),
        tenant: view.lane.tenant.to_string(),
        shape: view.lane.shape.to_string(),
        waiting: view.waiting,
        oldest_ms: view.oldest.map(Timestamp::as_millis),
    }
}
