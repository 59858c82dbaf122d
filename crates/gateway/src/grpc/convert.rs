//! The engine's answers on the wire.

use lockgate_api::{ToWire, json_bytes, verdict_to_wire};
use lockgate_core::audit::AuditRow;
use lockgate_core::job::{Job, JobState};
use lockgate_core::time::Timestamp;
use lockgate_core::timeouts::Defaults;
use lockgate_engine::{
    Activated, AttemptProgress, Considered, JobView, LaneView, PoolConsidered, Queues, WatchItem, Why, WorkerView,
};
use lockgate_ports::{BreakerView, ChildJob, KeptLine, Kin, LimitView};
use lockgate_proto::v1::{self, explain_job_response, get_job_logs_response, watch_job_response};

pub(super) fn job_view(view: &JobView, defaults: &Defaults) -> v1::Job {
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
pub(super) fn child(child: &ChildJob) -> v1::ChildOutcome {
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

/// The question a job waits with, if it does.
pub(super) fn approval(job: &Job, payload_hidden: bool) -> Option<v1::Approval> {
    let (request, asked) = (&job.request, job.life.approval.as_ref()?);
    let verdict = job.life.attempt.verdict.as_ref();
    Some(v1::Approval {
        job_id: request.job_id.to_string(),
        topic: request.topic.to_string(),
        submitter: request.actor.to_string(),
        payload_json: if payload_hidden { Default::default() } else { json_bytes(&request.payload) },
        payload_hidden,
        labels: request.labels.clone().into_iter().collect(),
        rule: asked.rule.to_string(),
        reason: verdict.map(|verdict| verdict.reason.to_string()).unwrap_or_default(),
        request_hash: job.hash.to_string(),
        rule_hash: asked.rule_hash.to_string(),
        approvers_needed: asked.terms.approvers,
        approved_by: asked.votes.iter().map(|vote| vote.actor.to_string()).collect(),
        asked_at_ms: asked.asked_at.as_millis(),
        expires_at_ms: asked.expires_at().map(Timestamp::as_millis),
        capability: request.capability.as_deref().unwrap_or_default().to_owned(),
        risk_tags: request.risk_tags.iter().map(ToString::to_string).collect(),
    })
}

pub(super) fn answered(job: &Job) -> v1::AnswerApprovalResponse {
    let asked = job.life.approval.as_ref();
    v1::AnswerApprovalResponse {
        job_id: job.request.job_id.to_string(),
        state: job.state().to_wire().into(),
        approved_by: asked.into_iter().flat_map(|asked| &asked.votes).map(|vote| vote.actor.to_string()).collect(),
        approvers_needed: asked.map_or(0, |asked| asked.terms.approvers),
    }
}

pub(super) fn activated(activated: &Activated) -> v1::ActivatePolicyResponse {
    v1::ActivatePolicyResponse {
        version: activated.version,
        snapshot: activated.snapshot.to_string(),
        unchanged: activated.unchanged,
        recalled: u32::try_from(activated.recalled).unwrap_or(u32::MAX),
    }
}

pub(super) fn audit_row(row: &AuditRow) -> v1::AuditRow {
    let entry = &row.entry;
    v1::AuditRow {
        id: row.id,
        at_ms: entry.at.as_millis(),
        tenant: entry.tenant.to_string(),
        actor: entry.actor.to_string(),
        action: entry.action.as_str().to_owned(),
        subject: entry.subject.to_string(),
        detail_json: json_bytes(&entry.detail),
        source: entry.source().unwrap_or_default(),
    }
}

pub(super) fn breaker(view: &BreakerView) -> v1::Breaker {
    v1::Breaker {
        name: view.name.to_owned(),
        state: view.state.as_str().to_owned(),
        failures: view.failures,
        open_until_ms: view.open_until.map(Timestamp::as_millis),
        last_error: view.last_error.as_deref().unwrap_or_default().to_owned(),
        sharing: view.sharing.as_str().to_owned(),
    }
}

pub(super) fn progress(progress: &AttemptProgress) -> v1::Progress {
    v1::Progress { percent: progress.percent, message: progress.message.to_string(), at_ms: progress.at.as_millis() }
}

pub(super) fn watch_item(item: &WatchItem) -> v1::WatchJobResponse {
    let item = match item {
        WatchItem::Event(event) => watch_job_response::Item::Event(event.to_wire()),
        WatchItem::Progress(seen) => watch_job_response::Item::Progress(progress(seen)),
    };
    v1::WatchJobResponse { item: Some(item) }
}

pub(super) fn why(why: Why) -> v1::ExplainJobResponse {
    v1::ExplainJobResponse {
        state: why.state.to_wire().into(),
        summary: why.summary,
        reason: why.reason.to_string(),
        next_step: why.next_step,
        next_at_ms: why.next_at.map(Timestamp::as_millis),
        rule: why.rule.unwrap_or_default(),
        pools: why.pools.into_iter().map(pool_look).collect(),
        limits: why.limits.iter().map(limit_look).collect(),
        tries: why.tries.as_ref().map(|tries| tries.made),
        tries_max: why.tries.as_ref().map(|tries| tries.max),
        lane_waiting: why.lane_waiting,
    }
}

fn pool_look(look: PoolConsidered) -> explain_job_response::PoolLook {
    let considered = |worker: Considered| explain_job_response::Considered {
        worker_id: worker.worker.to_string(),
        verdict: worker.verdict,
        free_slots: worker.free_slots,
    };
    explain_job_response::PoolLook {
        pool: look.pool.to_string(),
        dispatch: look.dispatch.as_str().to_owned(),
        reason: look.reason.unwrap_or_default(),
        workers: look.workers.into_iter().map(considered).collect(),
        more: look.more as u64,
    }
}

fn limit_look(limit: &LimitView) -> explain_job_response::LimitLook {
    explain_job_response::LimitLook {
        name: limit.key.to_string(),
        max: limit.max,
        held: limit.held,
        full: limit.full,
        again_at_ms: limit.again_at.map(Timestamp::as_millis),
    }
}

pub(super) fn log_line(kept: &KeptLine) -> get_job_logs_response::Line {
    let line = &kept.line;
    get_job_logs_response::Line {
        attempt: line.attempt,
        at_ms: line.at.as_millis(),
        line: line.line.to_string(),
        no: kept.no,
    }
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
        last_beat_ms: view.last_beat.map_or(0, Timestamp::as_millis),
        status: view.status.as_str().to_owned(),
        cpu_load: view.load.cpu,
        gpu_utilization: view.load.gpu,
        memory_load: view.load.memory,
        active_jobs: view.active_jobs,
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
        pool: view.pool.as_ref().map(ToString::to_string).unwrap_or_default(),
        priority: view.lane.priority.to_wire().into(),
        tenant: view.lane.tenant.to_string(),
        shape: view.lane.shape.to_string(),
        waiting: view.waiting,
        oldest_ms: view.oldest.map(Timestamp::as_millis),
    }
}
