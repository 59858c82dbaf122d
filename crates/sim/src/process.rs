//! One life of the server process: it can be cut off at any moment.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::ids::EdgeId;
use lockgate_core::policy::FailMode;
use lockgate_core::scan::FindingKey;
use lockgate_engine::{Engine, LocalKernel, Metrics, Ports, Roles, Settings};
use lockgate_memory::{MemoryBus, MemoryLanes, WindowBounds};
use lockgate_model::{MemoryStore, SeededEntropy};
use lockgate_ports::{Bell, Bus, Clock, Ear, GuardedClock, Lanes, Overheard, Sighting, Sightings};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clock::{Jump, JumpyClock, Paused, SKEW_MS_MAX, SkewedClock};
use crate::faults::{Fault, Faults};
use crate::kernel::FaultyKernel;
use crate::lanes::{FaultyLanes, SharedLanes};
use crate::link::Link;
use crate::planted::{Bug, Planted, PlantedLanes};
use crate::signal::Signal;
use crate::store::FaultyStore;
use crate::witness::Witness;

/// Bounds so small that even a simulated backlog overflows them.
pub(crate) const BOUNDS: WindowBounds =
    WindowBounds { window_jobs: 3, window_bytes: 8 * 1024, total_jobs: 12, total_bytes: 16 * 1024, floor_jobs: 2 };

/// The longer silence that some processes tolerate.
const PATIENT: Duration = Duration::from_secs(25);

/// The default of a server.
const SETTLE: Duration = Duration::from_secs(600);

/// The longest delay of a late ring.
const BELL_LATE_MS: u64 = 5_000;

/// Tells everything that belongs to a process whether the process is alive.
#[derive(Clone)]
pub(crate) struct Lifeline {
    dead: Arc<Signal<bool>>,
}

impl Lifeline {
    fn new() -> Self {
        Self { dead: Arc::new(Signal::new(false)) }
    }

    /// Ends the process here. Never returns, so that no code of a dead process continues.
    pub(crate) async fn crash(&self) {
        self.cut();
        std::future::pending::<()>().await;
    }

    fn cut(&self) {
        self.dead.set(true);
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.dead.with(|dead| *dead)
    }

    /// A call of a dead process has no effect and never returns.
    pub(crate) async fn alive_or_never(&self) {
        if !self.is_alive() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) async fn died(&self) {
        self.dead.wait(|dead| dead.then_some(())).await;
    }
}

/// The parts that outlive a process.
pub(crate) struct DurableParts {
    pub(crate) disk: MemoryStore,
    pub(crate) witness: Arc<Witness>,
    pub(crate) planted: Arc<Planted>,
    /// What several processes share; None with a single process.
    pub(crate) shared: Option<(Arc<SharedLanes>, MemoryBus)>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<SeededEntropy>,
    /// The fail mode of output scans, if results are scanned.
    pub(crate) outputs: Option<FailMode>,
}

impl DurableParts {
    /// The durable parts for another process.
    pub(crate) fn same(&self) -> Self {
        let shared = self.shared.as_ref().map(|(lanes, bus)| (lanes.clone(), bus.another()));
        let Self { disk, witness, planted, clock, entropy, .. } = self;
        Self {
            disk: disk.clone(),
            witness: witness.clone(),
            planted: planted.clone(),
            shared,
            clock: clock.clone(),
            entropy: entropy.clone(),
            outputs: self.outputs,
        }
    }
}

fn shared_lanes(shared: &Arc<SharedLanes>, faults: &Arc<Faults>, lifeline: &Lifeline, link: &Link) -> Arc<dyn Lanes> {
    let (shared, faults, lifeline, link) = (shared.clone(), faults.clone(), lifeline.clone(), link.clone());
    Arc::new(FaultyLanes { shared, faults, lifeline, link, behind: Mutex::new(false) })
}

fn own_clock(clock: &Arc<dyn Clock>, faults: &Faults, planted: &Planted) -> Arc<dyn Clock> {
    let (mut ahead, mut behind) = (Duration::ZERO, Duration::ZERO);
    if faults.inject(300, Fault::ClockSkewed) {
        (ahead, behind) = (faults.millis(SKEW_MS_MAX), faults.millis(SKEW_MS_MAX));
    }
    let clock = SkewedClock { clock: clock.clone(), ahead, behind };
    let jump = faults.inject(200, Fault::ClockJumped).then(|| jump(faults));
    let wall = Arc::new(JumpyClock { clock, jump });
    if planted.is(Bug::JumpsFollowed) {
        return wall;
    }
    Arc::new(GuardedClock::new(wall, Arc::new(Paused(Instant::now())), SETTLE, None))
}

/// A jump beyond the end of the story, so that every time computed from it lies after the end.
fn jump(faults: &Faults) -> Jump {
    let from = Instant::now() + Duration::from_millis(1) + faults.millis(20_000);
    let until = from + Duration::from_secs(1) + faults.millis(15_000);
    Jump { from, until, by: Duration::from_secs(3 * 3_600) + faults.millis(3_600_000), back: faults.chance(300) }
}

/// The ports of a process, each with its faults.
fn ports(
    ground: &DurableParts,
    faults: &Arc<Faults>,
    lifeline: &Lifeline,
    link: &Link,
    edge: &Arc<Mutex<Option<EdgeId>>>,
) -> Ports {
    let DurableParts { disk, witness, planted, shared, clock, entropy, outputs } = ground;
    let (lanes, bus) = match shared {
        Some((lanes, bus)) => (shared_lanes(lanes, faults, lifeline, link), bus.another()),
        None => (Arc::new(MemoryLanes::new(BOUNDS)) as Arc<dyn Lanes>, MemoryBus::default()),
    };
    let clock = own_clock(clock, faults, planted);
    Ports {
        store: Arc::new(FaultyStore {
            disk: disk.clone(),
            witness: witness.clone(),
            planted: planted.clone(),
            faults: faults.clone(),
            lifeline: lifeline.clone(),
            link: link.clone(),
            remote: shared.is_some(),
            edge: edge.clone(),
        }),
        lanes: Arc::new(PlantedLanes { lanes, planted: planted.clone() }),
        bus: Arc::new(FaultyBus {
            bus: Arc::new(bus),
            faults: faults.clone(),
            planted: planted.clone(),
            lifeline: lifeline.clone(),
            link: link.clone(),
        }),
        kernel: Arc::new(FaultyKernel {
            kernel: LocalKernel::new(clock.clone(), FindingKey::new([7; 32]), None),
            faults: faults.clone(),
            planted: planted.clone(),
            lifeline: lifeline.clone(),
            outputs: outputs.unwrap_or(FailMode::Closed),
        }),
        clock,
        entropy: entropy.clone(),
        counters: None,
        spans: None,
        outlets: Vec::new(),
    }
}

/// A running server.
#[derive(Clone)]
pub(crate) struct SimProcess {
    pub(crate) engine: Engine,
    pub(crate) lifeline: Lifeline,
    pub(crate) link: Link,
    pub(crate) roles: Roles,
    edge: Arc<Mutex<Option<EdgeId>>>,
    stop: Arc<watch::Sender<bool>>,
    ended: Arc<Signal<bool>>,
    task: Arc<JoinHandle<()>>,
}

impl SimProcess {
    pub(crate) fn start(ground: &DurableParts, faults: &Arc<Faults>, roles: Roles) -> Self {
        let (lifeline, link, edge) = (Lifeline::new(), Link::default(), Arc::default());
        let ports = ports(ground, faults, &lifeline, &link, &edge);
        // Processes need not agree on the tolerated silence, as while an operator changes it.
        let lost_after = if faults.chance(200) { PATIENT } else { Settings::default().lost_after };
        let settings = Settings { roles, exclusive_store: ground.shared.is_none(), lost_after, ..Settings::default() };
        let engine = Engine::new(ports, settings, Metrics::new(&mut Registry::default()));
        let running = engine.clone();
        let (stop, stopping) = watch::channel(false);
        let ended = Arc::new(Signal::new(false));
        let end = ended.clone();
        let task = tokio::spawn(async move {
            running.run(stopping).await;
            end.set(true);
        });
        Self { engine, lifeline, link, roles, edge, stop: Arc::new(stop), ended, task: Arc::new(task) }
    }

    /// The id of its edge, if it has registered one.
    pub(crate) fn edge(&self) -> Option<EdgeId> {
        self.edge.lock().clone()
    }

    /// SIGTERM: returns when every loop has ended, or the process crashed on the way.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        tokio::select! {
            biased;
            () = self.lifeline.died() => {}
            () = self.ended.wait(|ended| ended.then_some(())) => {}
        }
    }

    /// kill -9.
    pub(crate) fn kill(&self) {
        self.lifeline.cut();
        self.task.abort();
    }
}

struct FaultyBus {
    bus: Arc<MemoryBus>,
    faults: Arc<Faults>,
    planted: Arc<Planted>,
    lifeline: Lifeline,
    link: Link,
}

impl FaultyBus {
    /// Rings later, if the process lives until then. No task waits for the ring.
    fn ring_late(&self, bells: Vec<Bell>) {
        let (bus, lifeline, late) = (self.bus.clone(), self.lifeline.clone(), self.faults.millis(BELL_LATE_MS));
        tokio::spawn(async move {
            tokio::time::sleep(late).await;
            if lifeline.is_alive() {
                bus.ring(bells).await;
            }
        });
    }
}

#[async_trait]
impl Bus for FaultyBus {
    async fn ring(&self, bells: Vec<Bell>) {
        if self.faults.inject(1, Fault::Crash) {
            self.lifeline.crash().await;
        }
        self.link.thawed().await;
        self.lifeline.alive_or_never().await;
        if self.link.is_cut_off() || self.faults.inject(50, Fault::BellLost) {
            return;
        }
        if self.faults.inject(30, Fault::BellDelayed) {
            return self.ring_late(bells);
        }
        if self.faults.inject(20, Fault::BellDoubled) {
            self.bus.ring(bells.clone()).await;
        }
        if self.planted.is(Bug::BellsTripled) {
            self.bus.ring(bells.clone()).await;
            self.bus.ring(bells.clone()).await;
        }
        self.bus.ring(bells).await;
    }

    fn listen(&self, bell: Bell) -> Ear {
        self.bus.listen(bell)
    }

    fn overhear(&self) -> Overheard {
        self.bus.overhear()
    }

    /// Draws no random number, because no decision depends on it.
    async fn post(&self, seen: Vec<Sighting>) {
        self.link.thawed().await;
        if !self.link.is_cut_off() {
            self.bus.post(seen).await;
        }
    }

    fn sightings(&self) -> Sightings {
        self.bus.sightings()
    }
}
