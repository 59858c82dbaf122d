//! Measures how many jobs wait in a queue and how fast they are claimed.

use std::time::Duration;

use super::backlog::Backlog;
use crate::lane::Priority;
use crate::pools::PriorityShares;
use crate::time::Timestamp;

/// The time constant of the pace's moving average.
const MEMORY_S: f64 = 5.0;
/// The lowest pace to calculate with, in jobs per second.
const STANDSTILL: f64 = 0.001;
/// The longest `Retry-After`: after that time the estimate is worth nothing.
const AWAY_MAX: Duration = Duration::from_secs(600);
/// The shortest `Retry-After`: a client that retries sooner costs more than it gains.
const AWAY_MIN: Duration = Duration::from_secs(1);
/// `Retry-After` while the pace is unknown.
const AWAY_UNKNOWN: Duration = Duration::from_secs(10);

/// One observation of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueSample {
    /// Jobs that wait for their turn, in the order of `Priority::ALL`: they are claimed as soon as a slot is free.
    pub waiting: [u64; 4],
    /// Jobs that wait for something else, such as a concurrency limit or a worker that fits. No other job waits longer
    /// because of them.
    pub blocked: u64,
    /// No worker is there to claim anything, so the queue does not move.
    pub stalled: bool,
    /// How many jobs were claimed in total.
    pub served: u64,
    /// How the priorities share the turns.
    pub shares: PriorityShares,
}

/// An estimate of a queue, updated by occasional observations; between them it extrapolates from admitted jobs and the pace.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    looked_at: Timestamp,
    /// Whether jobs waited for a turn at the latest observation.
    was_busy: bool,
    /// When a job was last claimed, or none waited for a turn.
    moved_at: Timestamp,
    /// How many jobs had been claimed in total at the latest observation.
    served: Option<u64>,
    shares: PriorityShares,
    /// The jobs waiting for a turn, and the time of that estimate.
    waiting: (Backlog, Timestamp),
    /// The jobs waiting for something else.
    blocked: u64,
    /// Nothing is claimed until the next observation.
    stalled: bool,
    /// Jobs claimed per second while jobs wait. None until the first was claimed.
    pace: Option<f64>,
    /// Jobs that were refused with a time to retry, and when they were counted.
    promised: (Backlog, Timestamp),
}

impl Meter {
    pub fn observe(&mut self, now: Timestamp, look: &QueueSample) {
        let QueueSample { waiting, blocked, stalled, served, shares } = *look;
        let is_busy = !stalled && waiting.iter().any(|jobs| *jobs > 0);
        // A smaller total means that counting began anew; then there is no difference to measure.
        if let Some(new) = self.served.and_then(|before| served.checked_sub(before)) {
            self.measure(now, new, self.was_busy && is_busy);
        }
        // After a smaller total the next one may include the missing count again, so it is not a base for a difference.
        let went_back = self.served.is_some_and(|before| served < before);
        self.served = (!went_back).then_some(served);
        (self.looked_at, self.was_busy, self.shares) = (now, is_busy, shares);
        (self.waiting, self.blocked, self.stalled) = ((Backlog::of(waiting), now), blocked, stalled);
    }

    /// `new` jobs were claimed since the latest observation; `busy` if jobs waited for a turn all the time.
    fn measure(&mut self, now: Timestamp, new: u64, busy: bool) {
        let seconds = now.since(self.looked_at).as_secs_f64();
        if seconds == 0.0 {
            return;
        }
        if new > 0 || !busy {
            self.moved_at = now;
        }
        let rate = new as f64 / seconds;
        self.pace = match self.pace {
            None => (rate > 0.0).then_some(rate),
            Some(pace) if busy => {
                let pace = pace + (rate - pace) * (1.0 - (-seconds / MEMORY_S).exp());
                Some(pace.max(self.at_least(now)))
            }
            // Without a backlog the rate of claims is the rate of submits: only a lower bound of the pace.
            Some(pace) => Some(pace.max(rate)),
        };
    }

    /// With jobs longer than the time constant, a span without claims is no standstill: no claim for t seconds bounds the
    /// pace by 1/t, not by 0.
    fn at_least(&self, now: Timestamp) -> f64 {
        let quiet = now.since(self.moved_at).as_secs_f64();
        if quiet > MEMORY_S { 1.0 / quiet } else { 0.0 }
    }

    /// The queue could not be observed and cannot move: waiting jobs stay, and the pace is kept for when it moves again.
    pub fn stand_still(&mut self, now: Timestamp) {
        self.waiting = (self.backlog(now), now);
        // Claims until the next observation do not measure the pace.
        (self.stalled, self.served) = (true, None);
    }

    pub fn admit(&mut self, now: Timestamp, priority: Priority, jobs: u64) {
        let mut waiting = self.backlog(now);
        waiting.add(priority, jobs);
        self.waiting = (waiting, now);
    }

    /// How many jobs wait now for any reason, as an estimate.
    pub fn waiting(&self, now: Timestamp) -> u64 {
        self.backlog(now).total().round() as u64 + self.blocked
    }

    /// How long one more job of this priority will wait. None if the pace is unknown.
    pub fn wait(&self, now: Timestamp, priority: Priority) -> Option<Duration> {
        let pace = self.pace?;
        let turns = self.backlog(now).turns_before(priority, self.shares);
        Some(if turns == 0.0 { Duration::ZERO } else { seconds(turns / pace.max(STANDSTILL)) })
    }

    /// The time after which a refused job should retry: when `excess` other jobs are gone, and after jobs of its urgency
    /// that were refused earlier.
    pub fn send_away(&mut self, now: Timestamp, priority: Priority, excess: u64) -> Duration {
        let Some(pace) = self.pace else { return AWAY_UNKNOWN };
        let pace = pace.max(STANDSTILL);
        let (mut promised, counted_at) = self.promised;
        promised.drain(pace * now.since(counted_at).as_secs_f64(), self.shares);
        promised.add(priority, 1);
        let away = seconds((excess as f64 + promised.turns_at_most(priority, self.shares)) / pace);
        // A wait beyond the longest `Retry-After` is cut, so its turn is not reserved.
        if away < AWAY_MAX {
            self.promised = (promised, now);
        }
        away.clamp(AWAY_MIN, AWAY_MAX)
    }

    pub fn pace(&self) -> Option<f64> {
        self.pace
    }

    /// An empty queue stays empty: capacity that no job used is not saved up.
    fn backlog(&self, now: Timestamp) -> Backlog {
        let (mut waiting, reckoned_at) = self.waiting;
        let pace = self.pace.filter(|_| !self.stalled).unwrap_or(0.0);
        waiting.drain(pace * now.since(reckoned_at).as_secs_f64(), self.shares);
        waiting
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn look(waiting: u64, served: u64) -> QueueSample {
        QueueSample { waiting: [0, 0, waiting, 0], served, ..QueueSample::default() }
    }

    /// Observes every half second; `arrive` and `take` are jobs per second.
    fn after(seconds: i64, arrive: u64, take: u64) -> Meter {
        let (mut meter, mut waiting, mut served) = (Meter::default(), 0, 0);
        for tick in 1..=seconds * 2 {
            waiting += arrive / 2;
            let gone = waiting.min(take / 2);
            (waiting, served) = (waiting - gone, served + gone);
            meter.observe(at(tick * 500), &look(waiting, served));
        }
        meter
    }

    #[test]
    fn the_pace_under_a_backlog_is_what_is_taken() {
        let meter = after(30, 1_000, 100);
        assert!((meter.pace().unwrap() - 100.0).abs() < 1.0, "{meter:?}");
        let wait = meter.wait(at(30_000), Priority::Default).unwrap().as_secs_f64();
        assert!((wait - 270.0).abs() < 5.0, "900 too many a second for 30 s, at 100 a second: {wait}");
    }

    #[test]
    fn without_a_backlog_the_pace_is_the_best_that_was_seen_and_nobody_waits() {
        let meter = after(30, 100, 1_000);
        assert!((meter.pace().unwrap() - 100.0).abs() < 1.0);
        assert_eq!(meter.wait(at(30_000), Priority::Default), Some(Duration::ZERO));
    }

    #[test]
    fn between_looks_it_reckons_with_what_came_and_what_went() {
        let mut meter = after(30, 100, 100);
        meter.admit(at(30_000), Priority::Default, 1_000);
        assert_eq!(meter.waiting(at(30_000)), 1_000);
        assert_eq!(meter.waiting(at(35_000)), 500);
        assert_eq!(meter.waiting(at(60_000)), 0);
        assert_eq!(meter.wait(at(30_000), Priority::Default).map(|wait| wait.as_secs()), Some(10));
    }

    #[test]
    fn a_pause_is_no_work_done_ahead() {
        let mut meter = after(30, 100, 100);
        for (millis, waiting) in [(30_400, 50), (31_400, 50), (31_500, 90)] {
            meter.admit(at(millis), Priority::Default, 50);
            assert_eq!(meter.waiting(at(millis)), waiting, "at {millis}");
        }
        assert_eq!(meter.waiting(at(32_000)), 40);
    }

    #[test]
    fn while_nothing_can_be_taken_nobody_is_gone_and_the_pace_is_kept() {
        let mut meter = after(30, 1_000, 100);
        meter.stand_still(at(30_000));
        meter.admit(at(60_000), Priority::Default, 1_000);
        assert_eq!(meter.waiting(at(90_000)), 28_000);
        meter.observe(at(90_000), &look(28_000, 3_000));
        assert!((meter.pace().unwrap() - 100.0).abs() < 1.0, "{meter:?}");
        assert_eq!(meter.waiting(at(91_000)), 27_900);
    }

    #[test]
    fn the_urgent_are_not_sent_away_behind_those_who_are_not() {
        let mut meter = after(30, 1_000, 10);
        let now = at(30_000);
        for _ in 0..1_000 {
            meter.send_away(now, Priority::Default, 20);
        }
        assert!(meter.send_away(now, Priority::Critical, 20) < Duration::from_secs(3));
        assert!(meter.send_away(now, Priority::Low, 20) > Duration::from_secs(100));
    }

    #[test]
    fn where_nothing_was_ever_taken_nobody_knows() {
        let mut meter = after(5, 100, 0);
        assert_eq!(meter.wait(at(5_000), Priority::Default), None);
        assert_eq!(meter.send_away(at(5_000), Priority::Low, 7), AWAY_UNKNOWN);
    }

    #[test]
    fn those_who_are_sent_away_come_back_one_after_the_other() {
        let mut meter = after(30, 1_000, 10);
        let now = at(30_000);
        let spans: Vec<u64> = (0..40).map(|_| meter.send_away(now, Priority::Low, 20).as_secs()).collect();
        assert!(spans[0] == 2 && (5..=6).contains(&spans[39]), "20 too many and 10 a second: {spans:?}");
        assert!(spans.is_sorted());
        let longest = (0..10_000).map(|_| meter.send_away(now, Priority::Low, 20)).max();
        assert_eq!(longest, Some(AWAY_MAX));
        let later = meter.send_away(at(2_000_000), Priority::Low, 0);
        assert_eq!(later, AWAY_MIN, "promises are forgotten when their time has come");
    }

    #[test]
    fn what_waits_for_something_else_slows_nobody_down() {
        let mut meter = after(30, 100, 100);
        let idle = QueueSample { blocked: 1, ..look(0, 3_000) };
        for tick in 61..=1_300 {
            meter.observe(at(tick * 500), &idle);
        }
        let now = at(650_000);
        assert!((meter.pace().unwrap() - 100.0).abs() < 1.0, "{meter:?}");
        assert_eq!(meter.wait(now, Priority::Low), Some(Duration::ZERO));
        assert_eq!(meter.waiting(now), 1, "it is there all the same");
        meter.admit(now, Priority::Default, 100);
        assert_eq!(meter.wait(now, Priority::Default).map(|wait| wait.as_secs()), Some(1));
    }

    #[test]
    fn where_nobody_is_there_what_waits_stays_and_the_pace_is_kept() {
        let mut meter = after(30, 1_000, 100);
        for tick in 61..=400 {
            meter.observe(at(tick * 500), &QueueSample { stalled: true, ..look(27_000, 3_000) });
        }
        let now = at(200_000);
        assert_eq!(meter.wait(now, Priority::Default).map(|wait| wait.as_secs()), Some(270));
        meter.admit(now, Priority::Default, 1_000);
        assert_eq!(meter.waiting(at(260_000)), 28_000);
        meter.observe(at(260_000), &look(28_000, 3_000));
        assert_eq!(meter.waiting(at(261_000)), 27_900, "somebody came");
    }

    #[test]
    fn what_is_taken_rarely_is_not_taken_never() {
        let mut meter = after(5, 100, 100);
        let mut served = 500;
        // All slots are busy, and one becomes free every half minute.
        for tick in 11..=1_200 {
            served += u64::from(tick % 60 == 0);
            meter.observe(at(tick * 500), &look(2, served));
            let wait = meter.wait(at(tick * 500), Priority::Default).unwrap();
            assert!(wait <= Duration::from_secs(60), "{wait:?} for two at tick {tick}: {meter:?}");
        }
        let wait = meter.wait(at(600_000), Priority::Default).unwrap();
        assert!(wait > Duration::from_secs(5), "{wait:?}");
    }

    #[test]
    fn slots_that_stay_taken_make_everybody_wait() {
        let mut meter = after(30, 1_000, 100);
        for tick in 61..=200 {
            meter.observe(at(tick * 500), &look(27_000, 3_000));
        }
        assert!(meter.wait(at(100_000), Priority::Default).unwrap() > Duration::from_secs(86_400));
        meter.observe(at(100_500), &look(27_000, 3));
        assert!(meter.pace().is_some(), "a count that began anew says nothing");
    }
}
