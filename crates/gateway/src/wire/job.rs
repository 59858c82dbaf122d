//! Jobs and what happens to them.

use lockgate_api::{ToWire, json_bytes, verdict_to_wire};
use lockgate_core::job::{DeadLetter, Job, JobState};
use lockgate_core::timeouts::Defaults;
use lockgate_engine::{AttemptProgress, JobView, Replayed, Submitted, WatchItem};
use lockgate_ports::{ChildJob, Cursor, KeptLine, Kin, Listing};
use lockgate_proto::v1::{self, get_job_logs_response, watch_job_response};

use super::next;

pub(crate) fn accepted(submitted: &Submitted, ack: &str) -> v1::SubmitJobResponse {
    v1::SubmitJobResponse {
        job_id: submitted.job_id.to_string(),
        state: submitted.state.to_wire().into(),
        ack: ack.to_owned(),
        existing: submitted.existing,
    }
}

pub(crate) fn jobs(listing: &Listing<Job>, defaults: &Defaults) -> v1::ListJobsResponse {
    v1::ListJobsResponse {
        jobs: listing.items.iter().map(|job| lockgate_api::job(job, defaults)).collect(),
        next_cursor: next(listing.next),
    }
}

pub(crate) fn job_view(view: &JobView, defaults: &Defaults) -> v1::Job {
    let life = &view.job.life;
    v1::Job {
        payload_json: if view.hidden { Default::default() } else { json_bytes(&view.job.request.payload) },
        payload_hidden: view.hidden,
        result_json: view.result.as_ref().map(json_bytes).unwrap_or_default(),
        history: view.attempts.iter().map(ToWire::to_wire).collect(),
        progress: view.progress.as_ref().map(progress),
        verdict: life.attempt.verdict.as_deref().map(verdict_to_wire),
        approval: life.approval.as_ref().map(ToWire::to_wire),
        output: life.output.as_ref().map(ToWire::to_wire),
        children: view.kin.as_ref().map(|kin| children(&view.job, kin)),
        ..lockgate_api::job(&view.job, defaults)
    }
}

fn children(job: &Job, kin: &Kin) -> v1::job::Children {
    let barrier = job.barrier();
    v1::job::Children {
        total: kin.total,
        live: kin.live,
        waits_until_ms: barrier.map(|barrier| barrier.until.as_millis()),
        on_timeout: barrier.map(|barrier| barrier.on_timeout.to_string()).unwrap_or_default(),
    }
}

/// A child as its parent sees it.
pub(crate) fn child(child: &ChildJob) -> v1::ChildOutcome {
    let (request, life) = (&child.job.request, &child.job.life);
    let failed = life.last_error.as_ref().filter(|_| life.state.is_terminal() && life.state != JobState::Succeeded);
    v1::ChildOutcome {
        key: request.child_of.as_ref().map(|of| of.key.to_string()).unwrap_or_default(),
        job_id: request.job_id.to_string(),
        state: life.state.to_wire().into(),
        result_json: child.result.as_ref().map(json_bytes).unwrap_or_default(),
        failure: failed.map(ToWire::to_wire),
    }
}

pub(crate) fn approvals(jobs: &[Job], payload_hidden: bool, cursor: Option<Cursor>) -> v1::ListApprovalsResponse {
    v1::ListApprovalsResponse {
        approvals: jobs.iter().filter_map(|job| lockgate_api::approval(job, payload_hidden)).collect(),
        next_cursor: next(cursor),
    }
}

pub(crate) fn dead_letters(listing: &Listing<DeadLetter>) -> v1::ListDeadLettersResponse {
    v1::ListDeadLettersResponse {
        dead_letters: listing.items.iter().map(ToWire::to_wire).collect(),
        next_cursor: next(listing.next),
    }
}

pub(crate) fn replayed(replayed: &Replayed) -> v1::ReplayDeadLettersResponse {
    v1::ReplayDeadLettersResponse {
        matched: replayed.matched,
        replayed: replayed.replayed,
        no_room: replayed.no_room,
        left_out: replayed.left_out,
        job_ids: replayed.job_ids.iter().map(ToString::to_string).collect(),
    }
}

pub(crate) fn progress(progress: &AttemptProgress) -> v1::Progress {
    v1::Progress { percent: progress.percent, message: progress.message.to_string(), at_ms: progress.at.as_millis() }
}

pub(crate) fn watch_item(item: &WatchItem) -> v1::WatchJobResponse {
    let item = match item {
        WatchItem::Event(event) => watch_job_response::Item::Event(event.to_wire()),
        WatchItem::Progress(seen) => watch_job_response::Item::Progress(progress(seen)),
    };
    v1::WatchJobResponse { item: Some(item) }
}

pub(crate) fn logs(lines: &[KeptLine]) -> v1::GetJobLogsResponse {
    v1::GetJobLogsResponse { lines: lines.iter().map(log_line).collect() }
}

pub(crate) fn log_line(kept: &KeptLine) -> get_job_logs_response::Line {
    let line = &kept.line;
    get_job_logs_response::Line {
        attempt: line.attempt,
        at_ms: line.at.as_millis(),
        line: line.line.to_string(),
        no: kept.no,
    }
}
