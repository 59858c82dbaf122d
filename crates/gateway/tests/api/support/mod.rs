//! A server to talk to, and the clients that talk to it.

mod closed;
mod governance;
mod pools;
mod rest;
pub(crate) mod tls;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::SessionId;
use lockgate_core::scan::FindingKey;
use lockgate_engine::{Engine, LocalKernel, Metrics, Ports, Settings};
use lockgate_gateway::{Gateway, GatewaySettings};
use lockgate_memory::{MemoryBus, MemoryLanes};
use lockgate_model::{ManualClock, MemoryStore, SeededEntropy};
use lockgate_ports::Bus;
use lockgate_proto::v1::scheduler_client::SchedulerClient;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

pub(crate) use closed::Closed;
pub(crate) use governance::POLICY;
pub(crate) use pools::POOLS;
pub(crate) use rest::Reply;
pub(crate) use worker::{ScriptedWorker, hello, succeeded};

/// Nothing here takes long; what takes longer than this never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) const IN_PROCESS: &str = "session-of-the-built-in-worker";

/// A gateway on a free port. Stops when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) registry: Arc<Registry>,
    shutdown: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
    _loops: watch::Sender<bool>,
}

/// What a server stands on. Servers on clones share it.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: MemoryStore,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) engine: Settings,
}

impl Default for Stage {
    fn default() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = MemoryStore::new(clock.clone());
        Self { clock, store, bus: Arc::new(MemoryBus::default()), engine: Settings::default() }
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let in_process_session = Some(SessionId::from(IN_PROCESS));
        Self::start_with(GatewaySettings { in_process_session, ..GatewaySettings::default() }).await
    }

    pub(crate) async fn start_with(settings: GatewaySettings) -> Self {
        Self::start_on(Stage::default(), settings).await
    }

    pub(crate) async fn start_on(stage: Stage, settings: GatewaySettings) -> Self {
        let Stage { clock, store, bus, engine } = stage;
        let ports = Ports {
            store: Arc::new(store),
            lanes: Arc::new(MemoryLanes::default()),
            bus,
            kernel: Arc::new(LocalKernel::new(clock.clone(), FindingKey::new([7; 32]), None)),
            counters: None,
            clock: clock.clone(),
            entropy: Arc::new(SeededEntropy::new(7)),
            spans: None,
            outlets: Vec::new(),
        };
        let mut registry = Registry::default();
        let engine = Engine::new(ports, engine, Metrics::new(&mut registry));
        let (loops, stop) = watch::channel(false);
        let running = engine.clone();
        tokio::spawn(async move { running.run(stop).await });

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let gateway = Gateway { engine: engine.clone(), clock: clock.clone(), settings };
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(gateway.serve(listener, shutdown.clone().cancelled_owned()));
        Self { address, engine, clock, registry: Arc::new(registry), shutdown, served, _loops: loops }
    }

    pub(crate) async fn grpc(&self) -> SchedulerClient<Channel> {
        SchedulerClient::new(self.channel().await)
    }

    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(format!("http://{}", self.address)).expect("a URL");
        endpoint.connect().await.expect("the server listens")
    }

    /// Submits a job that must be accepted; its id.
    pub(crate) async fn submit(&self, job: Value) -> String {
        let reply = self.post("/v1/jobs", &job).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json["job_id"].as_str().expect("an id").to_owned()
    }

    /// How many jobs the Store has, in any state.
    pub(crate) async fn stored(&self) -> u64 {
        let queues = self.get("/v1/queues").await.json;
        ["live", "ended"].map(|field| queues[field].as_u64().expect("a number")).iter().sum()
    }

    /// Serves metrics on a port of their own as long as the server lives.
    pub(crate) async fn metrics(&self, settings: GatewaySettings) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let gateway = Gateway { engine: self.engine.clone(), clock: self.clock.clone(), settings };
        let (registry, stopped) = (self.registry.clone(), self.shutdown.clone().cancelled_owned());
        tokio::spawn(async move { gateway.serve_metrics(listener, registry, stopped).await });
        address
    }

    /// Waits until something is so.
    pub(crate) async fn wait_for(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !is_so().await {
            assert!(tokio::time::Instant::now() < deadline, "{what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asks the server to stop and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        let served = tokio::time::timeout(PATIENCE, &mut self.served).await.expect("the server stops");
        served.expect("no panic").expect("no error");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) fn echo() -> Value {
    json!({ "topic": "job.echo", "payload": { "hello": "world" } })
}
