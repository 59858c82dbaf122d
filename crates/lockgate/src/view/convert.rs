//! From gRPC answers to the JSON of the REST contract.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use lockgate_proto::v1;

use super::{
    AskedApproval, Attempt, Children, DeadLetter, DeadLetters, Event, Failure, Job, JobRetry, Jobs, Json, LogLine, Logs,
    Moment, OutputCheck, Progress, Queue, Queues, Replayed, Submitted, Verdict, Worker, Workers,
};

pub(super) fn time(ms: i64) -> Option<Moment> {
    Timestamp::from_millisecond(ms).ok().map(Moment)
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

/// `JOB_STATE_SUCCEEDED` → `SUCCEEDED`.
pub(crate) fn state(state: v1::JobState) -> &'static str {
    let name = state.as_str_name();
    name.strip_prefix("JOB_STATE_").unwrap_or(name)
}

fn phase(phase: v1::Phase) -> &'static str {
    let name = phase.as_str_name();
    name.strip_prefix("PHASE_").unwrap_or(name)
}

/// `PRIORITY_HIGH` → `high`.
fn priority(priority: v1::Priority) -> String {
    let name = priority.as_str_name();
    name.strip_prefix("PRIORITY_").unwrap_or(name).to_lowercase()
}

impl From<v1::job::Children> for Children {
    fn from(children: v1::job::Children) -> Self {
        Self {
            total: children.total,
            live: children.live,
            waits_until: children.waits_until_ms.and_then(time),
            on_timeout: present(children.on_timeout),
        }
    }
}

impl From<v1::SubmitJobResponse> for Submitted {
    fn from(response: v1::SubmitJobResponse) -> Self {
        let state = state(response.state());
        Self { job_id: response.job_id, state, ack: response.ack, existing: response.existing }
    }
}

impl Job {
    /// As lists have it.
    pub(crate) fn summary(job: v1::Job) -> Self {
        Self {
            state: state(job.state()),
            phase: phase(job.phase()),
            priority: priority(job.priority()),
            payload: None,
            payload_hidden: false,
            result: None,
            job_id: job.job_id,
            tenant: job.tenant,
            actor: job.actor,
            actor_type: present(job.actor_type),
            actor_verified: job.actor_verified,
            topic: job.topic,
            capability: present(job.capability),
            risk_tags: job.risk_tags,
            labels: sorted(job.labels),
            platform_labels: sorted(job.platform_labels),
            env: sorted(job.env),
            idempotency_key: present(job.idempotency_key),
            max_attempts: job.max_attempts,
            retry: job.retry.map(JobRetry::from).unwrap_or_default(),
            timeout_ms: job.timeout_ms,
            requires: job.requires,
            trace_id: present(job.trace_id),
            concurrency_key: present(job.concurrency_key),
            parent_job_id: present(job.parent_job_id),
            child_key: present(job.child_key),
            children: job.children.map(Children::from),
            life: job.life,
            attempt: job.attempts,
            attempts: None,
            failures: job.failures,
            losses: job.losses,
            submitted_at: time(job.submitted_at_ms),
            due_at: job.due_at_ms.and_then(time),
            deadline_at: job.deadline_at_ms.and_then(time),
            ended_at: job.ended_at_ms.and_then(time),
            last_error: job.last_error.map(|error| Failure { reason: error.reason, message: error.message }),
            progress: job.progress.map(Progress::from),
            verdict: job.verdict.map(Verdict::from),
            approval: job.approval.map(AskedApproval::from),
            output: job.output.map(OutputCheck::from),
            request_hash: job.request_hash,
        }
    }

    /// With all that is known of it.
    pub(crate) fn full(mut job: v1::Job) -> Self {
        let history = std::mem::take(&mut job.history);
        Self {
            payload: document(&job.payload_json),
            payload_hidden: job.payload_hidden,
            result: document(&job.result_json),
            attempts: Some(history.into_iter().map(Attempt::from).collect()),
            ..Self::summary(job)
        }
    }

    /// What its bad end left, if it ended badly.
    pub(crate) fn dead_letter(&self) -> Option<DeadLetter> {
        let error = self.last_error.as_ref().filter(|_| self.phase == "DEADLETTER")?;
        Some(DeadLetter {
            job_id: self.job_id.clone(),
            tenant: self.tenant.clone(),
            topic: self.topic.clone(),
            priority: self.priority.clone(),
            state: self.state,
            reason: error.reason.clone(),
            message: error.message.clone(),
            attempts: self.attempt,
            life: self.life,
            at: self.ended_at,
            labels: self.labels.clone(),
        })
    }
}

impl From<v1::Attempt> for Attempt {
    fn from(attempt: v1::Attempt) -> Self {
        Self {
            no: attempt.no,
            worker_id: present(attempt.worker_id),
            dispatched_at: attempt.dispatched_at_ms.and_then(time),
            started_at: attempt.started_at_ms.and_then(time),
            ended_at: attempt.ended_at_ms.and_then(time),
            outcome: present(attempt.outcome),
            reason: present(attempt.reason),
            message: present(attempt.message),
            rule: present(attempt.rule),
        }
    }
}

impl From<v1::Progress> for Progress {
    fn from(progress: v1::Progress) -> Self {
        Self { percent: progress.percent, message: progress.message, at: time(progress.at_ms) }
    }
}

impl From<v1::ListJobsResponse> for Jobs {
    fn from(response: v1::ListJobsResponse) -> Self {
        Self { jobs: response.jobs.into_iter().map(Job::summary).collect(), next_cursor: present(response.next_cursor) }
    }
}

impl From<v1::JobEvent> for Event {
    fn from(event: v1::JobEvent) -> Self {
        Self {
            n: event.n,
            at: time(event.at_ms),
            kind: event.kind,
            attempt: event.attempt,
            worker_id: present(event.worker_id),
            reason: present(event.reason),
            message: present(event.message),
            until: event.until_ms.and_then(time),
            actor: present(event.actor),
            rule: present(event.rule),
        }
    }
}

impl From<v1::GetJobLogsResponse> for Logs {
    fn from(response: v1::GetJobLogsResponse) -> Self {
        Self { lines: response.lines.into_iter().map(LogLine::from).collect() }
    }
}

impl From<v1::get_job_logs_response::Line> for LogLine {
    fn from(line: v1::get_job_logs_response::Line) -> Self {
        Self { no: line.no, attempt: line.attempt, at: time(line.at_ms), line: line.line }
    }
}

impl From<v1::ListDeadLettersResponse> for DeadLetters {
    fn from(response: v1::ListDeadLettersResponse) -> Self {
        Self {
            dead_letters: response.dead_letters.into_iter().map(DeadLetter::from).collect(),
            next_cursor: present(response.next_cursor),
        }
    }
}

impl From<v1::DeadLetter> for DeadLetter {
    fn from(letter: v1::DeadLetter) -> Self {
        Self {
            state: state(letter.state()),
            priority: priority(letter.priority()),
            job_id: letter.job_id,
            tenant: letter.tenant,
            topic: letter.topic,
            reason: letter.reason,
            message: letter.message,
            attempts: letter.attempts,
            life: letter.life,
            at: time(letter.at_ms),
            labels: letter.labels.into_iter().collect(),
        }
    }
}

impl From<v1::ReplayDeadLettersResponse> for Replayed {
    fn from(response: v1::ReplayDeadLettersResponse) -> Self {
        let v1::ReplayDeadLettersResponse { matched, replayed, no_room, left_out, job_ids } = response;
        Self { matched, replayed, no_room, left_out, job_ids }
    }
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

impl From<v1::RetryPolicy> for JobRetry {
    fn from(policy: v1::RetryPolicy) -> Self {
        Self {
            base_ms: policy.base_ms.unwrap_or_default(),
            factor_percent: policy.factor_percent.unwrap_or_default(),
            cap_ms: policy.cap_ms.unwrap_or_default(),
            jitter_percent: policy.jitter_percent.unwrap_or_default(),
            total_ms: policy.total_ms,
            non_retryable: policy.non_retryable,
            losses: policy.losses.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_reads_as_the_rest_contract_has_it() {
        let job = v1::Job {
            job_id: "a".to_owned(),
            topic: "job.echo".to_owned(),
            payload_json: r#"{"b": 1, "a": 2}"#.into(),
            state: v1::JobState::OutputQuarantined.into(),
            phase: v1::Phase::Deadletter.into(),
            priority: v1::Priority::High.into(),
            submitted_at_ms: 1_500,
            ..v1::Job::default()
        };
        let json = serde_json::to_string(&Job::full(job)).expect("serializable");
        for part in [
            r#""job_id":"a""#,
            r#""payload":{"b": 1, "a": 2}"#,
            r#""state":"OUTPUT_QUARANTINED""#,
            r#""phase":"DEADLETTER""#,
            r#""priority":"high""#,
            r#""submitted_at":"1970-01-01T00:00:01.500Z""#,
        ] {
            assert!(json.contains(part), "{part} is missing in {json}");
        }
        assert!(!json.contains("result") && !json.contains("ended_at"), "{json}");
    }

    #[test]
    fn only_a_job_that_ended_badly_has_a_dead_letter() {
        let error = v1::Failure { reason: "fatal".to_owned(), message: "boom".to_owned() };
        let dead = v1::Job { phase: v1::Phase::Deadletter.into(), last_error: Some(error), ..v1::Job::default() };
        let retried = v1::Job { phase: v1::Phase::Queued.into(), ..dead.clone() };
        assert_eq!(Job::full(dead).dead_letter().map(|letter| letter.reason), Some("fatal".to_owned()));
        assert!(Job::full(retried).dead_letter().is_none());
    }

    #[test]
    fn what_is_hidden_is_told_from_what_is_not_there() {
        let json = |payload_hidden| {
            let job = v1::Job { payload_hidden, ..v1::Job::default() };
            serde_json::to_string(&Job::full(job)).expect("serializable")
        };
        assert!(json(true).contains(r#""payload_hidden":true"#) && !json(false).contains("payload_hidden"));
    }

    #[test]
    fn a_result_of_null_is_a_result() {
        let job = v1::Job { result_json: "null".into(), ..v1::Job::default() };
        let json = serde_json::to_string(&Job::full(job)).expect("serializable");
        assert!(json.contains(r#""result":null"#), "{json}");
    }
}
