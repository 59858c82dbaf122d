//! Wall-clock time that follows the paused runtime.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::time::Timestamp;
use lockgate_ports::Clock;
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

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        BASE + self.began.elapsed()
    }
}
