//! Wall-clock time.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::clock_guard::{ClockChange, ClockGuard, Jump};
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// What is known of jumps; nothing for a clock that is not guarded.
    fn state(&self) -> ClockState {
        ClockState::default()
    }
}

/// Time that cannot be set: it counts on while the machine runs, and while it sleeps.
pub trait Steady: Send + Sync {
    fn elapsed(&self) -> Duration;
}

/// What a guarded clock saw of its wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockState {
    /// The jump that is not followed, if there is one.
    pub jump: Option<Jump>,
    /// When it will be, if it stands.
    pub settle: Duration,
    /// Jumps since the start.
    pub jumps: u64,
    /// How many of them were followed.
    pub followed: u64,
    /// The latest one that was, in milliseconds; negative if time went back.
    pub last_followed_ms: i64,
}

impl ClockState {
    pub fn count(&mut self, turn: Option<ClockChange>) {
        match turn {
            Some(ClockChange::Jumped(_)) => self.jumps += 1,
            Some(ClockChange::Followed(by)) => {
                // One that is followed as soon as it is seen was not counted yet.
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
    /// Goes on with what an earlier process knew, if it knew something and the steady clock counted on since.
    pub fn new(wall: Arc<dyn Clock>, steady: Arc<dyn Steady>, settle: Duration, kept: Option<ClockGuard>) -> Self {
        let guard = kept.unwrap_or_else(|| ClockGuard::new(wall.now(), steady.elapsed()));
        let jumps = u64::from(guard.jump(steady.elapsed()).is_some());
        let state = ClockState { settle, jumps, ..ClockState::default() };
        Self { wall, steady, settle, state: Mutex::new((guard, state)) }
    }

    /// What the next process goes on with.
    pub fn guard(&self) -> ClockGuard {
        self.state.lock().0
    }
}

impl Clock for GuardedClock {
    fn now(&self) -> Timestamp {
        let mut locked = self.state.lock();
        let (guard, state) = &mut *locked;
        // Under the lock: of two readings that overtake each other the older one would look like a step back.
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
