//! What workers and the edge say to each other, on and off the wire. This is the hot path: no serde, no copies of payloads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, SessionId, check_name};
use lockgate_core::limits::{ENTRIES_MAX, ERROR_BYTES_MAX, VALUE_BYTES_MAX};
use lockgate_core::request::FieldError;
use lockgate_core::time::Timestamp;
use lockgate_core::worker::WorkerProfile;
use lockgate_engine::{
    Acknowledged, ApiError, Assignment, Beat, FromWorker, Hello, InventoryItem, LogReport, Progress, ResultReport, ToWorker,
    Welcome,
};
use lockgate_proto::{access_to_wire, json_bytes, outcome, platform_labels, v1};
use prost::Message;

/// A message is closed when its assignments reach this. With one of the largest more, a full payload and full labels, it
/// stays below the 4 MiB that gRPC clients take by default.
const MESSAGE_BYTES: usize = 1024 * 1024;

/// Most topics one worker may name.
const TOPICS_MAX: usize = 1_000;

pub(super) fn hello(wire: v1::Hello, in_process: Option<&SessionId>) -> Result<Hello, ApiError> {
    let errors = hello_errors(&wire);
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    let session = SessionId::from(wire.session);
    Ok(Hello {
        profile: WorkerProfile {
            in_process: in_process == Some(&session),
            worker: wire.worker_id.into(),
            pool: wire.pool.into(),
            topics: wire.topics.into_iter().map(Arc::from).collect(),
            capabilities: wire.capabilities.into_iter().map(Arc::from).collect(),
            labels: wire.labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            slots: wire.slots,
        },
        session,
        inventory: wire.inventory.into_iter().map(held).collect(),
        highest_assignment: wire.highest_assignment,
    })
}

/// Names, pool and slots are checked where the session is opened.
fn hello_errors(wire: &v1::Hello) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if wire.topics.len() > TOPICS_MAX {
        errors.push(FieldError::new("topics", format_args!("must have at most {TOPICS_MAX} entries")));
    }
    if let Some(topic) = wire.topics.iter().find(|topic| !is_pattern(topic)) {
        errors.push(FieldError::new("topics", format_args!("{topic:?} must be a topic, or the beginning of one and a *")));
    }
    if wire.capabilities.len() > ENTRIES_MAX || wire.labels.len() > ENTRIES_MAX {
        errors.push(FieldError::new("capabilities", format_args!("and labels must have at most {ENTRIES_MAX} entries")));
    }
    if let Some(Err(error)) = wire.capabilities.iter().map(|name| check_name(name)).find(Result::is_err) {
        errors.push(FieldError::new("capabilities", error));
    }
    let mut labels: Vec<&String> = wire.labels.keys().collect();
    labels.sort();
    if let Some(name) = labels.iter().find(|name| name.starts_with('_')) {
        errors
            .push(FieldError::new("labels", format_args!("{name:?} is refused: a leading _ is reserved for the platform")));
    }
    if wire.labels.iter().any(|(name, value)| name.len() > VALUE_BYTES_MAX || value.len() > VALUE_BYTES_MAX) {
        errors.push(FieldError::new("labels", format_args!("must be at most {VALUE_BYTES_MAX} bytes each")));
    }
    errors
}

fn is_pattern(topic: &str) -> bool {
    match topic.strip_suffix('*') {
        // Any letter in the place of the rest must make it a topic.
        Some(beginning) => check_name(&format!("{beginning}x")).is_ok(),
        None => check_name(topic).is_ok(),
    }
}

pub(super) fn welcome(welcome: &Welcome) -> v1::ServerMessage {
    let welcome = v1::Welcome {
        epoch: welcome.epoch,
        beat_every_ms: millis(welcome.beat_every),
        lost_after_ms: millis(welcome.lost_after),
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    v1::ServerMessage { welcome: Some(welcome), ..v1::ServerMessage::default() }
}

pub(super) fn from_worker(wire: v1::WorkerMessage, now: Timestamp) -> FromWorker {
    FromWorker {
        beat: wire.beat.map(|beat| Beat {
            number: beat.number,
            highest_assignment: beat.highest_assignment,
            inventory: beat.inventory.into_iter().map(held).collect(),
        }),
        starts: wire.starts.into_iter().map(|start| (start.job_id.into(), start.token.into())).collect(),
        results: wire.results.into_iter().map(result).collect(),
        progress: wire.progress.into_iter().map(|report| progress(report, now)).collect(),
        logs: wire.logs.into_iter().map(log).collect(),
        draining: wire.draining,
    }
}

fn held(wire: v1::Held) -> InventoryItem {
    InventoryItem { job_id: wire.job_id.into(), token: wire.token.into(), started: wire.started_at_ms.is_some() }
}

fn result(wire: v1::Result) -> ResultReport {
    ResultReport { job_id: wire.job_id.into(), token: wire.token.into(), outcome: outcome(wire.outcome) }
}

fn progress(wire: v1::ProgressReport, now: Timestamp) -> (AttemptToken, Progress) {
    let progress = Progress { percent: wire.percent.min(100), message: clipped(wire.message), at: now };
    (wire.token.into(), progress)
}

fn log(wire: v1::LogReport) -> LogReport {
    LogReport { token: wire.token.into(), at: Timestamp::from_millis(wire.at_ms), line: clipped(wire.line) }
}

/// A worker's free text is kept up to a bound, so that it cannot bloat what is stored or shown.
fn clipped(mut text: String) -> Arc<str> {
    text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
    text.into()
}

/// Packs what waits into as few messages as their size allows.
pub(super) fn merge(items: impl Iterator<Item = ToWorker>, ready: &mut VecDeque<v1::ServerMessage>) {
    let mut message = v1::ServerMessage::default();
    let mut bytes = 0;
    for item in items {
        match item {
            ToWorker::Assign(batch) => {
                message.assignments.reserve(batch.len());
                for assignment in batch {
                    let assignment = assign(&assignment);
                    bytes += assignment.encoded_len();
                    message.assignments.push(assignment);
                    if bytes >= MESSAGE_BYTES {
                        ready.push_back(std::mem::take(&mut message));
                        bytes = 0;
                    }
                }
            }
            ToWorker::Stop { job_id, token, reason } => {
                // A message has no order inside: the worker might read the stop first and then begin.
                message.assignments.retain(|assignment| assignment.token != token.as_str());
                message.stops.push(stop(&job_id, &token, &reason));
            }
            ToWorker::Acks(acks) => message.acks.extend(acks.iter().map(ack)),
            ToWorker::BeatAck(number) => message.beat_ack = Some(v1::BeatAck { number }),
            ToWorker::Dismissed => message.dismissed = true,
        }
    }
    if message != v1::ServerMessage::default() {
        ready.push_back(message);
    }
}

fn assign(assignment: &Assignment) -> v1::Assignment {
    let (request, life) = (&assignment.job.request, &assignment.job.life);
    let labels = request.labels.iter().map(|(name, value)| (name.clone(), value.clone()));
    let constraints = assignment.job.constraints();
    v1::Assignment {
        number: assignment.number,
        job_id: request.job_id.to_string(),
        token: life.attempt.token.to_string(),
        topic: request.topic.to_string(),
        payload_json: json_bytes(&request.payload),
        attempt: life.attempt.no,
        timeout_ms: u64::try_from(assignment.timeout.as_millis()).unwrap_or(u64::MAX),
        // The platform's own come last, so that no client can say otherwise.
        labels: labels.chain(platform_labels(life)).collect(),
        env: request.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        tenant: request.tenant.to_string(),
        trace_id: request.trace_id.as_deref().unwrap_or_default().to_owned(),
        life: life.no,
        network: access_to_wire(constraints.network),
        exec: access_to_wire(constraints.exec),
    }
}

fn stop(job_id: &JobId, token: &AttemptToken, reason: &str) -> v1::Stop {
    v1::Stop { job_id: job_id.to_string(), token: token.to_string(), reason: reason.to_owned() }
}

fn ack((token, acknowledged): &(AttemptToken, Acknowledged)) -> v1::ResultAck {
    v1::ResultAck { token: token.to_string(), superseded: *acknowledged == Acknowledged::Superseded }
}

fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lockgate_core::job::{Env, submit};
    use lockgate_core::limits::Limits;
    use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
    use lockgate_core::retry::Jitter;
    use lockgate_core::verdict::{Access, Constraints, Decision, Judgement, Verdict};

    use super::*;

    fn assignment(token: &str, payload_bytes: usize) -> Assignment {
        let payload = Json::trusted(format!("\"{}\"", "x".repeat(payload_bytes)));
        assigned(token, NewJob { payload: Some(payload), ..NewJob::default() })
    }

    fn assigned(token: &str, new: NewJob) -> Assignment {
        judged(token, new, Judgement::Unavailable)
    }

    fn judged(token: &str, new: NewJob, judgement: Judgement) -> Assignment {
        let new = NewJob { topic: "job.x".into(), ..new };
        let caller = Caller::new("t", "a");
        let request = JobRequest::check(new, &caller, || "job".into()).expect("valid");
        let env = Env {
            now: Timestamp::ZERO,
            token: token.into(),
            jitter: Jitter::from_bits(0),
            limits: &Limits::default(),
            judgement,
        };
        let hash = request.hash();
        Assignment { number: 1, job: Arc::new(submit(Arc::new(request), hash, &env).job), timeout: Duration::ZERO }
    }

    fn merged(items: Vec<ToWorker>) -> Vec<v1::ServerMessage> {
        let mut ready = VecDeque::new();
        merge(items.into_iter(), &mut ready);
        ready.into()
    }

    fn stopped(token: &str) -> ToWorker {
        ToWorker::Stop { job_id: "job".into(), token: token.into(), reason: "cancelled".into() }
    }

    #[test]
    fn what_waits_becomes_one_message() {
        let messages = merged(vec![
            ToWorker::Assign(vec![assignment("a", 1), assignment("b", 1)]),
            ToWorker::BeatAck(1),
            ToWorker::Acks(vec![("c".into(), Acknowledged::Stored)]),
            ToWorker::Assign(vec![assignment("d", 1)]),
            ToWorker::Acks(vec![("e".into(), Acknowledged::Superseded)]),
            ToWorker::BeatAck(2),
        ]);
        let [message] = messages.as_slice() else { panic!("one message, not {}", messages.len()) };
        assert_eq!(message.assignments.iter().map(|a| a.token.as_str()).collect::<Vec<_>>(), ["a", "b", "d"]);
        assert_eq!(
            message.acks.iter().map(|a| (a.token.as_str(), a.superseded)).collect::<Vec<_>>(),
            [("c", false), ("e", true)]
        );
        assert_eq!(message.beat_ack, Some(v1::BeatAck { number: 2 }));
    }

    #[test]
    fn a_stop_takes_back_what_was_not_sent_yet() {
        let messages = merged(vec![ToWorker::Assign(vec![assignment("a", 1), assignment("b", 1)]), stopped("a")]);
        assert_eq!(messages[0].assignments.iter().map(|a| a.token.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(messages[0].stops[0].token, "a");
    }

    #[test]
    fn payloads_close_a_message_before_it_grows_too_large() {
        let batch = ["a", "b", "c", "d", "e"].map(|token| assignment(token, MESSAGE_BYTES / 2)).into();
        let sizes: Vec<usize> = merged(vec![ToWorker::Assign(batch)]).iter().map(|m| m.assignments.len()).collect();
        assert_eq!(sizes, [2, 2, 1]);
    }

    #[test]
    fn labels_and_env_count_as_well_as_payloads() {
        let entries: BTreeMap<String, String> =
            (0..ENTRIES_MAX).map(|n| (format!("n{n}"), "x".repeat(VALUE_BYTES_MAX))).collect();
        let job = || NewJob { labels: entries.clone(), env: entries.clone(), ..NewJob::default() };
        let batch = (0..20).map(|n| assigned(&format!("t{n}"), job())).collect();
        let messages = merged(vec![ToWorker::Assign(batch)]);
        assert_eq!(messages.iter().map(|message| message.assignments.len()).sum::<usize>(), 20);
        let largest = messages.iter().map(Message::encoded_len).max();
        assert!(largest < Some(2 * MESSAGE_BYTES), "{largest:?}");
    }

    fn sent(new: NewJob, verdict: Verdict) -> v1::Assignment {
        assign(&judged("a", new, Judgement::Decided(Arc::new(verdict))))
    }

    #[test]
    fn a_worker_is_told_the_conditions_it_must_keep() {
        let plain = Verdict::plain(Decision::AllowWithConstraints, "r", "why", "s".into());
        let told = sent(NewJob::default(), plain.clone());
        assert_eq!((told.network, told.exec), (None, None));
        let constraints = Constraints { network: Some(Access::Deny), exec: Some(Access::Allow), ..Constraints::default() };
        let told = sent(NewJob::default(), Verdict { constraints, ..plain });
        assert_eq!((told.network, told.exec), (Some(false), Some(true)));
    }

    #[test]
    fn a_bypass_is_told_to_the_worker() {
        let labels = BTreeMap::from([("team".to_owned(), "blue".to_owned())]);
        let told = sent(NewJob { labels, ..NewJob::default() }, Verdict::bypass("kernel away", "s".into()));
        assert_eq!(told.labels["safety_bypassed"], "true");
        assert!(told.labels["safety_bypass_reason"].contains("kernel away"), "{:?}", told.labels);
    }
}
