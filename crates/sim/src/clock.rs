//! Wall-clock time that follows the paused runtime.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::time::Timestamp;
use lockgate_ports::{Clock, Steady};
use tokio::time::Instant;

pub(crate) struct SimClock {
    began: Instant,
}

/// 2026-01-01: any time well after the epoch will do.
pub(crate) const BASE: Timestamp = Timestamp::from_millis(1_767_225_600_000);

impl SimClock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now() }
    }
}

/// How far a clock is ahead or behind at most, apart from jumps.
pub(crate) const SKEW_MS_MAX: u64 = 2_000;

/// A clock that is wrong by the same amount all the time.
pub(crate) struct SkewedClock {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ahead: Duration,
    pub(crate) behind: Duration,
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        self.clock.now() + self.ahead - self.behind
    }
}

/// A clock that is hours wrong between two moments.
pub(crate) struct JumpyClock {
    pub(crate) clock: SkewedClock,
    pub(crate) jump: Option<Jump>,
}

pub(crate) struct Jump {
    pub(crate) from: Instant,
    pub(crate) until: Instant,
    pub(crate) by: Duration,
    pub(crate) back: bool,
}

impl Clock for JumpyClock {
    fn now(&self) -> Timestamp {
        let (now, at) = (self.clock.now(), Instant::now());
        match self.jump.as_ref().filter(|jump| (jump.from..jump.until).contains(&at)) {
            Some(jump) if jump.back => now - jump.by,
            Some(jump) => now + jump.by,
            None => now,
        }
    }
}

/// Nothing sets the paused runtime.
pub(crate) struct Paused(pub(crate) Instant);

impl Steady for Paused {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        BASE + self.began.elapsed()
    }
}
