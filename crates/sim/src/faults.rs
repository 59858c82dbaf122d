//! The dice. One stream of random numbers decides everything, so a seed is a whole story.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate_ports::Entropy;
use lockgate_ports::memory::SeededEntropy;
use parking_lot::Mutex;

/// How often each fault was injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    pub crashes: u64,
    pub unavailable: u64,
    pub unknown_outcomes: u64,
    pub slow_calls: u64,
    pub bells_lost: u64,
    pub bells_doubled: u64,
    pub kernel_silent: u64,
    pub workers_killed: u64,
    pub workers_hung: u64,
    pub streams_cut: u64,
    pub results_doubled: u64,
    pub attempts_hidden: u64,
    pub calls_dropped: u64,
    pub graceful_stops: u64,
    pub lanes_wiped: u64,
    pub lanes_missed: u64,
}

impl Injected {
    /// Whether every kind of fault happened.
    pub fn is_complete(&self) -> bool {
        let Self {
            crashes,
            unavailable,
            unknown_outcomes,
            slow_calls,
            bells_lost,
            bells_doubled,
            kernel_silent,
            workers_killed,
            workers_hung,
            streams_cut,
            results_doubled,
            attempts_hidden,
            calls_dropped,
            graceful_stops,
            lanes_wiped,
            lanes_missed,
        } = *self;
        let kinds = [
            crashes,
            unavailable,
            unknown_outcomes,
            slow_calls,
            bells_lost,
            bells_doubled,
            kernel_silent,
            workers_killed,
            workers_hung,
            streams_cut,
            results_doubled,
            attempts_hidden,
            calls_dropped,
            graceful_stops,
            lanes_wiped,
            lanes_missed,
        ];
        kinds.iter().all(|count| *count > 0)
    }

    pub fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.unavailable += other.unavailable;
        self.unknown_outcomes += other.unknown_outcomes;
        self.slow_calls += other.slow_calls;
        self.bells_lost += other.bells_lost;
        self.bells_doubled += other.bells_doubled;
        self.kernel_silent += other.kernel_silent;
        self.workers_killed += other.workers_killed;
        self.workers_hung += other.workers_hung;
        self.streams_cut += other.streams_cut;
        self.results_doubled += other.results_doubled;
        self.attempts_hidden += other.attempts_hidden;
        self.calls_dropped += other.calls_dropped;
        self.graceful_stops += other.graceful_stops;
        self.lanes_wiped += other.lanes_wiped;
        self.lanes_missed += other.lanes_missed;
    }
}

pub(crate) struct Faults {
    entropy: Arc<SeededEntropy>,
    on: AtomicBool,
    injected: Mutex<Injected>,
}

impl Faults {
    pub(crate) fn new(entropy: Arc<SeededEntropy>) -> Self {
        Self { entropy, on: AtomicBool::new(true), injected: Mutex::default() }
    }

    /// From here on nothing goes wrong any more.
    pub(crate) fn stop(&self) {
        self.on.store(false, Ordering::Relaxed);
    }

    pub(crate) fn are_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn injected(&self) -> Injected {
        *self.injected.lock()
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

    /// Injects a fault `per_mille` times in a thousand while faults are on, and counts it.
    pub(crate) fn inject(&self, per_mille: u64, count: impl FnOnce(&mut Injected) -> &mut u64) -> bool {
        let hit = self.are_on() && self.chance(per_mille);
        if hit {
            *count(&mut self.injected.lock()) += 1;
        }
        hit
    }
}
