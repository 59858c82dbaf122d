//! Adapts a worker's slots to the load of its machine and the duration of its handlers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::execute::launch;
use super::state::SessionState;

/// Slots that follow the load, within bounds. Adjusted once per beat.
///
/// Above 85 % of the processors, or of the target duration, a worker gives up a tenth of its slots; below 40 % it adds a
/// tenth, if all of them were in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveSlots {
    pub min: u32,
    pub max: u32,
    /// The target for the 95th percentile of handler durations. If set, slots are added as long as handlers stay well below
    /// it and the processors are not busy.
    pub target_p95: Option<Duration>,
}

const BUSY_PERCENT: u32 = 85;
const IDLE_PERCENT: u32 = 40;
/// Handler durations considered. Fewer than the minimum prove nothing.
const TIMES_MAX: usize = 512;
const TIMES_MIN: usize = 20;

/// The load since the last adjustment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadSample {
    pub cpu: Option<u32>,
    pub p95: Option<Duration>,
    /// Whether all slots were in use at some time.
    pub full: bool,
}

impl AdaptiveSlots {
    /// What is wrong with these settings.
    pub(crate) fn fault(&self) -> Option<String> {
        let Self { min, max, .. } = *self;
        (min == 0 || min > max).then(|| format!("adaptive slots must be from 1 up, and not from {min} to {max}"))
    }

    pub(crate) fn begin(&self, slots: u32) -> u32 {
        slots.clamp(self.min, self.max)
    }

    fn next(&self, slots: u32, seen: LoadSample) -> u32 {
        let step = (slots / 10).max(1);
        let late = |target: Duration| seen.p95.is_some_and(|p95| p95 > target);
        let busy = seen.cpu.is_some_and(|cpu| cpu > BUSY_PERCENT);
        if busy || self.target_p95.is_some_and(late) {
            return self.begin(slots.saturating_sub(step));
        }
        let room = match self.target_p95 {
            None => seen.cpu.is_some_and(|cpu| cpu < IDLE_PERCENT),
            Some(target) => seen.p95.is_some_and(|p95| p95 * 5 < target * 4),
        };
        if room && seen.full { self.begin(slots.saturating_add(step)) } else { slots }
    }

    /// Adjusts the session's slots once.
    pub(crate) fn look(&self, session_state: &Arc<SessionState>, cpu: Option<u32>) {
        let (slots, seen) = session_state.seen(cpu);
        let next = self.next(slots, seen);
        if next != slots {
            tracing::info!(from = slots, to = next, ?seen, "slots follow the load");
            launch(session_state, session_state.resize(next));
        }
    }
}

/// The durations of the latest handlers.
#[derive(Debug, Default)]
pub(crate) struct HandlerTimes(VecDeque<Duration>);

impl HandlerTimes {
    pub(crate) fn note(&mut self, took: Duration) {
        if self.0.len() == TIMES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(took);
    }

    /// Removes them, so that the next adjustment considers newer ones.
    pub(crate) fn take_p95(&mut self) -> Option<Duration> {
        if self.0.len() < TIMES_MIN {
            return None;
        }
        let mut times: Vec<Duration> = self.0.drain(..).collect();
        times.sort_unstable();
        times.get(times.len() * 95 / 100).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_cpu() -> AdaptiveSlots {
        AdaptiveSlots { min: 4, max: 100, target_p95: None }
    }

    fn at(cpu: u32, full: bool) -> LoadSample {
        LoadSample { cpu: Some(cpu), p95: None, full }
    }

    #[test]
    fn a_busy_machine_gives_slots_up_and_an_idle_one_adds_what_is_used() {
        let slots = by_cpu();
        assert_eq!(slots.next(50, at(86, true)), 45);
        assert_eq!(slots.next(50, at(85, true)), 50);
        assert_eq!(slots.next(50, at(40, true)), 50);
        assert_eq!(slots.next(50, at(39, true)), 55);
        assert_eq!(slots.next(50, at(39, false)), 50, "nobody needs more");
        assert_eq!(slots.next(5, at(100, true)), 4);
        assert_eq!((slots.next(4, at(100, true)), slots.next(100, at(0, true))), (4, 100), "bounds hold");
        assert_eq!(
            slots.next(50, LoadSample { full: true, ..LoadSample::default() }),
            50,
            "what is not measured changes nothing"
        );
    }

    #[test]
    fn with_a_target_the_time_of_handlers_decides() {
        let slots = AdaptiveSlots { target_p95: Some(Duration::from_millis(100)), ..by_cpu() };
        let took = |ms: u64, cpu: u32| LoadSample { cpu: Some(cpu), p95: Some(Duration::from_millis(ms)), full: true };
        assert_eq!(slots.next(50, took(101, 10)), 45);
        assert_eq!(slots.next(50, took(90, 10)), 50);
        assert_eq!(slots.next(50, took(79, 60)), 55);
        assert_eq!(slots.next(50, took(10, 90)), 45, "a busy machine is busy");
        assert_eq!(slots.next(50, at(10, true)), 50, "nobody knows how long they take");
    }

    #[test]
    fn the_slowest_in_twenty_is_told_once_there_are_enough() {
        let mut times = HandlerTimes::default();
        (1..TIMES_MIN as u64).for_each(|ms| times.note(Duration::from_millis(ms)));
        assert_eq!(times.take_p95(), None);
        (1..=1_000).for_each(|ms| times.note(Duration::from_millis(ms)));
        assert_eq!(times.take_p95(), Some(Duration::from_millis(975)), "of the latest 512");
        assert_eq!(times.take_p95(), None, "each look is at newer ones");
    }

    #[test]
    fn bounds_that_make_no_sense_are_said() {
        assert_eq!(by_cpu().fault(), None);
        assert!(AdaptiveSlots { min: 0, ..by_cpu() }.fault().is_some());
        assert!(AdaptiveSlots { min: 101, ..by_cpu() }.fault().is_some());
    }
}
