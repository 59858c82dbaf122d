//! One engine, a disk that outlives it, and workers that do as they are told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId};
use lockgate_core::job::{Job, Outcome};
use lockgate_core::request::{Caller, NewJob};
use lockgate_core::scan::FindingKey;
use lockgate_core::time::Timestamp;
use lockgate_core::worker::{Load, WorkerProfile};
use lockgate_engine::{
    Acknowledged, Activated, ApiError, Assignment, Attachment, Beat, ConfigText, Engine, FromWorker, Hello, InventoryItem,
    LocalKernel, Metrics, Ports, ResultReport, Settings, ToWorker, Why,
};
use lockgate_memory::{MemoryBus, MemoryCounters, MemoryLanes, MemoryOutlet, WindowBounds};
use lockgate_model::{MemoryStore, SeededEntropy};
use lockgate_ports::{BreakerMove, Clock, JobStore, SnapshotKind};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::bypasses::Switched;
use super::lanes::Distant;
use super::traces::Recorder;

/// Longer than anything here may take, in virtual time.
const PATIENCE: Duration = Duration::from_secs(300);

/// In virtual time this takes no time, and on a real clock it panics.
pub(crate) async fn pass(span: Duration) {
    tokio::time::advance(Duration::ZERO).await;
    tokio::time::sleep(span).await;
}

struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000) + self.0.elapsed()
    }
}

/// What outlives a process.
struct Ground {
    store: MemoryStore,
    lanes: Arc<MemoryLanes>,
    bus: Arc<MemoryBus>,
    counters: Arc<MemoryCounters>,
    clock: Arc<dyn Clock>,
    entropy: Arc<SeededEntropy>,
}

pub(crate) struct Stage {
    pub(crate) engine: Engine,
    pub(crate) store: MemoryStore,
    pub(crate) lanes: Arc<MemoryLanes>,
    /// Whether the lanes are out of reach.
    pub(crate) lanes_off: Arc<AtomicBool>,
    /// Whether what is claimed comes only later.
    pub(crate) lanes_slow: Arc<watch::Sender<bool>>,
    /// Whether the lanes have lost their memory.
    pub(crate) lanes_blank: Arc<AtomicBool>,
    /// Whether the lanes follow later pools than the Store has.
    pub(crate) lanes_ahead: Arc<AtomicBool>,
    pub(crate) bus: Arc<MemoryBus>,
    registry: Registry,
    /// Whether the safety kernel is away.
    pub(crate) kernel_off: Arc<AtomicBool>,
    /// How long it takes to scan a result.
    pub(crate) scans_take: Arc<Mutex<Duration>>,
    /// What the breaker of the safety kernel did.
    pub(crate) breaker_moves: Arc<Mutex<Vec<BreakerMove>>>,
    pub(crate) counters: Arc<MemoryCounters>,
    /// What it wrote about its work.
    pub(crate) spans: Arc<Recorder>,
    /// The world outside.
    pub(crate) outlet: Arc<MemoryOutlet>,
    pub(crate) clock: Arc<dyn Clock>,
    entropy: Arc<SeededEntropy>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::with_lanes(settings, Arc::default())
    }

    /// Its lanes keep the ids of what waits, and no more.
    pub(crate) fn with_ids_alone() -> Self {
        let bounds = WindowBounds { total_bytes: 0, ..WindowBounds::default() };
        Self::with_lanes(Settings::default(), Arc::new(MemoryLanes::new(bounds)))
    }

    /// Its clock is so much behind the Store's, once that much has passed.
    pub(crate) fn behind(span: Duration) -> Self {
        let [stores, own] = [Instant::now(), Instant::now() + span].map(|since| Arc::new(PausedClock(since)));
        Self::with_clocks(Settings::default(), Arc::default(), stores, own)
    }

    fn with_lanes(settings: Settings, lanes: Arc<MemoryLanes>) -> Self {
        let clock = Arc::new(PausedClock(Instant::now()));
        Self::with_clocks(settings, lanes, clock.clone(), clock)
    }

    pub(crate) fn with_clocks(
        settings: Settings,
        lanes: Arc<MemoryLanes>,
        stores: Arc<dyn Clock>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let ground = Ground {
            store: MemoryStore::new(stores),
            lanes,
            bus: Arc::default(),
            counters: Arc::new(MemoryCounters::new(clock.clone())),
            entropy: Arc::new(SeededEntropy::new(7)),
            clock,
        };
        Self::on(ground, settings)
    }

    /// One of several processes that share everything.
    pub(crate) fn shared() -> Self {
        Self::with(Settings { exclusive_store: false, ..Settings::default() })
    }

    /// Another process on the same ground.
    pub(crate) fn beside(&self) -> Self {
        self.beside_on(Arc::new(self.bus.another()))
    }

    /// Another process on the same ground, out of earshot.
    pub(crate) fn beside_unheard(&self) -> Self {
        self.beside_on(Arc::default())
    }

    fn beside_on(&self, bus: Arc<MemoryBus>) -> Self {
        self.beside_as(bus, Settings::default())
    }

    /// Another process on the same ground, with settings of its own.
    pub(crate) fn beside_with(&self, settings: Settings) -> Self {
        self.beside_as(Arc::new(self.bus.another()), settings)
    }

    fn beside_as(&self, bus: Arc<MemoryBus>, settings: Settings) -> Self {
        let (store, lanes, counters) = (self.store.clone(), self.lanes.clone(), self.counters.clone());
        let ground = Ground { store, lanes, bus, counters, clock: self.clock.clone(), entropy: self.entropy.clone() };
        Self::on(ground, Settings { exclusive_store: false, ..settings })
    }

    fn on(ground: Ground, settings: Settings) -> Self {
        let Ground { store, lanes, bus, counters, clock, entropy } = ground;
        let mut registry = Registry::default();
        let kernel_off = Arc::new(AtomicBool::new(false));
        let lanes_off = Arc::new(AtomicBool::new(false));
        let lanes_slow = Arc::new(watch::Sender::new(false));
        let lanes_blank = Arc::new(AtomicBool::new(false));
        let lanes_ahead = Arc::new(AtomicBool::new(false));
        let scans_take: Arc<Mutex<Duration>> = Arc::default();
        let breaker_moves: Arc<Mutex<Vec<BreakerMove>>> = Arc::default();
        let spans = Arc::new(Recorder::new(clock.clone()));
        let outlet = Arc::new(MemoryOutlet::default());
        let ports = Ports {
            store: Arc::new(store.clone()),
            lanes: Arc::new(Distant {
                lanes: lanes.clone(),
                off: lanes_off.clone(),
                slow: lanes_slow.clone(),
                blank: lanes_blank.clone(),
                ahead: lanes_ahead.clone(),
            }),
            bus: bus.clone(),
            kernel: Arc::new(Switched {
                kernel: LocalKernel::new(clock.clone(), FindingKey::new([7; 32]), None),
                off: kernel_off.clone(),
                scans_take: scans_take.clone(),
                moves: breaker_moves.clone(),
            }),
            counters: Some(counters.clone()),
            clock: clock.clone(),
            entropy: entropy.clone(),
            spans: Some(spans.clone()),
            outlets: vec![outlet.clone()],
        };
        let engine = Engine::new(ports, settings, Metrics::new(&mut registry));
        let (stop, stopping) = watch::channel(false);
        let running = engine.clone();
        let running = tokio::spawn(async move { running.run(stopping).await });
        Self {
            engine,
            store,
            lanes,
            lanes_off,
            lanes_slow,
            lanes_blank,
            lanes_ahead,
            bus,
            registry,
            kernel_off,
            scans_take,
            breaker_moves,
            counters,
            spans,
            outlet,
            clock,
            entropy,
            stop,
            running,
        }
    }

    /// The process dies; after `downtime` a new one starts on the same disk.
    pub(crate) async fn crash(self, downtime: Duration) -> Self {
        self.crash_into(downtime, Settings::default()).await
    }

    /// The same, and the new one has settings of its own.
    pub(crate) async fn crash_into(self, downtime: Duration, settings: Settings) -> Self {
        let Self { store, clock, entropy, running, stop, .. } = self;
        running.abort();
        drop(stop);
        wait_out(downtime).await;
        let counters = Arc::new(MemoryCounters::new(clock.clone()));
        let ground = Ground { store, lanes: Arc::default(), bus: Arc::default(), counters, clock, entropy };
        Self::on(ground, settings)
    }

    /// The process dies; the next one on the same ground has another clock.
    pub(crate) fn crash_with(self, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let Self { store, entropy, running, stop, .. } = self;
        running.abort();
        drop(stop);
        let counters = Arc::new(MemoryCounters::new(clock.clone()));
        let ground = Ground { store, lanes: Arc::default(), bus: Arc::default(), counters, clock, entropy };
        Self::on(ground, settings)
    }

    /// kill -9.
    pub(crate) fn kill(&self) {
        self.running.abort();
    }

    /// SIGTERM.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        self.running.await.expect("ended well");
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Every series as it is scraped.
    pub(crate) fn series(&self) -> Vec<(String, f64)> {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("encoded");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let of = |line: &str| line.rsplit_once(' ').map(|(series, value)| (series.to_owned(), value.parse().unwrap_or(0.0)));
        lines.filter_map(of).collect()
    }

    /// The sum over all labels of one metric, or one series of it.
    pub(crate) fn number(&self, name: &str) -> f64 {
        let is_asked = |series: &str| series == name || series.split('{').next() == Some(name);
        let found = self.series().into_iter().filter(|(series, _)| is_asked(series));
        let found: Vec<f64> = found.map(|(_, value)| value).collect();
        assert!(!found.is_empty(), "{name} is not there");
        found.iter().sum()
    }

    /// Waits until a gauge stands where it should.
    pub(crate) async fn until_number(&self, name: &str, wanted: f64) {
        let deadline = Instant::now() + PATIENCE;
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        while (self.number(name) - wanted).abs() > f64::EPSILON {
            assert!(Instant::now() < deadline, "{name} is {}", self.number(name));
            tick.tick().await;
        }
    }

    /// Puts a policy in force.
    pub(crate) async fn apply(&self, text: &str) -> Activated {
        let new = ConfigText { file: "policy.yaml".to_owned(), text: text.to_owned(), expected: None };
        self.engine.activate_policy(&caller(), new).await.expect("in force")
    }

    /// Puts pools in force.
    pub(crate) async fn pools(&self, text: &str) {
        self.try_pools(text).await.expect("in force");
    }

    pub(crate) async fn try_pools(&self, text: &str) -> Result<Activated, ApiError> {
        self.configure(SnapshotKind::Pools, text).await
    }

    pub(crate) async fn timeouts(&self, text: &str) {
        self.configure(SnapshotKind::Timeouts, text).await.expect("in force");
    }

    pub(crate) async fn quotas(&self, text: &str) {
        self.configure(SnapshotKind::Quotas, text).await.expect("in force");
    }

    async fn configure(&self, kind: SnapshotKind, text: &str) -> Result<Activated, ApiError> {
        let new = ConfigText { file: kind.as_str().to_owned(), text: text.to_owned(), expected: None };
        self.engine.activate_config(&caller(), kind, new).await
    }

    /// Waits until placing the job was tried this often.
    pub(crate) async fn until_tried(&self, id: &JobId, tries: u32) {
        self.until_why(id, |why| why.tries.is_some_and(|made| made.made >= tries)).await;
    }

    pub(crate) async fn until_reason(&self, id: &JobId, reason: &str) {
        self.until_why(id, |why| why.reason == reason).await;
    }

    async fn until_why(&self, id: &JobId, wanted: impl Fn(&Why) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        loop {
            let why = self.engine.why(&caller(), id).await.expect("explained");
            if wanted(&why) {
                return;
            }
            assert!(Instant::now() < deadline, "it did not happen: {why:?}");
            tick.tick().await;
        }
    }

    pub(crate) async fn submit(&self, job: NewJob) -> JobId {
        let mut answers = self.engine.submit(&caller(), vec![job]).await.expect("taken");
        answers.pop().expect("one answer").expect("accepted").job_id
    }

    pub(crate) async fn job(&self, id: &JobId) -> Job {
        self.store.load(std::slice::from_ref(id)).await.expect("read").pop().flatten().expect("there")
    }

    /// Waits until the job is as wanted.
    pub(crate) async fn until(&self, id: &JobId, wanted: impl Fn(&Job) -> bool) -> Job {
        let deadline = Instant::now() + PATIENCE;
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        loop {
            let job = self.job(id).await;
            if wanted(&job) {
                return job;
            }
            assert!(Instant::now() < deadline, "it did not happen: {job:?}");
            tick.tick().await;
        }
    }
}

/// In virtual time this takes no time.
async fn wait_out(downtime: Duration) {
    tokio::time::sleep(downtime).await;
}

pub(crate) fn caller() -> Caller {
    Caller::new("default", "tester")
}

pub(crate) fn somebody(actor: &str) -> Caller {
    Caller::new("default", actor)
}

pub(crate) fn job(topic: &str) -> NewJob {
    NewJob { topic: topic.to_owned(), ..NewJob::default() }
}

/// What a worker says of itself.
pub(crate) struct Kind {
    pub(crate) pool: &'static str,
    pub(crate) topics: Vec<Arc<str>>,
    pub(crate) slots: u32,
    pub(crate) capabilities: BTreeSet<Arc<str>>,
    pub(crate) labels: BTreeMap<Arc<str>, Arc<str>>,
    pub(crate) prefetch: u32,
    /// Of its own, if it is spoken with by messages.
    pub(crate) lost_after_ms: Option<u64>,
}

impl Kind {
    pub(crate) fn of(pool: &'static str, topics: &[&str], slots: u32) -> Self {
        let topics = topics.iter().map(|topic| Arc::from(*topic)).collect();
        let (capabilities, labels) = (BTreeSet::new(), BTreeMap::new());
        Self { pool, topics, slots, capabilities, labels, prefetch: 0, lost_after_ms: None }
    }
}

/// A worker that does only what the test says, and beats when asked to.
pub(crate) struct Hand {
    pub(crate) attachment: Attachment,
    inbound: Receiver<ToWorker>,
    /// Assignments that came while it waited for something else.
    kept: VecDeque<ToWorker>,
    held: BTreeMap<AttemptToken, JobId>,
    highest: u64,
    beats: u64,
    /// It may leave.
    pub(crate) dismissed: bool,
    /// What its beats say of its slots.
    pub(crate) slots: Option<u32>,
}

impl Hand {
    pub(crate) async fn attach(engine: &Engine, session: &str, topics: &[&str], slots: u32) -> Self {
        Self::attach_with(engine, session, topics, slots, BTreeMap::new(), 0).await
    }

    pub(crate) async fn attach_with(
        engine: &Engine,
        session: &str,
        topics: &[&str],
        slots: u32,
        held: BTreeMap<AttemptToken, JobId>,
        highest: u64,
    ) -> Self {
        Self::attach_kind(engine, session, &Kind::of("default", topics, slots), held, highest).await
    }

    pub(crate) async fn attach_as(engine: &Engine, session: &str, kind: &Kind) -> Self {
        Self::try_attach(engine, session, kind).await.expect("attached")
    }

    pub(crate) async fn try_attach(engine: &Engine, session: &str, kind: &Kind) -> Result<Self, ApiError> {
        Self::try_attach_with(engine, session, kind, BTreeMap::new(), 0).await
    }

    pub(crate) async fn attach_kind(
        engine: &Engine,
        session: &str,
        kind: &Kind,
        held: BTreeMap<AttemptToken, JobId>,
        highest: u64,
    ) -> Self {
        Self::try_attach_with(engine, session, kind, held, highest).await.expect("attached")
    }

    async fn try_attach_with(
        engine: &Engine,
        session: &str,
        kind: &Kind,
        held: BTreeMap<AttemptToken, JobId>,
        highest: u64,
    ) -> Result<Self, ApiError> {
        let profile = WorkerProfile {
            worker: session.into(),
            pool: kind.pool.into(),
            topics: kind.topics.clone(),
            capabilities: kind.capabilities.clone(),
            labels: kind.labels.clone(),
            slots: kind.slots,
            in_process: false,
            lost_after_ms: kind.lost_after_ms,
            owner: None,
        };
        let inventory = inventory(&held);
        let hello =
            Hello { session: session.into(), profile, inventory, highest_assignment: highest, prefetch: kind.prefetch };
        let (attachment, _, inbound) = engine.attach(hello).await?;
        Ok(Self { attachment, inbound, kept: VecDeque::new(), held, highest, beats: 0, dismissed: false, slots: None })
    }

    /// What it holds and the highest assignment it took, for its next life.
    pub(crate) fn into_inventory(self) -> (BTreeMap<AttemptToken, JobId>, u64) {
        (self.held, self.highest)
    }

    /// The next message other than answers to beats.
    pub(crate) async fn next(&mut self) -> ToWorker {
        if let Some(kept) = self.kept.pop_front() {
            return kept;
        }
        loop {
            let message = tokio::time::timeout(PATIENCE, self.inbound.recv()).await.expect("in time").expect("attached");
            self.dismissed |= matches!(message, ToWorker::Dismissed);
            if !matches!(message, ToWorker::BeatAck { .. }) {
                return message;
            }
        }
    }

    /// What was said to it, if anything was besides answers to beats.
    pub(crate) fn inbound_now(&mut self) -> Option<ToWorker> {
        std::iter::from_fn(|| self.inbound.try_recv().ok()).find(|said| !matches!(said, ToWorker::BeatAck { .. }))
    }

    /// The same, and what it kept comes first.
    pub(crate) fn said_now(&mut self) -> Option<ToWorker> {
        self.kept.pop_front().or_else(|| self.inbound_now())
    }

    /// Its handler is gone, and it did not say so.
    pub(crate) fn forget(&mut self, assignment: &Assignment) {
        self.held.remove(&assignment.job.life.attempt.token);
    }

    /// Nothing was said to it since it last listened.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.kept.is_empty() && self.inbound.try_recv().is_err()
    }

    /// The next assignment.
    pub(crate) async fn take(&mut self) -> Assignment {
        let mut taken = self.take_many(1).await;
        taken.pop().expect("one")
    }

    /// Assignments until there are this many.
    pub(crate) async fn take_many(&mut self, count: usize) -> Vec<Assignment> {
        let mut taken = Vec::new();
        while taken.len() < count {
            match self.next().await {
                ToWorker::Assign(assignments) => taken.extend(assignments),
                other => panic!("no assignment: {other:?}"),
            }
        }
        assert_eq!(taken.len(), count, "no more than asked for");
        for assignment in &taken {
            self.highest = self.highest.max(assignment.number);
            let attempt = &assignment.job.life.attempt;
            self.held.insert(attempt.token.clone(), assignment.job.request.job_id.clone());
        }
        taken
    }

    pub(crate) async fn start(&self, assignment: &Assignment) {
        let start = (assignment.job.request.job_id.clone(), assignment.job.life.attempt.token.clone());
        self.attachment.receive(FromWorker { starts: vec![start], ..FromWorker::default() }).await;
    }

    pub(crate) async fn beat(&mut self) {
        self.beat_with(Load::default()).await;
    }

    pub(crate) async fn beat_with(&mut self, load: Load) {
        self.beats += 1;
        let inventory = inventory(&self.held);
        let beat = Beat {
            number: self.beats,
            highest_assignment: self.highest,
            inventory,
            active_jobs: 0,
            load,
            slots: self.slots,
        };
        self.attachment.receive(FromWorker { beat: Some(beat), ..FromWorker::default() }).await;
    }

    /// Beats; what the answer says of the lease of its process.
    pub(crate) async fn lease_age(&mut self) -> Duration {
        self.beat().await;
        loop {
            let said = tokio::time::timeout(PATIENCE, self.inbound.recv()).await.expect("in time").expect("attached");
            match said {
                ToWorker::BeatAck { number, lease_age } if number == self.beats => return lease_age,
                _ => {}
            }
        }
    }

    pub(crate) async fn drain(&self) {
        self.attachment.receive(FromWorker { draining: true, ..FromWorker::default() }).await;
    }

    /// Its handler is gone, as it was told.
    pub(crate) async fn let_go(&mut self, assignment: &Assignment) {
        let token = assignment.job.life.attempt.token.clone();
        self.held.remove(&token);
        self.attachment.receive(FromWorker { let_go: vec![token], ..FromWorker::default() }).await;
    }

    /// Reports how an attempt ended that it may have been told to stop; what it was sent meanwhile is kept.
    pub(crate) async fn report_late(&mut self, assignment: &Assignment, outcome: Outcome) -> Acknowledged {
        let token = assignment.job.life.attempt.token.clone();
        let result =
            ResultReport { job_id: assignment.job.request.job_id.clone(), token: token.clone(), outcome, began: None };
        self.attachment.receive(FromWorker { results: vec![result], ..FromWorker::default() }).await;
        self.held.remove(&token);
        let mut kept = VecDeque::new();
        loop {
            match self.next().await {
                ToWorker::Acks(acks) => {
                    self.kept = kept;
                    return acks.into_iter().find(|(acked, _)| *acked == token).expect("acknowledged").1;
                }
                assign @ ToWorker::Assign(_) => kept.push_back(assign),
                _ => {}
            }
        }
    }

    /// Reports an outcome; how it was acknowledged.
    pub(crate) async fn report(&mut self, assignment: &Assignment, outcome: Outcome) -> Acknowledged {
        let token = assignment.job.life.attempt.token.clone();
        let result =
            ResultReport { job_id: assignment.job.request.job_id.clone(), token: token.clone(), outcome, began: None };
        self.attachment.receive(FromWorker { results: vec![result], ..FromWorker::default() }).await;
        self.held.remove(&token);
        loop {
            if let ToWorker::Acks(acks) = self.next().await {
                return acks.into_iter().find(|(acked, _)| *acked == token).expect("acknowledged").1;
            }
        }
    }
}

fn inventory(held: &BTreeMap<AttemptToken, JobId>) -> Vec<InventoryItem> {
    let item = |(token, job_id): (&AttemptToken, &JobId)| InventoryItem {
        job_id: job_id.clone(),
        token: token.clone(),
        started: true,
    };
    held.iter().map(item).collect()
}
