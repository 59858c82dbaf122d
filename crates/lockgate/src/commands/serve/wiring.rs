//! Starts the parts of a server, and stops them in order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockgate_core::access::ApiKey;
use lockgate_core::ids::SessionId;
use lockgate_engine::{Engine, MadeKey, Metrics, Ports, Settings};
use lockgate_gateway::{AccessMode, ConnectionMetrics, Gateway, GatewaySettings};
use lockgate_otlp::Exporter;
use lockgate_ports::{Active, Clock, Counters, Entropy, Kernel, Mint, SnapshotKind, Spans, StoreError};
use lockgate_worker::handlers::Builtin;
use lockgate_worker::{Breakers, Worker};
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

use super::defaults::NamedFile;
use super::files::ConfigFile;
use super::parts::{
    StoppableTask, api_part, built_in, clock_part, ended, engine_part, followed, letters_part, metrics_part, spans_part,
};
use super::roles::RoleSet;
use super::{Serve, banner, governance, keyfile, metrics};
use crate::clock::KeptClock;
use crate::descriptors;
use crate::effects;
use crate::entropy::SystemEntropy;
use crate::error::CliError;
use crate::slots::SlotPlan;

/// All running parts. They are stopped in the order of their dependencies.
pub(super) struct RunningServer {
    pub(super) listen: SocketAddr,
    pub(super) metrics: SocketAddr,
    /// The policy in force at the start; None if none ever was.
    pub(super) policy: Option<Active>,
    /// The pools file in force at the start, from whatever source; None if none ever was.
    pub(super) pools: Option<Active>,
    /// Files that are used because they were found at their conventional places.
    pub(super) found: Vec<PathBuf>,
    /// The administrator's key, if this start made it.
    pub(super) admin: Option<MadeKey>,
    pub(super) roles: RoleSet,
    fatal: watch::Receiver<Option<StoreError>>,
    worker: Option<StoppableTask>,
    files: Vec<StoppableTask>,
    gateway: StoppableTask,
    /// Takes submits and results over NATS.
    bus_submits: Option<StoppableTask>,
    /// If the API has TLS, a listener without TLS for the built-in worker.
    inner: Option<StoppableTask>,
    metrics_server: StoppableTask,
    engine: StoppableTask,
    /// Exports spans.
    spans: Option<StoppableTask>,
    /// Writes the clock guard's state.
    clock: StoppableTask,
    /// A handle to mark the server as leaving.
    handle: Engine,
}

/// The worker in this process, if there is one.
#[derive(Default)]
struct BuiltinWorker {
    session: Option<SessionId>,
    /// Its own listener, if the API has TLS.
    door: Option<TcpListener>,
    worker: Option<Worker>,
}

impl BuiltinWorker {
    async fn new(
        serve: &Serve,
        listen: SocketAddr,
        has_tls: bool,
        session: SessionId,
        key: Option<&ApiKey>,
        registry: &mut Registry,
    ) -> Result<Self, CliError> {
        let inner = if has_tls { Some(inner_door().await?) } else { None };
        let door = inner.as_ref().map_or(Ok(listen), TcpListener::local_addr)?;
        let breakers = Breakers::default();
        metrics::of_breakers(registry, &breakers);
        let worker = serve.worker(door, &session, key, breakers)?;
        Ok(Self { session: Some(session), door: inner, worker: Some(worker) })
    }

    /// Records the exporter's counters.
    fn watched(mut self, exporter: Option<&Arc<Exporter>>) -> Self {
        if let Some(exporter) = exporter.cloned() {
            self.worker = self.worker.map(|worker| worker.spans(move |span| exporter.record(vec![span])));
        }
        self
    }
}

impl RunningServer {
    pub(super) async fn start(serve: &Serve, roles: RoleSet) -> Result<Self, CliError> {
        let kept = KeptClock::open(&serve.data, serve.clock_settle);
        let clock: Arc<dyn Clock> = kept.clock.clone();
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy::default());
        let (mut registry, connections) = (Registry::default(), ConnectionMetrics::default());
        connections.register(&mut registry);
        let ground = serve.ground(&clock, &entropy, &mut registry).await?;
        let (api, listen) = bind("--listen", serve.listen).await?;
        let (numbers, metrics) = bind("--metrics", serve.metrics).await?;

        let identity = serve.identity.identity(&serve.data, ground.shared, &*clock, &*entropy)?;
        let tls = serve.identity.tls()?;
        let exporter = serve.exporter(&entropy.uuid(clock.now()), &mut registry)?;
        let mut crew = BuiltinWorker::default();
        if roles.worker {
            let (session, key) = (entropy.session_id(clock.now()), identity.inside.as_ref());
            let builtin = BuiltinWorker::new(serve, listen, tls.is_some(), session, key, &mut registry).await?;
            crew = builtin.watched(exporter.as_ref());
        }

        let ports = Ports {
            store: ground.store,
            lanes: ground.lanes,
            bus: ground.bus,
            kernel: serve.kernel(&clock, &entropy, ground.counters.clone())?,
            clock: clock.clone(),
            entropy: entropy.clone(),
            counters: ground.counters,
            spans: exporter.clone().map(|exporter| exporter as Arc<dyn Spans>),
            outlets: serve.outlets(&entropy).await?,
        };
        let settings = Settings { roles: roles.engine, exclusive_store: !ground.shared, ..serve.settings() };
        let engine = Engine::new(ports, settings, Metrics::new(&mut registry));
        let (files, found) = serve.import(&engine, serve.config_files(roles, Path::new(""))).await?;
        let [policy, pools] = in_force(&engine).await?;
        // The worker would be refused, and a server whose jobs run elsewhere must start with any pools.
        let worker = if serve.has_pool(&engine).await { crew.worker } else { None };
        let settings = GatewaySettings {
            in_process_session: crew.session,
            surface: roles.surface,
            ack: ground.ack,
            access: identity.access.clone(),
            tls,
            connections,
            ..serve.surface()
        };
        let gateway = Gateway { engine: engine.clone(), clock, settings };
        let admin = first_key(serve, &engine, &identity.access).await?;
        let bus_submits = serve.bus_submits(&gateway, entropy, &mut registry).await?.map(letters_part);
        Ok(Self {
            listen,
            metrics,
            policy,
            pools,
            found,
            admin,
            roles,
            fatal: ground.fatal,
            handle: engine.clone(),
            files: files.into_iter().map(|file| followed(file, &engine)).collect(),
            engine: engine_part(engine),
            inner: crew.door.map(|door| api_part("the built-in worker's door", gateway.behind(), door)),
            metrics_server: metrics_part(gateway.clone(), numbers, registry),
            gateway: api_part("the API", gateway, api),
            bus_submits,
            worker: worker.map(built_in),
            spans: exporter.map(spans_part),
            clock: clock_part(kept),
        })
    }

    /// Continues to serve, and reports itself as leaving to load balancers.
    pub(super) fn leave(&self) {
        self.handle.leave();
    }

    pub(super) fn has_worker(&self) -> bool {
        self.worker.is_some()
    }

    pub(super) fn fatal(&self) -> watch::Receiver<Option<StoreError>> {
        self.fatal.clone()
    }

    /// Waits until a part ends that was not stopped. Without any one of them the server only looks healthy.
    pub(super) async fn broken(&mut self) -> String {
        let worker = ended(self.worker.as_mut());
        let inner = ended(self.inner.as_mut());
        let bus_submits = ended(self.bus_submits.as_mut());
        let spans = ended(self.spans.as_mut());
        let files = async {
            match self.files.as_mut_slice() {
                [] => std::future::pending().await,
                files => futures::future::select_all(files.iter_mut().map(|file| Box::pin(file.ended()))).await.0,
            }
        };
        tokio::select! {
            how = self.engine.ended() => how,
            how = self.gateway.ended() => how,
            how = self.metrics_server.ended() => how,
            how = self.clock.ended() => how,
            how = worker => how,
            how = inner => how,
            how = bus_submits => how,
            how = spans => how,
            how = files => how,
        }
    }

    /// Stops the worker first, while it can still report; then the API and NATS; then the loops; then the Store closes on
    /// drop.
    pub(super) async fn stop(self) {
        if let Some(worker) = self.worker {
            worker.stop().await;
        }
        for file in self.files {
            file.stop().await;
        }
        self.gateway.stop().await;
        if let Some(bus_submits) = self.bus_submits {
            bus_submits.stop().await;
        }
        if let Some(inner) = self.inner {
            inner.stop().await;
        }
        self.metrics_server.stop().await;
        self.engine.stop().await;
        // After the other parts, because they record spans until they end.
        if let Some(spans) = self.spans {
            spans.stop().await;
        }
        self.clock.stop().await;
    }
}

impl Serve {
    /// Takes up what the Store has in force, then what the files say. Pools that the policy allows are named by both, so
    /// neither order is better; the policy comes first as it does in a job's life.
    ///
    /// Beside the files, the places of those that no option names.
    async fn import(&self, engine: &Engine, named: Vec<NamedFile>) -> Result<(Vec<ConfigFile>, Vec<PathBuf>), CliError> {
        engine.load_policy().await?;
        engine.load_config().await?;
        let (mut files, mut found) = (Vec::new(), Vec::new());
        for NamedFile { kind, path, found: was_found } in named {
            if was_found && ConfigFile::gives_way(kind, engine).await? {
                let (file, option) = (path.display(), kind.flag);
                tracing::warn!(%file, option, "a file was found, but something else was put in force; name it by its option to use it");
                continue;
            }
            found.extend(was_found.then(|| path.clone()));
            files.push(ConfigFile::import(kind, path, engine).await?);
        }
        Ok((files, found))
    }

    /// Whether the built-in worker's pool is configured.
    async fn has_pool(&self, engine: &Engine) -> bool {
        engine.pool(&self.worker_pool.as_str().into()).await.is_some()
    }

    fn kernel(
        &self,
        clock: &Arc<dyn Clock>,
        entropy: &Arc<dyn Entropy>,
        counters: Option<Arc<dyn Counters>>,
    ) -> Result<Arc<dyn Kernel>, CliError> {
        let mut fresh = [0; 32];
        entropy.fill(&mut fresh);
        let key = governance::finding_key(&self.data, fresh)?;
        self.governance.kernel(clock, key, counters)
    }

    /// The exporter of spans, if there is one; its counters are added to the metrics.
    fn exporter(&self, instance: &str, registry: &mut Registry) -> Result<Option<Arc<Exporter>>, CliError> {
        let exporter = self.spans.exporter("lockgate", instance)?;
        if let Some(exporter) = &exporter {
            metrics::of_spans(registry, exporter);
        }
        Ok(exporter)
    }

    /// With authentication every Host header is accepted: a web page that rebinds a name to this address has no credential.
    fn surface(&self) -> GatewaySettings {
        let usual = GatewaySettings::default();
        GatewaySettings {
            dashboard: !self.no_dashboard,
            any_host: self.insecure_no_auth || self.identity.auth,
            connections_max: descriptors::connections_max(usual.connections_max, descriptors::raise_limit()),
            ..usual
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            lost_after: self.lost_after,
            orphan_after: self.orphan_after,
            defer_max: self.defer_max,
            handover_wait: self.handover_wait,
            loss_rate: self.loss_rate,
            retention: self.retention,
            fail_mode: self.governance.fail_mode(),
            release_rate: self.governance.release_rate,
            dead_letters: self.relay.sink(),
            ..Settings::default()
        }
    }

    fn worker(
        &self,
        listen: SocketAddr,
        session: &SessionId,
        key: Option<&ApiKey>,
        breakers: Breakers,
    ) -> Result<Worker, CliError> {
        let host = if listen.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], listen.port())) } else { listen };
        let mut worker = Worker::connect(format!("http://{host}"))
            .in_process()
            .session(session.as_str())
            .worker_id("built-in")
            .pool(&self.worker_pool)
            .slots(self.worker_slots)
            .drain_timeout(self.drain);
        if let Some(key) = key {
            worker = worker.credential(key.reveal());
        }
        let builtin = Builtin {
            allow_exec: self.allow_exec,
            allow_private_addresses: self.allow_private_addresses,
            breakers,
            effects: Some(effects::open(&self.data)?),
            faults: self.worker_faults.clone(),
        };
        let slots = SlotPlan {
            groups: self.worker_groups.clone(),
            adaptive: self.worker_adaptive_slots,
            target_p95: self.worker_target_p95,
        };
        Ok(slots.given_to(builtin.register(worker)))
    }
}

/// The policy and the pools.
async fn in_force(engine: &Engine) -> Result<[Option<Active>; 2], CliError> {
    Ok([engine.active_config(SnapshotKind::Policy).await?, engine.active_config(SnapshotKind::Pools).await?])
}

/// The administrator's key is written to its file before it is stored, so that no crash leaves an installation without an
/// accessible administrator.
async fn first_key(serve: &Serve, engine: &Engine, access: &AccessMode) -> Result<Option<MadeKey>, CliError> {
    let AccessMode::Closed(entrance) = access else { return Ok(None) };
    let first = engine.first_key(&entrance.digest).await?;
    let another = || serve.identity.new_admin_key.then(|| engine.another_admin_key(&entrance.digest));
    let Some(made) = first.or_else(another) else { return Ok(None) };
    let path = banner::key_file(serve);
    keyfile::put(&path, &format!("{}\n", made.key.reveal()))?;
    if engine.keep_admin_key(&made).await? {
        return Ok(Some(made));
    }
    // Another replica was first, and has printed its key.
    std::fs::remove_file(&path)?;
    Ok(None)
}

/// The built-in worker could not verify the server's certificate, and its traffic does not leave this machine.
async fn inner_door() -> Result<TcpListener, CliError> {
    Ok(bind("the built-in worker", SocketAddr::from(([127, 0, 0, 1], 0))).await?.0)
}

/// Also returns the bound address, which may differ from the requested one.
async fn bind(flag: &str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), CliError> {
    let listener = listen_on(address).map_err(|error| {
        CliError::Usage(format!("{flag} {address}: {error}; is another server running? name another port"))
    })?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// Connections that wait to be accepted. One that finds no room is not refused but tried again by its system a second later, which is
/// then how long a call takes: so there is room for as many as come at once. The system may lower it (net.core.somaxconn).
const BACKLOG: u32 = 4_096;

fn listen_on(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
