use lockgate_proto::v1;
use lockgate_proto::v1::explain_job_response as looked;

use super::{at, pairs, text, texts};

pub(crate) fn submitted() -> v1::SubmitJobResponse {
    v1::SubmitJobResponse { job_id: text("a"), state: v1::JobState::Scheduled.into(), ack: text("fsynced"), existing: true }
}

pub(crate) fn job() -> v1::Job {
    v1::Job {
        job_id: text("a"),
        tenant: text("acme"),
        actor: text("ann"),
        topic: text("job.deploy"),
        payload_json: r#"{"a":[1.5,null,"é"]}"#.into(),
        priority: v1::Priority::High.into(),
        labels: pairs(&[("z", "1"), ("b", "2")]),
        env: pairs(&[("E", "v")]),
        idempotency_key: text("k"),
        max_attempts: 3,
        timeout_ms: 30_000,
        requires: texts(&["gpu"]),
        trace_id: text("t"),
        state: v1::JobState::OutputQuarantined.into(),
        phase: v1::Phase::Deadletter.into(),
        life: 2,
        attempts: 4,
        failures: 1,
        submitted_at_ms: at(0),
        due_at_ms: Some(at(1)),
        deadline_at_ms: Some(at(2)),
        ended_at_ms: Some(at(3)),
        last_error: Some(failure()),
        result_json: "null".into(),
        history: vec![attempt(), v1::Attempt { no: 4, ..v1::Attempt::default() }],
        progress: Some(progress()),
        request_hash: text("00ff"),
        capability: text("deploy"),
        risk_tags: texts(&["money", "outage"]),
        actor_type: text("person"),
        platform_labels: pairs(&[("safety_bypassed", "true")]),
        verdict: Some(verdict()),
        approval: Some(asked()),
        output: Some(output()),
        concurrency_key: text("c"),
        payload_hidden: true,
        parent_job_id: text("p"),
        child_key: text("first"),
        children: Some(v1::job::Children { total: 5, live: 2, waits_until_ms: Some(at(4)), on_timeout: text("review") }),
        actor_verified: true,
        retry: Some(v1::RetryPolicy {
            base_ms: Some(1_000),
            factor_percent: Some(200),
            cap_ms: Some(30_000),
            jitter_percent: Some(50),
            total_ms: Some(3_600_000),
            non_retryable: texts(&["declined"]),
            losses: Some(6),
        }),
        losses: 2,
        discarded: Some(discard()),
    }
}

/// What lists carry of one job, and one with nothing that may be absent.
pub(crate) fn listed() -> v1::ListJobsResponse {
    let brief = v1::Job { verdict: None, approval: None, output: None, progress: None, children: None, ..job() };
    let state = v1::JobState::Pending.into();
    let (phase, priority) = (v1::Phase::Queued.into(), v1::Priority::Default.into());
    let bare = v1::Job { job_id: text("b"), state, phase, priority, ..v1::Job::default() };
    v1::ListJobsResponse { jobs: vec![brief, bare], next_cursor: text("2a") }
}

fn discard() -> v1::Discard {
    v1::Discard { actor: text("dan"), reason: text("paid by hand"), at_ms: at(7) }
}

fn failure() -> v1::Failure {
    v1::Failure { reason: text("agent_lost"), message: text("gone") }
}

fn attempt() -> v1::Attempt {
    v1::Attempt {
        no: 3,
        worker_id: text("w"),
        dispatched_at_ms: Some(at(1)),
        started_at_ms: Some(at(2)),
        ended_at_ms: Some(at(3)),
        outcome: text("failed"),
        reason: text("fatal"),
        message: text("boom"),
        rule: text("sha256:1#r"),
    }
}

fn progress() -> v1::Progress {
    v1::Progress { percent: 50, message: text("half"), at_ms: at(2) }
}

fn verdict() -> v1::Verdict {
    v1::Verdict {
        decision: v1::Decision::AllowWithConstraints.into(),
        rule: text("r"),
        rule_hash: text("abc"),
        reason: text("because"),
        snapshot: text("sha256:1"),
        constraints: Some(v1::Constraints {
            max_runtime_ms: Some(1),
            max_retries: Some(0),
            max_output_bytes: Some(3),
            allowed_pools: Some(v1::PoolList { pools: texts(&["a", "b"]) }),
            network: Some(false),
            exec: Some(true),
            max_concurrent: Some(4),
        }),
        approval: Some(v1::ApprovalTerms { approvers: 2, request_expiry_ms: Some(5), valid_for_ms: Some(6) }),
        remediations: vec![
            v1::Remediation { title: text("t"), summary: text("s"), replacement_topic: text("job.safe") },
            v1::Remediation { title: text("only a title"), summary: text(""), replacement_topic: text("") },
        ],
    }
}

fn asked() -> v1::AskedApproval {
    let vote = |actor, payload_hidden| v1::asked_approval::Vote { actor: text(actor), at_ms: at(5), payload_hidden };
    v1::AskedApproval {
        rule: text("r"),
        rule_hash: text("abc"),
        approvers_needed: 2,
        votes: vec![vote("bob", false), vote("cat", true)],
        asked_at_ms: at(4),
        expires_at_ms: Some(at(6)),
        granted_at_ms: Some(at(5)),
    }
}

fn output() -> v1::OutputCheck {
    v1::OutputCheck {
        attempt: 3,
        stage: text("checked"),
        decision: text("quarantine"),
        rule: text("cards"),
        reason: text(""),
        snapshot: text("sha256:1"),
        findings: vec![v1::OutputFinding { kind: text("pii"), rule: text("card"), offset: 9, length: 16, hash: text("ff") }],
        released_by: text("dan"),
    }
}

pub(crate) fn event() -> v1::JobEvent {
    v1::JobEvent {
        n: 4,
        at_ms: at(1),
        kind: text("attempt_failed"),
        attempt: 1,
        worker_id: text("w"),
        reason: text("failed"),
        message: text("boom"),
        until_ms: Some(at(2)),
        actor: text("ann"),
        rule: text("r"),
    }
}

pub(crate) fn logs() -> v1::GetJobLogsResponse {
    let line = v1::get_job_logs_response::Line { attempt: 1, at_ms: at(1), line: text("hello"), no: 7 };
    v1::GetJobLogsResponse { lines: vec![line] }
}

pub(crate) fn why() -> v1::ExplainJobResponse {
    v1::ExplainJobResponse {
        state: v1::JobState::Scheduled.into(),
        summary: text("It waits."),
        reason: text("no_worker"),
        next_step: text("start a worker"),
        next_at_ms: Some(at(9)),
        rule: text("r"),
        pools: vec![looked::PoolLook {
            pool: text("p"),
            dispatch: text("direct"),
            reason: text("paused"),
            workers: vec![looked::Considered { worker_id: text("w"), verdict: text("fits"), free_slots: 2 }],
            more: 3,
        }],
        lane_waiting: Some(8),
        limits: vec![looked::LimitLook { name: text("l"), max: Some(1), held: 1, full: true, again_at_ms: Some(at(9)) }],
        tries: Some(2),
        tries_max: Some(50),
    }
}

pub(crate) fn dead_letters() -> v1::ListDeadLettersResponse {
    let letter = v1::DeadLetter {
        job_id: text("a"),
        tenant: text("acme"),
        topic: text("job.x"),
        priority: v1::Priority::Critical.into(),
        state: v1::JobState::Timeout.into(),
        reason: text("execution_timeout"),
        message: text("late"),
        attempts: 3,
        life: 1,
        at_ms: at(0),
        labels: pairs(&[("l", "1")]),
        discarded: Some(discard()),
    };
    v1::ListDeadLettersResponse { dead_letters: vec![letter], next_cursor: text("7") }
}

pub(crate) fn replayed() -> v1::ReplayDeadLettersResponse {
    v1::ReplayDeadLettersResponse { matched: 4, replayed: 1, job_ids: texts(&["a"]), no_room: 2, left_out: 1 }
}

pub(crate) fn approvals() -> v1::ListApprovalsResponse {
    let approval = v1::Approval {
        job_id: text("a"),
        topic: text("job.deploy"),
        submitter: text("ann"),
        payload_json: "[1]".into(),
        labels: pairs(&[("l", "1")]),
        rule: text("r"),
        reason: text("two people"),
        request_hash: text("00ff"),
        rule_hash: text("abc"),
        approvers_needed: 2,
        approved_by: texts(&["bob"]),
        asked_at_ms: at(0),
        expires_at_ms: Some(at(1)),
        capability: text("deploy"),
        risk_tags: texts(&["outage"]),
        payload_hidden: false,
    };
    v1::ListApprovalsResponse { approvals: vec![approval], next_cursor: text("9") }
}

pub(crate) fn answered() -> v1::AnswerApprovalResponse {
    let state = v1::JobState::ApprovalRequired.into();
    v1::AnswerApprovalResponse { job_id: text("a"), state, approved_by: texts(&["bob"]), approvers_needed: 2 }
}

pub(crate) fn explained() -> v1::ExplainResponse {
    let step = |why_not, matched, failed| v1::RuleStep {
        rule: text("r"),
        matched,
        why_not: text(why_not),
        scope: text("base"),
        failed,
    };
    v1::ExplainResponse {
        verdict: Some(verdict()),
        steps: vec![step("topic", false, false), step("no field", false, true), step("", true, false)],
    }
}
