//! A safety kernel that does as it is told, and replicas that ask it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockgate_core::breaker::BreakerSettings;
use lockgate_core::policy::OutputGate;
use lockgate_core::request::{JobRequest, Json};
use lockgate_core::retry::RetrySettings;
use lockgate_core::scan::FindingKey;
use lockgate_core::time::Timestamp;
use lockgate_kernel::{CallOptions, ChannelTls, KernelAddress, RemoteKernel};
use lockgate_ports::{Clock, Counters, OutputContent};
use lockgate_proto::v1;
use lockgate_proto::v1::safety_kernel_server::{SafetyKernel, SafetyKernelServer};
use lockgate_redis::RedisCounters;
use lockgate_testbed::Redis;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Answer,
    Fail,
    /// The question is the asker's fault.
    Refuse,
    /// No answer until it is told otherwise.
    Hold,
}

pub(crate) struct Scene {
    kernel: Arc<Told>,
    address: KernelAddress,
    clock: Arc<dyn Clock>,
}

struct Told {
    mode: watch::Sender<Mode>,
    calls: AtomicUsize,
    in_flight: AtomicUsize,
}

pub(crate) struct Since(pub(crate) Instant);

impl Clock for Since {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000) + self.0.elapsed()
    }
}

impl Scene {
    pub(crate) async fn new(mode: Mode) -> Self {
        let kernel =
            Arc::new(Told { mode: watch::Sender::new(mode), calls: AtomicUsize::new(0), in_flight: AtomicUsize::new(0) });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let uri = listener.local_addr().expect("an address").to_string();
        let service = SafetyKernelServer::from_arc(kernel.clone());
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener)));
        Self {
            kernel,
            address: KernelAddress { uri, tls: ChannelTls::Insecure, key: None },
            clock: Arc::new(Since(Instant::now())),
        }
    }

    pub(crate) async fn counters(&self, redis: &Redis) -> Arc<dyn Counters> {
        let options = lockgate_redis::Options {
            response_timeout: Duration::from_secs(5),
            ..lockgate_redis::Options::new(redis.url(), "default")
        };
        let connected = RedisCounters::connect(&options).await;
        Arc::new(connected.expect("a good address"))
    }

    pub(crate) async fn replica(&self, redis: &Redis, breaker: BreakerSettings) -> Arc<RemoteKernel> {
        self.start(Some(self.counters(redis).await), breaker)
    }

    pub(crate) fn lonely(&self, breaker: BreakerSettings) -> Arc<RemoteKernel> {
        self.start(None, breaker)
    }

    fn start(&self, counters: Option<Arc<dyn Counters>>, breaker: BreakerSettings) -> Arc<RemoteKernel> {
        let gate = OutputGate::new(FindingKey::new([7; 32]), None);
        let options = CallOptions { breaker, answer_within: PATIENCE, ..CallOptions::default() };
        Arc::new(RemoteKernel::new(&self.address, self.clock.clone(), counters, gate, options).expect("a good address"))
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.kernel.mode.send_replace(mode);
    }

    pub(crate) fn calls(&self) -> usize {
        self.kernel.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.kernel.in_flight.load(Ordering::Relaxed)
    }
}

#[tonic::async_trait]
impl SafetyKernel for Told {
    async fn list_snapshots(
        &self,
        _: Request<v1::ListSnapshotsRequest>,
    ) -> Result<Response<v1::ListSnapshotsResponse>, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let told = *self.mode.subscribe().wait_for(|mode| *mode != Mode::Hold).await.expect("told");
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        match told {
            Mode::Fail => Err(Status::unavailable("told to fail")),
            Mode::Refuse => Err(Status::invalid_argument("told to refuse")),
            Mode::Answer | Mode::Hold => Ok(Response::new(v1::ListSnapshotsResponse {
                snapshots: vec!["sha256:abc".to_owned()],
                ..Default::default()
            })),
        }
    }

    async fn check(&self, _: Request<v1::CheckRequest>) -> Result<Response<v1::Verdict>, Status> {
        Err(Status::unimplemented("not asked here"))
    }

    async fn check_batch(&self, _: Request<v1::CheckBatchRequest>) -> Result<Response<v1::CheckBatchResponse>, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match *self.mode.borrow() {
            Mode::Refuse => Err(Status::invalid_argument("told to refuse")),
            _ => Err(Status::unavailable("told to fail")),
        }
    }

    async fn explain(&self, _: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        Err(Status::unimplemented("not asked here"))
    }

    async fn simulate(&self, _: Request<v1::SimulateRequest>) -> Result<Response<v1::SimulateResponse>, Status> {
        Err(Status::unimplemented("not asked here"))
    }
}

pub(crate) async fn wait_for(what: &str, mut yes: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    while !yes().await {
        assert!(Instant::now() < deadline, "it did not happen: {what}");
        tick.tick().await;
    }
}

/// A result that waits to be checked.
pub(crate) fn content() -> OutputContent {
    let request = JobRequest {
        job_id: "job".into(),
        id_chosen: false,
        tenant: "acme".into(),
        actor: "ann".into(),
        actor_type: None,
        actor_verified: false,
        memo: None,
        topic: "echo".into(),
        payload: Json::null(),
        priority: None,
        labels: BTreeMap::new(),
        env: BTreeMap::new(),
        idempotency_key: None,
        concurrency_key: None,
        max_attempts: None,
        retry: RetrySettings::default(),
        timeout_ms: None,
        not_before: None,
        deadline_ms: None,
        requires: BTreeSet::new(),
        capability: None,
        risk_tags: BTreeSet::new(),
        trace_id: None,
        parent: None,
        workflow_id: None,
        compensation: None,
        run: None,
        child_of: None,
        gate: None,
    };
    OutputContent { request: Arc::new(request), result: Json::null() }
}
