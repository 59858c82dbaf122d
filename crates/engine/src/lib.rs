//! The loops around the decisions: load → decide → commit → act.
//!
//! [`Engine`] is a cheap handle. Gateways call its service methods; [`Engine::run`] drives everything that happens by
//! itself. The engine is deterministic on a paused, single-threaded runtime: no iteration over unordered maps, biased
//! selects, ids and jitter only through the Entropy port.

mod access;
mod admission;
mod clocks;
mod commit;
mod config;
mod damage;
mod edge;
mod error;
mod families;
mod health;
mod journal;
mod kernel;
mod looks;
mod loops;
mod metrics;
mod offer;
mod outgoing;
mod runs;
mod schedules;
mod service;
mod settings;
mod traces;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use lockgate_core::ids::EdgeId;
use lockgate_core::job::Env;
use lockgate_core::pools::Routing;
use lockgate_core::timeouts::Defaults;
use lockgate_core::verdict::{BUILTIN_ALLOW, Judgement};
use lockgate_ports::{Bus, Clock, Condition, Counters, Entropy, Kernel, Lanes, Mint, Outlet, Spans, Store};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use edge::{
    Acknowledged, Assignment, Attachment, AttemptProgress, Beat, Began, FromWorker, Hello, InventoryItem, LogReport,
    ResultReport, ToWorker, Welcome,
};
pub use error::ApiError;
pub use health::{
    Component, Failing, HealthProblem, HealthView, KernelView, LeaderView, Leads, LoopView, ProblemKind, StoreState,
    StoreView,
};
pub use kernel::LocalKernel;
pub use metrics::{Described, Metrics, PoolLevel, PoolLevels};
pub use service::{
    Activated, AppliedAs, AppliedSchedule, ApprovalAnswer, BackfillSpan, ChildPage, ConfigText, Considered, DagView,
    ErasedPart, JobView, JobWatch, LaneView, LogWatch, MadeKey, NewChild, NewCredential, PoolConsidered, PoolView, Queues,
    ReplayRequest, Replayed, RunOrder, RunView, RunWatch, ScheduleView, StartRun, StartedRun, Submitted, TenantView,
    Verified, WatchItem, Why, WorkerStatus, WorkerView, verify_trail,
};
pub use settings::{Roles, Settings};

/// What the engine stands on.
#[derive(Clone)]
pub struct Ports {
    pub store: Arc<dyn Store>,
    pub lanes: Arc<dyn Lanes>,
    pub bus: Arc<dyn Bus>,
    pub kernel: Arc<dyn Kernel>,
    /// Those that all replicas share; none for a process that has no others.
    pub counters: Option<Arc<dyn Counters>>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    /// Where spans go; none are made if nobody takes them.
    pub spans: Option<Arc<dyn Spans>>,
    /// Where outbox rows go; rows that none of these serves are left to other processes.
    pub outlets: Vec<Arc<dyn Outlet>>,
}

/// The running scheduler. Clones share it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) traces: traces::Traces,
    pub(crate) leadership: Arc<loops::Leadership>,
    pub(crate) sealer: Arc<loops::AuditSealer>,
    pub(crate) outbox: Arc<loops::OutboxRelay>,
    pub(crate) edge: edge::Edge,
    /// Edges of other processes, as this one saw them.
    pub(crate) watched: loops::WatchedEdges,
    /// Of attempts that were lost.
    pub(crate) turns: loops::RequeuePacer,
    pub(crate) detached: edge::DetachedSessions,
    /// Sessions of this edge that were never told to it.
    pub(crate) unregistered: edge::DetachedSessions,
    pub(crate) config: Arc<config::ActiveConfig>,
    pub(crate) admission: admission::Admission,
    pub(crate) wake: Wakeups,
    pub(crate) health: Arc<loops::StoreHealth>,
    /// Rows that cannot be decoded.
    pub(crate) damage: damage::UnreadableMet,
    pub(crate) watch: health::ProcessHealth,
    /// What became of jumps of clocks.
    pub(crate) clocks: clocks::Clocks,
    /// What nobody can ever take as things are.
    pub(crate) hopeless: loops::Hopeless,
    /// How the lanes were when they were last looked after.
    pub(crate) lanes: Mutex<Condition>,
    /// Whether the policy in force was read.
    pub(crate) governed: AtomicBool,
    /// The policy of the Store that everything on its way was last compared with.
    pub(crate) recalled: Mutex<Arc<str>>,
    /// Credentials that were read a moment ago.
    pub(crate) keyring: access::Keyring,
    /// Parents that may go on, and those that left children behind.
    pub(crate) families: families::FamilyLooks,
    /// Runs that wait for a step, and those that are remembered.
    pub(crate) run_queue: runs::RunQueue,
    /// Schedules that are to be looked at, and what they wait for.
    pub(crate) schedules: schedules::AwaitedTargets,
    /// How pools were when the gauges were last set.
    pub(crate) levels: watch::Sender<PoolLevels>,
    /// Attempts let through unjudged that the shared total does not have yet.
    pub(crate) bypassed: AtomicU64,
}

/// Reasons for a loop to run before its next tick.
#[derive(Default)]
pub(crate) struct Wakeups {
    /// A place became free or work arrived.
    pub(crate) dispatch: Notify,
    /// A window may be running low.
    pub(crate) feed: Notify,
    /// A result waits to be scanned.
    pub(crate) scan: Notify,
    /// A gateway died that may not have offered what it stored.
    pub(crate) reoffer: Notify,
    /// Nothing is claimed before then: what was claimed last could not be dispatched, and others may have it meanwhile.
    pub(crate) claim_at: Mutex<Option<Instant>>,
}

impl Engine {
    pub fn new(ports: Ports, settings: Settings, metrics: Metrics) -> Self {
        let edge = EdgeId::from(ports.entropy.uuid(ports.clock.now()));
        let config = Arc::new(config::ActiveConfig::default());
        let health = Arc::new(loops::StoreHealth::new(&settings));
        let reports = loops::LoopReports { health: health.clone(), metrics: metrics.loops.clone() };
        let Ports { store, clock, outlets, .. } = ports.clone();
        let (holder, alone) = (edge.as_str().into(), settings.exclusive_store);
        let leadership =
            loops::Leadership::new(store.clone(), clock.clone(), config.clone(), metrics.loops.clone(), holder, alone);
        let leadership = Arc::new(leadership);
        let sealer = loops::AuditSealer::new(store.clone(), clock, leadership.clone(), reports.clone(), settings.seal_every);
        let outbox = loops::OutboxRelay::new(store, outlets, leadership.clone(), reports, metrics.outbox.clone(), &settings);
        let inner = Inner {
            leadership,
            sealer: Arc::new(sealer),
            outbox: Arc::new(outbox),
            edge: edge::Edge::new(edge, config.routing(), settings.edge_rules()),
            watched: loops::WatchedEdges::default(),
            turns: loops::RequeuePacer::new(settings.loss_rate, settings.edge_renew),
            detached: edge::DetachedSessions::default(),
            unregistered: edge::DetachedSessions::default(),
            config,
            admission: admission::Admission::default(),
            wake: Wakeups::default(),
            health,
            damage: damage::UnreadableMet::default(),
            watch: health::ProcessHealth::default(),
            clocks: clocks::Clocks::default(),
            hopeless: loops::Hopeless::default(),
            lanes: Mutex::new(Condition::Sound),
            governed: AtomicBool::default(),
            recalled: Mutex::new(BUILTIN_ALLOW.into()),
            keyring: access::Keyring::default(),
            families: families::FamilyLooks::default(),
            run_queue: runs::RunQueue::new(settings.roles.orchestrator),
            schedules: schedules::AwaitedTargets::new(settings.roles.orchestrator),
            levels: watch::Sender::default(),
            bypassed: AtomicU64::new(0),
            traces: traces::Traces::new(ports.spans.clone()),
            ports,
            settings,
            metrics,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Recovers what an earlier life left, then runs every loop until `stop` turns true.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut running = JoinSet::new();
        health::spawn(&self.inner, &mut running, &stop);
        let Ok(recovered) = loops::recover(&self.inner, &mut stop).await else { return };
        loops::spawn(&self.inner, &mut running, recovered, &stop);
        self.inner.watch.started();
        let stopping = stop.clone();
        while let Some(ended) = running.join_next().await {
            // Half an engine would accept jobs that never run: better none, and a process that says so.
            if ended.is_err() || !*stopping.borrow() {
                tracing::error!(?ended, "engine loop ended unexpectedly; the engine stops");
                break;
            }
        }
        running.shutdown().await;
        // What a loop led that did not end by itself.
        self.inner.leadership.hand_over(self.inner.watch.led()).await;
    }

    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// What holds now where a client names nothing.
    pub fn defaults(&self) -> Defaults {
        Defaults { limits: self.inner.settings.limits.clone(), timeouts: self.inner.config.timeouts() }
    }

    /// How pools are, looked at every two seconds: asking costs nothing, however much waits.
    pub fn pool_levels(&self) -> watch::Receiver<PoolLevels> {
        self.inner.levels.subscribe()
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }
}

impl Inner {
    /// Who may take what, as it is known here.
    pub(crate) fn routing(&self) -> Arc<Routing> {
        self.config.routing()
    }

    /// Fresh inputs of one decision.
    pub(crate) fn env(&self, judgement: Judgement) -> Env<'_> {
        Env {
            now: self.ports.clock.now(),
            token: self.ports.entropy.attempt_token(),
            jitter: self.ports.entropy.jitter(),
            limits: &self.settings.limits,
            timeouts: self.config.timeouts(),
            judgement,
        }
    }
}
