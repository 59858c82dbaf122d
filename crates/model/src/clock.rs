//! A clock that only a test advances.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lockgate_core::time::Timestamp;

use lockgate_ports::clock::Clock;

/// Time under the test's control.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn at(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_millis()))
    }

    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    pub fn advance(&self, span: Duration) {
        self.set(self.now() + span);
    }
}

impl Default for ManualClock {
    /// A date in 2023, so that spans can be subtracted without reaching zero.
    fn default() -> Self {
        Self::at(Timestamp::from_millis(1_700_000_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
