//! One simulated installation: servers that come and go, workers, clients, and what they know to be true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, RunId};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_engine::Roles;
use lockgate_model::{MemoryStore, SeededEntropy};
use lockgate_ports::{Clock, Upkeep};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::check::{self, Violation};
use crate::clock::SimClock;
use crate::faults::{Fault, Faults, Injected};
use crate::link::Trouble;
use crate::people::Cast;
use crate::planted::Planted;
use crate::process::{DurableParts, SimProcess};
use crate::sagas::{self, Workflow};
use crate::signal::Signal;
use crate::story::Story;
use crate::witness::Witness;
use crate::{client, families, flow, operators, outputs, people, times, trail, worker};

/// What happened in one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub acknowledged: usize,
    pub executions: usize,
    /// Attempts that were declared lost while faults were on, because their workers were silent.
    pub lost: usize,
    /// Sessions that were closed meanwhile.
    pub closed: usize,
    /// Attempts that were sent to a worker ahead of a free slot.
    pub ahead: usize,
    /// Attempts that workers returned because a more urgent job had no slot.
    pub given_back: usize,
    pub injected: Injected,
    /// A hash of the whole final history: two runs of one seed must agree.
    pub fingerprint: u64,
}

/// What the outside world knows, independently of the engine.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Jobs whose submit was acknowledged.
    pub(crate) acknowledged: BTreeSet<JobId>,
    /// Children that workers were told to have submitted, by parent and life.
    pub(crate) children: BTreeMap<(JobId, u32), BTreeSet<JobId>>,
    /// Idempotency keys and the job each was acknowledged with.
    pub(crate) keys: BTreeMap<String, JobId>,
    /// Runs by tenant and key.
    pub(crate) runs: BTreeMap<String, RunId>,
    /// Every execution that a worker began, by its token.
    pub(crate) executions: BTreeSet<AttemptToken>,
    /// Guarantees that clients and workers saw broken.
    pub(crate) broken: Vec<Violation>,
    /// When the schedule was acknowledged.
    pub(crate) schedule: Option<Timestamp>,
    /// The results of attempts that a worker finished with success.
    pub(crate) finished: BTreeMap<(JobId, u32), Json>,
    /// Workflows of plain jobs, by their sagas.
    pub(crate) workflows: BTreeMap<RunId, Workflow>,
    /// Jobs that a client tried to cancel.
    pub(crate) cancelled: BTreeSet<JobId>,
    /// Jobs that a person tried to reject.
    pub(crate) rejected: BTreeSet<JobId>,
    /// Lives whose quarantined result a person tried to release.
    pub(crate) released: BTreeSet<(JobId, u32)>,
    /// Attempts that were sent to a worker ahead of a free slot.
    pub(crate) ahead: usize,
    /// Attempts that workers returned because the server asked for them.
    pub(crate) given_back: usize,
}

impl Ledger {
    /// Attempts that were sent ahead of a free slot, and those of them that were given back.
    pub(crate) fn sent_ahead(&self) -> (usize, usize) {
        (self.ahead, self.given_back)
    }
}

pub(crate) struct SimWorld {
    pub(crate) faults: Arc<Faults>,
    pub(crate) entropy: Arc<SeededEntropy>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: MemoryStore,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) planted: Arc<Planted>,
    pub(crate) chaos: Duration,
    clients: u64,
    pub(crate) cast: Cast,
    pub(crate) ground: DurableParts,
    /// The roles of each process.
    roles: Vec<Roles>,
    /// One entry per process.
    processes: Signal<Vec<Option<SimProcess>>>,
}

/// How long everything may take to end once faults have stopped: longer than any chain of retries and timeouts.
const CALM: Duration = Duration::from_secs(3_600);

/// How long slots may count as taken then: longer than any worker's tolerated silence.
const PLACES_FREE: Duration = Duration::from_secs(150);

/// The longest run time of jobs. Only jobs that run less than a second on average are sent ahead.
const QUICK_MS: u64 = 600;
const SLOW_MS: u64 = 4_000;

/// Half of the installations with several processes have roles. The first two processes cover every role; with a third, the
/// second may leave workflows to it.
fn roles(count: u64, faults: &Faults) -> Vec<Roles> {
    let all = Roles::default();
    let gateway = Roles { scheduler: false, orchestrator: false, ..all };
    let apart = count > 1 && faults.chance(500);
    let alone = apart && count > 2 && faults.chance(500);
    let role = |place: u64| match place {
        _ if !apart => all,
        0 => gateway,
        1 => Roles { gateway: false, orchestrator: !alone, ..all },
        2 if alone => Roles { gateway: false, scheduler: false, ..all },
        _ if faults.chance(500) => gateway,
        _ => all,
    };
    (0..count).map(role).collect()
}

impl SimWorld {
    pub(crate) fn new(story: &Story) -> Self {
        let Story { seed, without, chaos, clients, processes, bug } = story.clone();
        let entropy = Arc::new(SeededEntropy::new(seed));
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let faults = Arc::new(Faults::new(entropy.clone(), without));
        let disk = MemoryStore::new(clock.clone());
        let planted = Arc::new(Planted::new(bug));
        let witness = Arc::new(Witness::new(disk.clone(), clock.clone(), planted.clone()));
        let count = processes.unwrap_or_else(|| if seed.is_multiple_of(2) { 1 } else { 2 + faults.below(2) });
        let shared = (count > 1).then(Default::default);
        let cast = Cast::draw(&faults);
        let (ground_disk, ground_clock) = (disk.clone(), clock.clone());
        let ground = DurableParts {
            disk: ground_disk,
            witness: witness.clone(),
            planted: planted.clone(),
            shared,
            clock: ground_clock,
            entropy: entropy.clone(),
            outputs: cast.outputs,
        };
        let roles = roles(count, &faults);
        let processes = Signal::new((0..count).map(|_| None).collect());
        let ledger = Mutex::default();
        Self { faults, entropy, clock, disk, ledger, witness, planted, chaos, clients, cast, ground, roles, processes }
    }

    /// The longest run time of a job that names none.
    pub(crate) fn longest_run_ms(&self) -> u64 {
        if self.cast.quick { QUICK_MS } else { SLOW_MS }
    }

    pub(crate) async fn run(self) -> Result<Summary, Violation> {
        let world = Arc::new(self);
        let mut tasks = JoinSet::new();
        let calm_at = Instant::now() + world.chaos;
        if world.cast.outputs.is_some() {
            outputs::begin(&world, world.cast.policy(people::ALLOW)).await?;
            tasks.spawn(outputs::read(world.clone()));
        }
        for place in 0..world.processes.with(Vec::len) {
            tasks.spawn(world.clone().supervise(place, calm_at));
        }
        for n in 0..2 + world.faults.below(3) {
            tasks.spawn(worker::run(world.clone(), n));
        }
        for n in 0..world.clients {
            tasks.spawn(client::run(world.clone(), n, world.chaos));
        }
        world.clone().cast(&mut tasks);
        tokio::time::sleep(world.chaos).await;
        world.faults.stop();
        if world.cast.policies {
            people::allow_everything(&world).await;
        }
        if world.cast.operators {
            operators::open(&world).await;
        }
        world.come_to_rest().await?;
        tasks.shutdown().await;
        check::all(&world).await
    }

    fn cast(self: Arc<Self>, tasks: &mut JoinSet<()>) {
        let Cast { policies, limits, schedules, operators, .. } = self.cast;
        people::explain_policies(&self);
        operators::explain_pauses(&self);
        if policies {
            tasks.spawn(people::govern(self.clone()));
        }
        if limits {
            tasks.spawn(people::limit(self.clone()));
        }
        if operators {
            tasks.spawn(operators::operate(self.clone()));
        }
        if schedules {
            tasks.spawn(times::apply(self));
        }
    }

    /// A running server that takes calls; waits while there is none. The entry of a process that just died stays until the
    /// supervisor notices, and does not count.
    pub(crate) async fn process(&self) -> SimProcess {
        let first = usize::try_from(self.faults.below(self.processes.with(Vec::len) as u64)).unwrap_or(0);
        let running = |places: &Vec<Option<SimProcess>>| {
            let mut turn = places.iter().cycle().skip(first).take(places.len());
            turn.find_map(|place| place.clone().filter(|process| process.roles.gateway && process.lifeline.is_alive()))
        };
        self.processes.wait(running).await
    }

    pub(crate) fn occupy(&self, place: usize, process: Option<SimProcess>) {
        let mut places = self.processes.with(Clone::clone);
        places[place] = process;
        self.processes.set(places);
    }

    /// Restarts a server whenever it dies. Faults stop at `calm_at`.
    async fn supervise(self: Arc<Self>, place: usize, calm_at: Instant) {
        loop {
            let process = SimProcess::start(&self.ground, &self.faults, self.roles[place]);
            self.occupy(place, Some(process.clone()));
            let planned = self.faults.inject(300, Fault::GracefulStop).then(|| self.faults.millis(40_000));
            tokio::select! {
                biased;
                () = process.lifeline.died() => {}
                () = tokio::time::sleep(planned.unwrap_or(Duration::MAX)) => process.stop().await,
                () = self.disturb(&process, calm_at) => {}
            }
            process.kill();
            self.occupy(place, None);
            tokio::time::sleep(self.faults.millis(15_000)).await;
        }
    }

    /// From time to time one of several processes is cut off or stalled, about long enough for the others to close its edge.
    /// Never returns.
    async fn disturb(&self, process: &SimProcess, calm_at: Instant) {
        while self.ground.shared.is_some() && self.faults.are_on() {
            tokio::time::sleep(self.faults.millis(30_000)).await;
            let cut_off = self.faults.inject(300, Fault::ProcessCutOff).then_some(Trouble::CutOff);
            let stalled = || self.faults.inject(300, Fault::ProcessStalled).then_some(Trouble::Stalled);
            let Some(trouble) = cut_off.or_else(stalled) else { continue };
            // The trouble is a fault, so it ends with the others.
            let until = calm_at.min(Instant::now() + Duration::from_secs(8) + self.faults.millis(20_000));
            process.link.disturb(trouble, until);
            tokio::time::sleep_until(until).await;
        }
        std::future::pending::<()>().await;
    }

    /// Everything ends, nothing is left, and every slot is free. If not, the witness's record may say why.
    pub(crate) async fn come_to_rest(&self) -> Result<(), Violation> {
        match self.settle().await {
            Ok(()) => {
                families::settle(self).await?;
                self.places_are_free().await?;
                outputs::settle(self).await?;
                trail::settle(self).await?;
                // Runs take messages about late results until then.
                self.settle().await
            }
            Err(stuck) => {
                self.witness.testify().await?;
                Err(stuck)
            }
        }
    }

    /// When nothing runs, no slot may count as taken, except by workers whose silence is still tolerated.
    async fn places_are_free(&self) -> Result<(), Violation> {
        let deadline = Instant::now() + PLACES_FREE;
        loop {
            let running = self.processes.with(|places| places.iter().flatten().cloned().collect::<Vec<_>>());
            let mut workers = running.iter().flat_map(|process| process.engine.workers());
            let Some(busy) = workers.find(|worker| worker.busy > 0) else { return Ok(()) };
            if Instant::now() > deadline {
                return Err(Violation::new("A-5 an ended attempt frees its place", format!("{busy:?}")));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Liveness: without faults everything ends.
    async fn settle(&self) -> Result<(), Violation> {
        let deadline = Instant::now() + CALM;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let live = self.disk.totals().await.map(|totals| totals.live.iter().sum::<u64>()).unwrap_or(u64::MAX);
            let open = flow::settle(self).await? + sagas::settle(self).await? + times::left(self).await?;
            if open == 0 && live == 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(check::stuck(self).await);
            }
        }
    }
}
