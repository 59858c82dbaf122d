//! Wall-clock time that follows the paused runtime.

use lockgate_core::time::Timestamp;
use lockgate_ports::Clock;
use tokio::time::Instant;

pub(crate) struct SimClock {
    began: Instant,
}

/// 2026-01-01: any time well after the epoch will do.
const BASE: Timestamp = Timestamp::from_millis(1_767_225_600_000);

impl SimClock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now() }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        BASE + self.began.elapsed()
    }
}
