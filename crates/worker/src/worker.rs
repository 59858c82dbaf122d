//! The builder of a worker.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockgate_contract::limits::PREFETCH_MAX;
use lockgate_contract::names::check_name;
use lockgate_contract::trace::Span;
use lockgate_proto::v1::Hello;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::Endpoint;

use crate::context::Context;
use crate::error::{JobError, WorkerError};
use crate::payload::Payload;
use crate::registry::{LeaseLoss, Registry, Route};
use crate::session::{self, AdaptiveSlots, Bulkhead, GpuLoad, Grpc, Setup};
use crate::trace::SpanSink;
use lockgate_tls::grpc::{Access, Bearer, Credential, TlsFiles as Tls};

const SLOTS_DEFAULT: u32 = 64;
const DRAIN_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// Windows large enough that a full batch of assignments never waits for the reader.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;

/// A worker: handlers by topic, and the servers it takes jobs from.
///
/// Nothing happens before [`run`](Self::run); a mistake in the settings is reported there.
#[must_use = "a worker does nothing until it is run"]
pub struct Worker {
    addresses: Vec<String>,
    access: Access,
    worker_id: Option<String>,
    session: Option<String>,
    pool: String,
    region: String,
    slots: u32,
    prefetch: u32,
    capabilities: Vec<String>,
    labels: Vec<(String, String)>,
    registry: Registry,
    drain_timeout: Duration,
    journal: Option<PathBuf>,
    gpu_load: Option<GpuLoad>,
    spans: Option<SpanSink>,
    adaptive: Option<AdaptiveSlots>,
    bulkheads: Vec<Bulkhead>,
    mistakes: Vec<String>,
}

impl Worker {
    /// Will attach to the server at `url`, like `https://gate.example:8080` or `http://127.0.0.1:8080`.
    pub fn connect(url: impl Into<String>) -> Self {
        Self {
            addresses: vec![url.into()],
            access: Access::default(),
            worker_id: None,
            session: None,
            pool: "default".to_owned(),
            region: String::new(),
            slots: SLOTS_DEFAULT,
            prefetch: 0,
            capabilities: Vec::new(),
            labels: Vec::new(),
            registry: Registry::default(),
            drain_timeout: DRAIN_TIMEOUT_DEFAULT,
            journal: None,
            gpu_load: None,
            spans: None,
            adaptive: None,
            bulkheads: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// Adds an address to try when the others do not answer.
    pub fn or_connect(mut self, url: impl Into<String>) -> Self {
        self.addresses.push(url.into());
        self
    }

    /// An API key or a token. It is sent only over TLS, except to this machine.
    pub fn credential(mut self, credential: impl Into<Credential>) -> Self {
        self.access.credential = Some(credential.into());
        self
    }

    /// For servers at `https` addresses: authorities to trust besides the public ones, and a client certificate.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.access.tls = tls;
        self
    }

    /// The server is in this process, whatever its address looks like, so a credential may be sent to it without TLS.
    pub fn in_process(mut self) -> Self {
        self.access.in_process = true;
        self
    }

    /// Allows a credential to be sent to other machines without TLS, as in a mesh that encrypts.
    pub fn insecure_plaintext(mut self) -> Self {
        self.access.plaintext = true;
        self
    }

    /// The name that operators see. Random by default.
    pub fn worker_id(mut self, id: impl Into<String>) -> Self {
        self.worker_id = Some(id.into());
        self
    }

    /// The session's id, if it must be known beforehand. It must be new for every process.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// The pool to serve; `default` without one.
    pub fn pool(mut self, pool: impl Into<String>) -> Self {
        self.pool = pool.into();
        self
    }

    /// The worker's region. Jobs require it like a label `region`, which it replaces.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// How many jobs run at once; 64 by default.
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// Adapts the number of slots to the load, beginning with that of [`slots`](Self::slots). Slots of
    /// [bulkheads](Self::bulkhead) stay fixed.
    pub fn adaptive_slots(mut self, adaptive: AdaptiveSlots) -> Self {
        self.adaptive = Some(adaptive);
        self
    }

    /// Gives topics slots of their own, so that slow topics take no slot from others. A trailing `*` names every topic with
    /// that beginning. The first bulkhead that names a topic gets it; the other topics share the [`slots`](Self::slots).
    ///
    /// Each bulkhead is a session of its own: operators see it as `worker.name`.
    pub fn bulkhead<T: Into<String>>(
        mut self,
        name: impl Into<String>,
        slots: u32,
        topics: impl IntoIterator<Item = T>,
    ) -> Self {
        let topics = topics.into_iter().map(Into::into).collect();
        self.bulkheads.push(Bulkhead { name: name.into(), slots, topics });
        self
    }

    /// How many jobs may wait in the worker, so that a free slot has work at once; none by default, at most 4.
    ///
    /// Useful for jobs that take about as long as a message to the server. The server revokes a waiting job when a more
    /// urgent one needs its place.
    pub fn prefetch(mut self, jobs: u32) -> Self {
        self.prefetch = jobs;
        self
    }

    /// A capability that jobs may require.
    pub fn capability(mut self, capability: impl Into<String>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// A label that operators see and filter by.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((key.into(), value.into()));
        self
    }

    /// Serves `topic` with `handler`. A trailing `*` serves every topic with that beginning.
    ///
    /// The handler's value is the job's result, as JSON. A panic is a retryable failure. A later handler for a topic
    /// replaces an earlier one.
    pub fn handle<F, Fut, T>(mut self, topic: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context, Payload) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, JobError>> + Send + 'static,
        T: Serialize + 'static,
    {
        let topic = topic.into();
        let name = topic.strip_suffix('*').unwrap_or(&topic);
        let rest = if topic.ends_with('*') { name.trim_end_matches(['.', ':', '-', '_']) } else { name };
        if !(topic == "*" || check_name(rest).is_ok()) {
            self.mistakes.push(format!("{topic:?} is no topic"));
        }
        self.registry.insert(topic, Route::new(handler));
        self
    }

    /// Whether a handler was registered for this topic before. A trailing `*` asks for any topic with that beginning.
    pub fn has_handler(&self, topic: &str) -> bool {
        self.registry.has(topic)
    }

    /// What happens to running attempts of an already registered topic when the server is unreachable for too long. A
    /// trailing `*` names every topic with that beginning; the last setting of a topic counts.
    pub fn on_lease_loss(mut self, topic: &str, choice: LeaseLoss) -> Self {
        if !self.registry.set_lease_loss(topic, choice) {
            self.mistakes.push(format!("on_lease_loss names topic {topic:?}, which has no handler yet"));
        }
        self
    }

    /// How long running jobs may continue after the signal to stop; 30 s by default.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Keeps results in this file until the server has them, so that they survive a crash of the worker.
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(path.into());
        self
    }

    /// Returns the GPU's load in percent, or None if it cannot be read. The loads of processor and memory are measured by
    /// the library, on Linux.
    ///
    /// Called once per beat, where it may block; jobs and beats do not wait for it.
    pub fn gpu_load(mut self, read: impl FnMut() -> Option<u32> + Send + 'static) -> Self {
        self.gpu_load = Some(Box::new(read));
        self
    }

    /// Receives a span for every handler that ran in a recorded trace. It is called where handlers run, so it must not
    /// block.
    ///
    /// Without it, spans that handlers write themselves are children of the attempt's span, which the server writes.
    pub fn spans(mut self, take: impl Fn(Span) + Send + Sync + 'static) -> Self {
        self.spans = Some(Arc::new(take));
        self
    }

    /// Runs jobs until SIGTERM or Ctrl-C, or until an operator drains the worker, then drains.
    pub async fn run(self) -> Result<(), WorkerError> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        self.run_until(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
    }

    /// Runs jobs until `shutdown` is ready, or until an operator drains the worker, then drains.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let bulkheads = self.bulkheads.clone();
        session::run_all(self.resolve()?.split(&bulkheads), shutdown).await
    }

    /// Records why a set of handlers cannot be registered; [`run`](Self::run) reports it.
    #[cfg(feature = "builtin-handlers")]
    pub(crate) fn mistake(mut self, text: String) -> Self {
        self.mistakes.push(text);
        self
    }

    /// Checks all settings and reports every mistake at once.
    fn resolve(self) -> Result<Setup, WorkerError> {
        let mut mistakes = self.mistakes;
        let topics = self.registry.topics();
        if topics.is_empty() {
            mistakes.push("it has no handler".to_owned());
        }
        if self.slots == 0 {
            mistakes.push("it has no slots".to_owned());
        }
        mistakes.extend(self.adaptive.and_then(|adaptive| adaptive.fault()));
        for (at, bulkhead) in self.bulkheads.iter().enumerate() {
            mistakes.extend(bulkhead.faults(&self.bulkheads[..at], &self.registry));
        }
        if self.prefetch > PREFETCH_MAX {
            mistakes.push(format!("it would let {} jobs wait; prefetch at most {PREFETCH_MAX}", self.prefetch));
        }
        let addresses = endpoints(&self.access, &self.addresses, &mut mistakes);
        let bearer = self.access.bearer().unwrap_or_else(|error| {
            mistakes.push(error.to_string());
            Bearer::default()
        });
        if !mistakes.is_empty() {
            return Err(WorkerError::Setup(mistakes.join("; ")));
        }
        let session = self.session.map_or_else(session_id, Ok)?;
        let profile = Hello {
            worker_id: self.worker_id.unwrap_or_else(|| format!("worker-{}", &session[..session.len().min(8)])),
            session,
            pool: self.pool,
            topics,
            capabilities: self.capabilities,
            labels: self.labels.into_iter().collect(),
            slots: self.adaptive.map_or(self.slots, |adaptive| adaptive.begin(self.slots)),
            region: self.region,
            prefetch: self.prefetch,
            ..Hello::default()
        };
        let Self { registry, journal, drain_timeout, gpu_load, spans, adaptive, .. } = self;
        let dial = Arc::new(Grpc { bearer });
        Ok(Setup { profile, registry, addresses, dial, journal, drain_timeout, gpu_load, spans, adaptive })
    }
}

fn endpoints(access: &Access, addresses: &[String], mistakes: &mut Vec<String>) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    for url in addresses {
        match access.endpoint(url) {
            Ok(endpoint) => endpoints.push(tuned(endpoint)),
            Err(error) => mistakes.push(error.to_string()),
        }
    }
    endpoints
}

fn tuned(endpoint: Endpoint) -> Endpoint {
    endpoint
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(2 * STREAM_WINDOW_BYTES)
}

/// Random, and kept over reconnects: by it the server distinguishes one process from the next.
fn session_id() -> Result<String, WorkerError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| WorkerError::System(std::io::Error::other(error.to_string())))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(worker: Worker) -> String {
        worker.resolve().map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let text = mistakes(
            Worker::connect("ftp://host")
                .or_connect("nonsense")
                .or_connect("http://elsewhere")
                .credential("two words")
                .slots(0)
                .prefetch(5)
                .on_lease_loss("job.a", LeaseLoss::Stop)
                .handle("a b", |_, payload| async { Ok(payload) }),
        );
        for part in [
            "ftp://host",
            "nonsense",
            "in the clear",
            "plain ASCII",
            "no slots",
            "prefetch at most 4",
            "job.a",
            "\"a b\" is no topic",
        ] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        assert!(mistakes(Worker::connect("http://host")).contains("no handler"));
    }

    #[test]
    fn patterns_are_topics_too() {
        for topic in ["*", "mail.*", "mail*", "mail.send"] {
            assert!(Worker::connect("http://host").handle(topic, |_, payload| async { Ok(payload) }).resolve().is_ok());
        }
    }
}
