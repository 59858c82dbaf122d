//! The fault injector. One stream of random numbers decides everything, so a seed determines the whole story.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lockgate_model::SeededEntropy;
use lockgate_ports::Entropy;
use parking_lot::Mutex;
use tokio::time::Instant;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What can go wrong in a story.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

faults! {
    /// A process dies at a Store call, before or after the change is on disk, or at another call.
    Crash = "crash",
    GracefulStop = "graceful-stop",
    /// A Store call fails and changes nothing.
    Unavailable = "unavailable",
    /// A Store call succeeds, and its caller gets no answer.
    UnknownOutcome = "unknown-outcome",
    SlowCall = "slow-call",
    BellLost = "bell-lost",
    BellDoubled = "bell-doubled",
    BellDelayed = "bell-delayed",
    KernelSilent = "kernel-silent",
    /// The kernel takes longer than a Store call may.
    KernelSlow = "kernel-slow",
    WorkerKilled = "worker-killed",
    WorkerHung = "worker-hung",
    StreamCut = "stream-cut",
    /// A worker reports one result twice.
    ResultDoubled = "result-doubled",
    /// A worker omits a running attempt from its inventory.
    AttemptHidden = "attempt-hidden",
    /// A client goes away in the middle of a call.
    CallDropped = "call-dropped",
    /// Shared lanes forget everything.
    LanesWiped = "lanes-wiped",
    /// Shared lanes do not receive one call.
    LanesMissed = "lanes-missed",
    /// Shared lanes execute a call, and the answer is lost.
    LanesUnanswered = "lanes-unanswered",
    /// A process starts with a clock that is up to two seconds wrong.
    ClockSkewed = "clock-skewed",
    /// The clock of a process is hours off for a while, and then right again.
    ClockJumped = "clock-jumped",
    /// A Store call hangs until its deadline, and may have changed something.
    CallHung = "call-hung",
    /// No Store call succeeds for a while.
    StoreOutage = "store-outage",
    /// A message between a worker and its edge takes seconds.
    MessageDelayed = "message-delayed",
    /// A worker's first message arrives after its second.
    MessageReordered = "message-reordered",
    /// A worker reports a start and a success of an attempt that it was never given.
    ReportForged = "report-forged",
    /// A worker ignores a stop, finishes the attempt and reports it.
    StopIgnored = "stop-ignored",
    /// A handler submits children after it has reported its end, at once or long after.
    ChildrenLate = "children-late",
    /// A message to or from a worker over NATS is lost.
    PostLost = "post-lost",
    /// A worker over NATS sends its results twice, the second time seconds later and perhaps to another process.
    PostDoubled = "post-doubled",
    /// Two processes believe that they hold one leader lease.
    LeaderDoubled = "leader-doubled",
    /// One of several processes cannot reach any server for a while, although its workers and clients reach it.
    ProcessCutOff = "process-cut-off",
    /// One of several processes stalls for a while: its calls and messages continue afterwards.
    ProcessStalled = "process-stalled",
    /// A write to a shared Store takes effect seconds after its caller got an unknown outcome.
    WriteLate = "write-late",
    /// An operator pauses the pool for a while.
    PoolPaused = "pool-paused",
    /// An operator drains a worker.
    WorkerDrained = "worker-drained",
}

/// How often each fault was injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injected(Vec<u64>);

impl Default for Injected {
    fn default() -> Self {
        Self(vec![0; Fault::ALL.len()])
    }
}

impl Injected {
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Faults that never happened.
    pub fn missing(&self) -> Vec<Fault> {
        Fault::ALL.iter().copied().filter(|fault| self.of(*fault) == 0).collect()
    }

    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>12}", "fault", "injected")?;
        Fault::ALL.iter().try_for_each(|fault| writeln!(f, "{:<24}{:>12}", fault.as_str(), self.of(*fault)))
    }
}

pub(crate) struct Faults {
    entropy: Arc<SeededEntropy>,
    /// Faults that never happen in this story.
    without: BTreeSet<Fault>,
    on: AtomicBool,
    injected: Mutex<Injected>,
    store_back_at: Mutex<Option<Instant>>,
    /// Sessions that were closed meanwhile.
    closed: AtomicUsize,
}

impl Faults {
    pub(crate) fn new(entropy: Arc<SeededEntropy>, without: BTreeSet<Fault>) -> Self {
        Self {
            entropy,
            without,
            on: AtomicBool::new(true),
            injected: Mutex::default(),
            store_back_at: Mutex::default(),
            closed: AtomicUsize::new(0),
        }
    }

    /// From here on no fault is injected.
    pub(crate) fn stop(&self) {
        self.on.store(false, Ordering::Relaxed);
        *self.store_back_at.lock() = None;
    }

    /// No Store call succeeds for this long.
    pub(crate) fn take_store_away(&self, down: Duration) {
        *self.store_back_at.lock() = Some(Instant::now() + down);
    }

    pub(crate) fn are_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Whether no Store call succeeds now. An outage begins at some call and ends by itself.
    pub(crate) fn store_is_away(&self) -> bool {
        if self.inject(1, Fault::StoreOutage) {
            self.take_store_away(Duration::from_millis(500) + self.millis(12_000));
        }
        self.store_back_at.lock().is_some_and(|at| Instant::now() < at)
    }

    /// A session was closed. Once faults have stopped that is nothing special.
    pub(crate) fn note_closed(&self) {
        self.closed.fetch_add(usize::from(self.are_on()), Ordering::Relaxed);
    }

    /// How many sessions were closed while faults were on.
    pub(crate) fn closed(&self) -> usize {
        self.closed.load(Ordering::Relaxed)
    }

    pub(crate) fn injected(&self) -> Injected {
        self.injected.lock().clone()
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.entropy.fill(&mut bytes);
        u64::from_be_bytes(bytes) % bound.max(1)
    }

    /// True `per_mille` times in a thousand.
    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    pub(crate) fn millis(&self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }

    /// Injects a fault `per_mille` times in a thousand while faults are on, and counts it. A number is drawn even for a
    /// fault that this story excludes, so that the rest of the story does not change.
    pub(crate) fn inject(&self, per_mille: u64, fault: Fault) -> bool {
        let hit = self.are_on() && self.chance(per_mille) && !self.without.contains(&fault);
        if hit {
            self.injected.lock().0[fault as usize] += 1;
        }
        hit
    }
}
