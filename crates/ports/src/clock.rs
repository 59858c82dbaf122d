//! Wall-clock time.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::clock_guard::{ClockChange, ClockGuard, Jump};
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// What a guarded clock knows of jumps; the default for other clocks.
    fn state(&self) -> ClockState {
        ClockState::default()
    }
}

/// A clock that cannot be set: it counts while the machine runs and while it sleeps.
pub trait Steady: Send + Sync {
    fn elapsed(&self) -> Duration;
}

/// What a guarded clock has seen of its wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockState {
    /// The jump that the guarded time does not follow, if there is one.
    pub jump: Option<Jump>,
    /// How long a jump must last before the guarded time follows it.
    pub settle: Duration,
    /// Jumps since the start.
    pub jumps: u64,
    /// How many of them the guarded time followed.
    pub followed: u64,
    /// The latest jump that was followed, in milliseconds; negative if time went back.
    pub last_followed_ms: i64,
}

impl ClockState {
    pub fn count(&mut self, turn: Option<ClockChange>) {
        match turn {
            Some(ClockChange::Jumped(_)) => self.jumps += 1,
            Some(ClockChange::Followed(by)) => {
                // With a settle time of 0, a jump is followed when first seen, so `Jumped` never counted it.
                self.jumps += u64::from(self.settle.is_zero());
                self.followed += 1;
                self.last_followed_ms = by;
            }
            Some(ClockChange::Returned) | None => {}
        }
    }
}

/// A wall clock behind a [`ClockGuard`].
pub struct GuardedClock {
    wall: Arc<dyn Clock>,
    steady: Arc<dyn Steady>,
    settle: Duration,
    state: Mutex<(ClockGuard, ClockState)>,
}

impl GuardedClock {
    /// Continues with the guard of an earlier process, if there is one and the steady clock has counted on since.
    pub fn new(wall: Arc<dyn Clock>, steady: Arc<dyn Steady>, settle: Duration, kept: Option<ClockGuard>) -> Self {
        let guard = kept.unwrap_or_else(|| ClockGuard::new(wall.now(), steady.elapsed()));
        let jumps = u64::from(guard.jump(steady.elapsed()).is_some());
        let state = ClockState { settle, jumps, ..ClockState::default() };
        Self { wall, steady, settle, state: Mutex::new((guard, state)) }
    }

    /// The state for the next process to continue with.
    pub fn guard(&self) -> ClockGuard {
        self.state.lock().0
    }
}

impl Clock for GuardedClock {
    fn now(&self) -> Timestamp {
        let mut locked = self.state.lock();
        let (guard, state) = &mut *locked;
        // Both clocks are read under the lock: of two readings that overtake each other, the older one would look like a
        // step back.
        let (now, turn) = guard.read(self.wall.now(), self.steady.elapsed(), self.settle);
        state.count(turn);
        now
    }

    fn state(&self) -> ClockState {
        let _ = self.now();
        let (guard, state) = *self.state.lock();
        ClockState { jump: guard.jump(self.steady.elapsed()), ..state }
    }
}
