//! The clock guard: derives the time from two clocks of one machine, the wall clock, which people and time services set, and
//! a steady clock, which nothing sets.
//!
//! The guarded time advances with the steady clock. It follows a wall clock that drifts. It follows one that jumps only
//! after the jump has lasted for long, so that a wrong time that is corrected within minutes never enters a stored row.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// A wall clock that differs from the guarded time by this much has jumped. Corrections by time services are smaller steps.
pub const JUMP: Duration = Duration::from_secs(2);
/// The clocks of several machines may differ by this much; a stamp that lies further ahead was made by a wrong clock.
pub const SKEW_MAX: Duration = Duration::from_secs(60);
/// The guarded time follows a drift by at most 1/`SLEW` of the time that passes, so it never goes back.
const SLEW: i64 = 10;

/// The guarded time, and a jump of the wall clock that it does not follow yet. Valid as long as the steady clock counts on,
/// so one process may hand it to the next until the machine restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockGuard {
    /// The guarded time minus the steady clock, in milliseconds.
    offset: i64,
    /// The steady time up to which the drift has been followed.
    #[serde(default)]
    slewed_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    /// The wall clock minus the steady clock.
    offset: i64,
    since: i64,
}

/// A change of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChange {
    /// The wall clock jumped by this many milliseconds, back if negative. The guarded time does not follow.
    Jumped(i64),
    /// The wall clock returned before the jump had lasted for long.
    Returned,
    /// The jump has lasted so long that the guarded time moved by this many milliseconds.
    Followed(i64),
}

/// A jump that the guarded time does not follow yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// How far the wall clock is ahead of the guarded time, in milliseconds; negative if it is behind.
    pub ahead_ms: i64,
    pub stood: Duration,
}

impl ClockGuard {
    /// Starts from the wall clock, because there is nothing to compare it with.
    pub fn new(wall: Timestamp, steady: Duration) -> Self {
        let steady = millis(steady);
        Self { offset: wall.as_millis().saturating_sub(steady), slewed_at: steady, held: None }
    }

    /// The time now, and a change of the wall clock if there was one. A jump is followed once it has lasted for `settle`.
    pub fn read(&mut self, wall: Timestamp, steady: Duration, settle: Duration) -> (Timestamp, Option<ClockChange>) {
        let steady = millis(steady);
        let shown = wall.as_millis().saturating_sub(steady);
        let turn = if is_jump(shown.saturating_sub(self.offset)) {
            self.hold(shown, steady, settle)
        } else {
            self.slew(shown, steady);
            self.held.take().map(|_| ClockChange::Returned)
        };
        (Timestamp::from_millis(self.offset.saturating_add(steady)), turn)
    }

    /// The guarded time by the steady clock alone.
    pub fn at(&self, steady: Duration) -> Timestamp {
        Timestamp::from_millis(self.offset.saturating_add(millis(steady)))
    }

    /// The jump that is not followed yet, if there is one.
    pub fn jump(&self, steady: Duration) -> Option<Jump> {
        let held = self.held?;
        let stood = millis(steady).saturating_sub(held.since);
        let ahead_ms = held.offset.saturating_sub(self.offset);
        Some(Jump { ahead_ms, stood: Duration::from_millis(u64::try_from(stood).unwrap_or(0)) })
    }

    /// Whether the next process should read this instead of `kept`. Small drift is not worth a write each time.
    pub fn differs(&self, kept: &Self) -> bool {
        let moved = self.offset.saturating_sub(kept.offset).unsigned_abs();
        self.held.map(|held| held.since) != kept.held.map(|held| held.since) || u128::from(moved) * 4 > JUMP.as_millis()
    }

    fn hold(&mut self, shown: i64, steady: i64, settle: Duration) -> Option<ClockChange> {
        let by = shown.saturating_sub(self.offset);
        let same = self.held.filter(|held| !is_jump(shown.saturating_sub(held.offset)));
        let since = same.map_or(steady, |held| held.since);
        if steady.saturating_sub(since) >= millis(settle) {
            (self.offset, self.slewed_at, self.held) = (shown, steady, None);
            return Some(ClockChange::Followed(by));
        }
        self.held = Some(Held { offset: shown, since });
        same.is_none().then_some(ClockChange::Jumped(by))
    }

    fn slew(&mut self, shown: i64, steady: i64) {
        let apart = shown.saturating_sub(self.offset);
        let most = steady.saturating_sub(self.slewed_at).max(0) / SLEW;
        // Reads in quick succession each allow a drift of 0; keeping `slewed_at` lets the time between them add up.
        if apart == 0 || most > 0 {
            self.offset = self.offset.saturating_add(apart.clamp(-most, most));
            self.slewed_at = steady;
        }
    }
}

/// How far a stamp is ahead of the right time, if so far that a wrong clock must have made it.
pub fn stamped_ahead(stamp: Timestamp, right: Timestamp) -> Option<Duration> {
    Some(stamp.since(right)).filter(|ahead| *ahead > SKEW_MAX)
}

fn is_jump(apart: i64) -> bool {
    u128::from(apart.unsigned_abs()) >= JUMP.as_millis()
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: i64 = 1_767_225_600_000;
    const HOUR: i64 = 3_600_000;
    const SETTLE: Duration = Duration::from_secs(600);

    struct Stage {
        guard: ClockGuard,
    }

    impl Stage {
        fn new() -> Self {
            Self { guard: ClockGuard::new(Timestamp::from_millis(BASE), Duration::ZERO) }
        }

        /// Reads at a steady time with a wall clock that is `wrong` milliseconds off; returns the error of the guarded time.
        fn at(&mut self, steady: i64, wrong: i64) -> (i64, Option<ClockChange>) {
            let wall = Timestamp::from_millis(BASE + steady + wrong);
            let (now, turn) = self.guard.read(wall, span(steady), SETTLE);
            (now.as_millis() - BASE - steady, turn)
        }
    }

    fn span(millis: i64) -> Duration {
        Duration::from_millis(u64::try_from(millis).expect("not negative"))
    }

    #[test]
    fn a_jump_that_is_taken_back_never_shows() {
        for wrong in [HOUR, -HOUR, 2_000, -2_000] {
            let mut stage = Stage::new();
            assert_eq!(stage.at(1_000, 0), (0, None));
            assert_eq!(stage.at(2_000, wrong), (0, Some(ClockChange::Jumped(wrong))));
            assert_eq!(stage.at(12_000, wrong), (0, None));
            let jump = stage.guard.jump(span(12_000)).expect("it is told");
            assert_eq!((jump.ahead_ms, jump.stood), (wrong, Duration::from_secs(10)));
            assert_eq!(stage.at(12_001, 0), (0, Some(ClockChange::Returned)));
            assert_eq!((stage.at(13_000, 0), stage.guard.jump(span(13_000))), ((0, None), None));
        }
    }

    #[test]
    fn a_jump_that_stands_is_followed_at_once_when_its_time_is_up() {
        let mut stage = Stage::new();
        assert_eq!(stage.at(1_000, HOUR).0, 0);
        assert_eq!(stage.at(600_999, HOUR), (0, None));
        assert_eq!(stage.at(601_000, HOUR), (HOUR, Some(ClockChange::Followed(HOUR))));
        assert_eq!(stage.guard.jump(span(601_000)), None);
        // The clock jumps back by the hour.
        assert_eq!(stage.at(602_000, 0), (HOUR, Some(ClockChange::Jumped(-HOUR))));
        assert_eq!(stage.at(1_202_000, 0), (0, Some(ClockChange::Followed(-HOUR))));
    }

    #[test]
    fn a_second_jump_begins_to_stand_anew() {
        let mut stage = Stage::new();
        assert_eq!(stage.at(1_000, HOUR).1, Some(ClockChange::Jumped(HOUR)));
        assert_eq!(stage.at(600_000, 2 * HOUR), (0, Some(ClockChange::Jumped(2 * HOUR))));
        assert_eq!(stage.at(1_199_000, 2 * HOUR), (0, None));
        assert_eq!(stage.at(1_200_000, 2 * HOUR), (2 * HOUR, Some(ClockChange::Followed(2 * HOUR))));
    }

    #[test]
    fn a_small_step_is_followed_slowly_however_often_the_time_is_read() {
        for every in [1, 7, 1_000] {
            let mut stage = Stage::new();
            let mut last = 0;
            for steady in (0..=30_000).step_by(every) {
                let (wrong, turn) = stage.at(steady, -1_900);
                assert_eq!(turn, None);
                assert!(steady + wrong >= last, "it went back");
                last = steady + wrong;
            }
            assert_eq!(stage.at(31_000, -1_900).0, -1_900);
        }
    }

    #[test]
    fn what_is_kept_goes_on_in_the_next_process() {
        let mut stage = Stage::new();
        stage.at(1_000, HOUR);
        let kept = serde_json::to_string(&stage.guard).expect("text");
        let mut next = Stage { guard: serde_json::from_str(&kept).expect("read") };
        assert!(!next.guard.differs(&stage.guard));
        assert_eq!(next.at(300_000, HOUR), (0, None), "the restart is not a new jump");
        assert_eq!(next.at(601_000, HOUR), (HOUR, Some(ClockChange::Followed(HOUR))));
        assert!(next.guard.differs(&stage.guard));
        // The clock was set while no process ran.
        let mut next = Stage { guard: Stage::new().guard };
        assert_eq!(next.at(50_000, -HOUR), (0, Some(ClockChange::Jumped(-HOUR))));
    }

    #[test]
    fn who_wants_no_guard_gets_the_wall_clock() {
        let mut guard = ClockGuard::new(Timestamp::from_millis(BASE), Duration::ZERO);
        let (now, turn) = guard.read(Timestamp::from_millis(BASE + HOUR), Duration::ZERO, Duration::ZERO);
        assert_eq!((now.as_millis(), turn), (BASE + HOUR, Some(ClockChange::Followed(HOUR))));
    }

    proptest! {
        #[test]
        fn whatever_a_clock_shows_for_less_than_the_settling_time_moves_nothing_far(
            reads in proptest::collection::vec((0_i64..20_000, -10 * HOUR..10 * HOUR), 1..25)
        ) {
            let (mut stage, mut steady, mut last) = (Stage::new(), 0, 0);
            for (passed, wrong) in reads {
                steady += passed;
                let (off, _) = stage.at(steady, wrong);
                prop_assert!(off.abs() < 2_000 + steady / SLEW && steady + off >= last);
                last = steady + off;
            }
        }
    }
}
