//! What workers and the edge say to each other, on and off the wire. This is the hot path: no serde, no copies of payloads.

mod bounds;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lockgate_api::{access_to_wire, json_bytes, outcome, platform_labels};
use lockgate_core::ids::{AttemptToken, JobId, SessionId, check_name};
use lockgate_core::limits::{ENTRIES_MAX, ERROR_BYTES_MAX, PREFETCH_MAX, SPAN_MS_MAX, VALUE_BYTES_MAX};
use lockgate_core::request::FieldError;
use lockgate_core::time::Timestamp;
use lockgate_core::worker::{Load, WorkerProfile};
use lockgate_engine::{
    Acknowledged, ApiError, Assignment, AttemptProgress, Beat, Began, FromWorker, Hello, InventoryItem, LogReport,
    ResultReport, ToWorker, Welcome,
};
use lockgate_proto::v1;
use prost::Message;

/// A message of a stream holds no more than this, or one item. One of the largest, a full payload and full labels, stays below
/// the 4 MiB that gRPC clients take by default.
pub(crate) const MESSAGE_BYTES: usize = 1024 * 1024;
/// What an item takes besides its texts.
const ITEM_BYTES: usize = 64;

/// Most topics one worker may name.
const TOPICS_MAX: usize = 1_000;

/// The label under which jobs find a worker's region.
const REGION: &str = "region";

pub(crate) fn hello(wire: v1::Hello, in_process: Option<&SessionId>) -> Result<Hello, ApiError> {
    let errors = hello_errors(&wire);
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    let session = SessionId::from(wire.session);
    let region = Some((REGION.to_owned(), wire.region)).filter(|(_, region)| !region.is_empty());
    // The field comes last: it says where the worker stands, whatever a label claims.
    let labels = wire.labels.into_iter().chain(region);
    Ok(Hello {
        profile: WorkerProfile {
            in_process: in_process.is_some_and(|inside| is_of(&session, inside)),
            lost_after_ms: None,
            owner: None,
            worker: wire.worker_id.into(),
            pool: wire.pool.into(),
            topics: wire.topics.into_iter().map(Arc::from).collect(),
            capabilities: wire.capabilities.into_iter().map(Arc::from).collect(),
            labels: labels.map(|(name, value)| (name.into(), value.into())).collect(),
            slots: wire.slots,
        },
        session,
        prefetch: wire.prefetch,
        inventory: wire.inventory.into_iter().map(held).collect(),
        highest_assignment: wire.highest_assignment,
    })
}

/// A worker with several groups of slots has a session for each, named after its own.
fn is_of(session: &SessionId, worker: &SessionId) -> bool {
    let rest = session.as_str().strip_prefix(worker.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
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
    if wire.region.len() > VALUE_BYTES_MAX {
        errors.push(FieldError::new("region", format_args!("must be at most {VALUE_BYTES_MAX} bytes")));
    }
    if wire.prefetch > PREFETCH_MAX {
        errors.push(FieldError::new("prefetch", format_args!("must be at most {PREFETCH_MAX}, not {}", wire.prefetch)));
    }
    errors.extend(bounds::inventory("inventory", &wire.inventory).err());
    errors
}

fn is_pattern(topic: &str) -> bool {
    match topic.strip_suffix('*') {
        // Any letter in the place of the rest must make it a topic.
        Some(beginning) => check_name(&format!("{beginning}x")).is_ok(),
        None => check_name(topic).is_ok(),
    }
}

pub(crate) fn welcome(welcome: &Welcome) -> v1::ServerMessage {
    let welcome = v1::Welcome {
        epoch: welcome.epoch,
        beat_every_ms: millis(welcome.beat_every),
        lost_after_ms: millis(welcome.lost_after),
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        // A stream needs none.
        address: String::new(),
    };
    v1::ServerMessage { welcome: Some(welcome), ..v1::ServerMessage::default() }
}

pub(crate) fn from_worker(wire: v1::WorkerMessage, now: Timestamp) -> Result<FromWorker, ApiError> {
    bounds::message(&wire).map_err(|error| ApiError::Invalid(vec![error]))?;
    Ok(FromWorker {
        beat: wire.beat.map(beat),
        starts: wire.starts.into_iter().map(|start| (start.job_id.into(), start.token.into())).collect(),
        results: wire.results.into_iter().map(result).collect(),
        progress: wire.progress.into_iter().map(|report| progress(report, now)).collect(),
        logs: wire.logs.into_iter().map(log).collect(),
        draining: wire.draining,
        let_go: wire.let_go.into_iter().map(Into::into).collect(),
    })
}

fn beat(wire: v1::Beat) -> Beat {
    let percent = |percent: Option<u32>| percent.map(|percent| percent.min(100));
    Beat {
        load: Load { cpu: percent(wire.cpu_load), gpu: percent(wire.gpu_utilization), memory: percent(wire.memory_load) },
        number: wire.number,
        highest_assignment: wire.highest_assignment,
        inventory: wire.inventory.into_iter().map(held).collect(),
        active_jobs: wire.active_jobs,
        slots: wire.slots,
    }
}

fn held(wire: v1::Held) -> InventoryItem {
    InventoryItem { job_id: wire.job_id.into(), token: wire.token.into(), started: wire.started_at_ms.is_some() }
}

fn result(wire: v1::Result) -> ResultReport {
    let ran = wire.ran_us.map(|us| Duration::from_micros(us).min(Duration::from_millis(SPAN_MS_MAX)));
    let began = wire.started_at_ms.map(|at| Began { at: Timestamp::from_millis(at), ran });
    ResultReport { job_id: wire.job_id.into(), token: wire.token.into(), outcome: outcome(wire.outcome), began }
}

fn progress(wire: v1::ProgressReport, now: Timestamp) -> (AttemptToken, AttemptProgress) {
    let progress = AttemptProgress { percent: wire.percent.min(100), message: clipped(wire.message), at: now };
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

/// Packs what waits into messages of at most `bytes_max`, or of one item that is larger.
pub(crate) fn merge(items: impl Iterator<Item = ToWorker>, bytes_max: usize, ready: &mut VecDeque<v1::ServerMessage>) {
    let mut packing = Packing { message: v1::ServerMessage::default(), bytes: 0, bytes_max, ready };
    for item in items {
        packing.add(item);
    }
    packing.close();
}

struct Packing<'a> {
    message: v1::ServerMessage,
    bytes: usize,
    bytes_max: usize,
    ready: &'a mut VecDeque<v1::ServerMessage>,
}

impl Packing<'_> {
    fn add(&mut self, item: ToWorker) {
        match item {
            ToWorker::Assign(batch) => {
                for assignment in batch {
                    let assignment = assign(&assignment);
                    self.room(assignment.encoded_len()).assignments.push(assignment);
                }
            }
            ToWorker::Stop { job_id, token, reason } => {
                // A message has no order inside: the worker might read the stop first and then begin.
                self.message.assignments.retain(|assignment| assignment.token != token.as_str());
                let bytes = job_id.as_str().len() + token.as_str().len() + reason.len();
                self.room(bytes).stops.push(stop(&job_id, &token, &reason));
            }
            // Unlike a stop it takes nothing back: the engine counts on the worker's answer, and a worker reads the
            // assignments of a message before its revokes.
            ToWorker::Revoke { job_id, token } => {
                let bytes = job_id.as_str().len() + token.as_str().len();
                self.room(bytes).revokes.push(revoke(&job_id, &token));
            }
            ToWorker::Drain => self.message.drain = true,
            ToWorker::Acks(acks) => {
                for one in &acks {
                    self.room(one.0.as_str().len()).acks.push(ack(one));
                }
            }
            ToWorker::BeatAck { number, lease_age } => {
                self.message.beat_ack = Some(v1::BeatAck { number, lease_age_ms: millis(lease_age) });
            }
            ToWorker::Dismissed => self.message.dismissed = true,
        }
    }

    /// The message that has room for so many bytes more.
    fn room(&mut self, bytes: usize) -> &mut v1::ServerMessage {
        let bytes = bytes + ITEM_BYTES;
        if self.bytes > 0 && self.bytes + bytes > self.bytes_max {
            self.close();
        }
        self.bytes += bytes;
        &mut self.message
    }

    fn close(&mut self) {
        self.bytes = 0;
        let message = std::mem::take(&mut self.message);
        if message != v1::ServerMessage::default() {
            self.ready.push_back(message);
        }
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
        traceparent: assignment.trace.map(|trace| trace.to_string()).unwrap_or_default(),
        life: life.no,
        network: access_to_wire(constraints.network),
        exec: access_to_wire(constraints.exec),
        gathered: life.family.as_ref().map_or(0, |family| family.rounds),
        gathered_partly: life.family.as_ref().is_some_and(|family| family.partial),
    }
}

fn stop(job_id: &JobId, token: &AttemptToken, reason: &str) -> v1::Stop {
    v1::Stop { job_id: job_id.to_string(), token: token.to_string(), reason: reason.to_owned() }
}

fn revoke(job_id: &JobId, token: &AttemptToken) -> v1::Revoke {
    v1::Revoke { job_id: job_id.to_string(), token: token.to_string() }
}

pub(crate) fn acks(acks: &[(AttemptToken, Acknowledged)]) -> Vec<v1::ResultAck> {
    acks.iter().map(ack).collect()
}

fn ack((token, acknowledged): &(AttemptToken, Acknowledged)) -> v1::ResultAck {
    v1::ResultAck { token: token.to_string(), superseded: *acknowledged == Acknowledged::Superseded }
}

fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
