//! A circuit breaker as a pure state machine: closed, open, half-open.
//!
//! Failures open it, close together in a row or among the latest calls; after a while a few probes are let through; enough of them that
//! succeed close it, and one that fails opens it again. Time is an argument. Every call carries the ticket it was admitted
//! with, so that an answer that comes after the state moved on changes nothing.
//!
//! All breakers of the tree are this one: before a safety kernel, shared over replicas (the script of the Redis adapter is
//! held to it by conformance cases), and those that workers keep for what their handlers call.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Timestamp;

/// Failures that each take seconds must add up, however short the breaker stays open.
const COUNTED_FOR_MIN: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures that open it: in a row, or among the latest calls with [`Breaker::over_latest`].
    pub fail_budget: u32,
    pub open_for: Duration,
    /// Probes in flight at once while half-open.
    pub probes_max: usize,
    /// Successful probes that close it.
    pub close_after: u32,
    /// A probe without an answer for this long is given up, as a failure would be too harsh on a caller that went away.
    pub probe_ttl: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            fail_budget: 3,
            open_for: Duration::from_secs(30),
            probes_max: 3,
            close_after: 2,
            probe_ttl: Duration::from_secs(10),
        }
    }
}

impl BreakerSettings {
    /// How long after the first failure of a row the others count with it: the time that the breaker stays open, and at least half
    /// a minute. A failure of an hour ago says nothing about a kernel that fails once now.
    pub fn counted_for(&self) -> Duration {
        self.open_for.max(COUNTED_FOR_MIN)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    Open,
    HalfOpen,
}

impl BreakerState {
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// Admission of one call. Valid only for the breaker (and epoch) that issued it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub epoch: u64,
    pub probe: u64,
}

/// The call must not be made; asking again makes sense from this time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub until: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Breaker {
    settings: BreakerSettings,
    /// Calls among which failures are counted; None counts those in a row.
    latest: Option<usize>,
    longest_rest: Duration,
    /// For how long it opens next.
    rest: Duration,
    /// One more with every change of state.
    epoch: u64,
    inner: BreakerPhase,
    asked: u64,
}

#[derive(Clone, Debug)]
enum BreakerPhase {
    Closed { calls: Calls },
    Open { until: Timestamp },
    HalfOpen { probes: Vec<(u64, Timestamp)>, successes: u32 },
}

/// How calls of a closed breaker went.
#[derive(Clone, Debug, Default)]
struct Calls {
    failures: u32,
    /// When the first failure of the row came; the row counts for a while from then on.
    since: Timestamp,
    /// The latest ones, newest first, true for a failure. Empty where those in a row count.
    latest: VecDeque<bool>,
}

impl Calls {
    fn succeeded(&mut self, of_latest: Option<usize>) {
        match of_latest {
            Some(max) => self.remember(false, max),
            None => self.failures = 0,
        }
    }

    /// `in_row` failures came before this one, close enough to count with it.
    fn failed(&mut self, of_latest: Option<usize>, in_row: u32, now: Timestamp) {
        if let Some(max) = of_latest {
            return self.remember(true, max);
        }
        if in_row == 0 {
            self.since = now;
        }
        self.failures = in_row + 1;
    }

    fn remember(&mut self, failed: bool, max: usize) {
        self.latest.truncate(max.saturating_sub(1));
        self.latest.push_front(failed);
        self.failures = u32::try_from(self.latest.iter().filter(|failed| **failed).count()).unwrap_or(u32::MAX);
    }

    fn are_too_bad(&self, budget: u32, of_latest: Option<usize>) -> bool {
        self.failures >= budget && of_latest.is_none_or(|calls| self.latest.len() >= calls)
    }
}

impl Breaker {
    pub fn new(settings: BreakerSettings) -> Self {
        let (longest_rest, rest) = (settings.open_for, settings.open_for);
        let inner = BreakerPhase::Closed { calls: Calls::default() };
        Self { settings, latest: None, longest_rest, rest, epoch: 0, inner, asked: 0 }
    }

    /// Failures count among this many latest calls instead of in a row; it never opens on fewer calls.
    #[must_use]
    pub fn over_latest(self, calls: usize) -> Self {
        Self { latest: Some(calls), ..self }
    }

    /// A probe that fails doubles the time for which it is open, up to this, until it closes.
    #[must_use]
    pub fn resting_up_to(self, longest_rest: Duration) -> Self {
        Self { longest_rest, ..self }
    }

    /// The state at `now`: an open breaker whose time is over is half-open, asked or not.
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match &self.inner {
            BreakerPhase::Closed { .. } => BreakerState::Closed,
            BreakerPhase::Open { until } if now < *until => BreakerState::Open,
            BreakerPhase::Open { .. } | BreakerPhase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Failures that count at `now` while closed; the whole budget otherwise.
    pub fn failures(&self, now: Timestamp) -> u32 {
        match &self.inner {
            BreakerPhase::Closed { calls } if self.latest.is_none() && now >= calls.since + self.settings.counted_for() => 0,
            BreakerPhase::Closed { calls } => calls.failures,
            BreakerPhase::Open { .. } | BreakerPhase::HalfOpen { .. } => self.settings.fail_budget,
        }
    }

    /// When an open breaker lets the first probe through.
    pub fn opens_until(&self) -> Option<Timestamp> {
        match self.inner {
            BreakerPhase::Open { until } => Some(until),
            _ => None,
        }
    }

    /// Asks to make a call.
    pub fn ask(&mut self, now: Timestamp) -> Result<Ticket, Refused> {
        if let BreakerPhase::Open { until } = self.inner {
            if now < until {
                return Err(Refused { until });
            }
            self.become_(BreakerPhase::HalfOpen { probes: Vec::new(), successes: 0 });
        }
        self.asked += 1;
        let ticket = Ticket { epoch: self.epoch, probe: self.asked };
        if let BreakerPhase::HalfOpen { probes, .. } = &mut self.inner {
            let ttl = self.settings.probe_ttl;
            probes.retain(|(_, since)| *since + ttl > now);
            if let Some((_, oldest)) = probes.first().filter(|_| probes.len() >= self.settings.probes_max) {
                return Err(Refused { until: *oldest + ttl });
            }
            probes.push((ticket.probe, now));
        }
        Ok(ticket)
    }

    pub fn succeeded(&mut self, ticket: Ticket) {
        if ticket.epoch != self.epoch {
            return;
        }
        match &mut self.inner {
            BreakerPhase::Closed { calls } => calls.succeeded(self.latest),
            BreakerPhase::HalfOpen { probes, successes } => {
                probes.retain(|(probe, _)| *probe != ticket.probe);
                *successes += 1;
                if *successes >= self.settings.close_after {
                    self.rest = self.settings.open_for;
                    self.become_(BreakerPhase::Closed { calls: Calls::default() });
                }
            }
            BreakerPhase::Open { .. } => {}
        }
    }

    pub fn failed(&mut self, ticket: Ticket, now: Timestamp) {
        if ticket.epoch != self.epoch {
            return;
        }
        let before = self.failures(now);
        match &mut self.inner {
            BreakerPhase::Closed { calls } => {
                calls.failed(self.latest, before, now);
                if calls.are_too_bad(self.settings.fail_budget, self.latest) {
                    self.open(now);
                }
            }
            BreakerPhase::HalfOpen { .. } => {
                self.rest = (self.rest * 2).min(self.longest_rest);
                self.open(now);
            }
            BreakerPhase::Open { .. } => {}
        }
    }

    /// The call was not made after all, or its answer says nothing: a probe leaves its place to the next.
    pub fn called_off(&mut self, ticket: Ticket) {
        if let BreakerPhase::HalfOpen { probes, .. } = &mut self.inner {
            probes.retain(|(probe, _)| *probe != ticket.probe);
        }
    }

    fn open(&mut self, now: Timestamp) {
        self.become_(BreakerPhase::Open { until: now + self.rest });
    }

    fn become_(&mut self, next: BreakerPhase) {
        self.epoch += 1;
        self.inner = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn fail(breaker: &mut Breaker, ms: i64) {
        let ticket = breaker.ask(at(ms)).unwrap();
        breaker.failed(ticket, at(ms));
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::new(BreakerSettings::default());
        (0..3).for_each(|ms| fail(&mut breaker, ms));
        breaker
    }

    #[test]
    fn three_failures_in_a_row_open_it_and_a_success_between_starts_over() {
        let mut breaker = Breaker::new(BreakerSettings::default());
        fail(&mut breaker, 0);
        fail(&mut breaker, 1);
        let ticket = breaker.ask(at(2)).unwrap();
        breaker.succeeded(ticket);
        fail(&mut breaker, 3);
        fail(&mut breaker, 4);
        assert_eq!(breaker.state(at(5)), BreakerState::Closed);
        fail(&mut breaker, 5);
        assert_eq!(breaker.state(at(6)), BreakerState::Open);
        assert_eq!(breaker.ask(at(6)), Err(Refused { until: at(30_005) }));
    }

    #[test]
    fn failures_count_together_for_as_long_as_it_would_stay_open() {
        let mut breaker = Breaker::new(BreakerSettings::default());
        fail(&mut breaker, 1_000);
        fail(&mut breaker, 30_999);
        assert_eq!(breaker.failures(at(30_999)), 2);
        assert_eq!(breaker.failures(at(31_000)), 0, "counted from the first of them");
        fail(&mut breaker, 31_000);
        fail(&mut breaker, 31_001);
        assert_eq!((breaker.state(at(31_001)), breaker.failures(at(31_001))), (BreakerState::Closed, 2));
        fail(&mut breaker, 31_002);
        assert_eq!(breaker.state(at(31_003)), BreakerState::Open);
        let counted_for = |open_for| BreakerSettings { open_for, ..BreakerSettings::default() }.counted_for();
        assert_eq!(counted_for(Duration::from_secs(600)), Duration::from_secs(600));
        assert_eq!(counted_for(Duration::from_secs(1)), Duration::from_secs(30), "six seconds of timeouts add up");
    }

    #[test]
    fn two_of_at_most_three_probes_close_it() {
        let mut breaker = opened();
        let probes: Vec<_> = (0..3).map(|_| breaker.ask(at(40_000)).unwrap()).collect();
        assert!(breaker.ask(at(40_000)).is_err(), "three in flight and no more");
        breaker.succeeded(probes[0]);
        assert_eq!(breaker.state(at(40_001)), BreakerState::HalfOpen);
        breaker.succeeded(probes[1]);
        assert_eq!(breaker.state(at(40_002)), BreakerState::Closed);
        breaker.failed(probes[2], at(40_003));
        assert_eq!(breaker.failures(at(40_003)), 0, "an answer from before counts for nothing");
    }

    #[test]
    fn a_probe_that_fails_opens_it_again_for_the_whole_time() {
        let mut breaker = opened();
        let probe = breaker.ask(at(40_000)).unwrap();
        breaker.failed(probe, at(41_000));
        assert_eq!(breaker.ask(at(70_999)), Err(Refused { until: at(71_000) }));
        assert_eq!(breaker.state(at(71_000)), BreakerState::HalfOpen);
    }

    #[test]
    fn a_probe_nobody_answers_for_is_given_up() {
        let mut breaker = opened();
        (0..3).for_each(|_| _ = breaker.ask(at(40_000)).unwrap());
        assert_eq!(breaker.ask(at(40_001)), Err(Refused { until: at(50_000) }));
        assert!(breaker.ask(at(50_000)).is_ok());
    }

    #[test]
    fn half_of_the_latest_calls_open_it_and_never_fewer_calls() {
        let budget = BreakerSettings { fail_budget: 2, ..BreakerSettings::default() };
        let mut breaker = Breaker::new(budget).over_latest(4);
        for failed in [true, false, false, false, true, false, false] {
            let ticket = breaker.ask(at(0)).unwrap();
            if failed { breaker.failed(ticket, at(0)) } else { breaker.succeeded(ticket) }
        }
        assert_eq!((breaker.state(at(0)), breaker.failures(at(0))), (BreakerState::Closed, 1), "old calls are forgotten");
        fail(&mut breaker, 1);
        assert_eq!(breaker.state(at(1)), BreakerState::Open, "two of the latest four");
        let mut few = Breaker::new(budget).over_latest(4);
        (0..3).for_each(|ms| fail(&mut few, ms));
        assert_eq!(few.state(at(3)), BreakerState::Closed);
    }

    #[test]
    fn probes_that_fail_double_the_rest_until_one_succeeds() {
        let settings = BreakerSettings { close_after: 1, open_for: Duration::from_secs(5), ..BreakerSettings::default() };
        let mut breaker = Breaker::new(settings).resting_up_to(Duration::from_secs(15));
        (0..3).for_each(|_| fail(&mut breaker, 0));
        for (now, until) in [(5_000, 15_000), (15_000, 30_000), (30_000, 45_000)] {
            fail(&mut breaker, now);
            assert_eq!(breaker.opens_until(), Some(at(until)));
        }
        let probe = breaker.ask(at(45_000)).unwrap();
        breaker.succeeded(probe);
        (0..3).for_each(|_| fail(&mut breaker, 50_000));
        assert_eq!(breaker.opens_until(), Some(at(55_000)));
    }

    #[test]
    fn a_probe_that_is_called_off_leaves_its_place_to_the_next() {
        let settings = BreakerSettings { probes_max: 1, ..BreakerSettings::default() };
        let mut breaker = Breaker::new(settings);
        (0..3).for_each(|_| fail(&mut breaker, 0));
        let probe = breaker.ask(at(30_000)).unwrap();
        assert!(breaker.ask(at(30_000)).is_err());
        breaker.called_off(probe);
        assert!(breaker.ask(at(30_000)).is_ok());
    }

    #[test]
    fn late_failures_of_calls_from_before_do_not_open_it_twice() {
        let mut breaker = Breaker::new(BreakerSettings::default());
        let tickets: Vec<_> = (0..6).map(|_| breaker.ask(at(0)).unwrap()).collect();
        tickets[..3].iter().for_each(|ticket| breaker.failed(*ticket, at(1_000)));
        tickets[3..].iter().for_each(|ticket| breaker.failed(*ticket, at(20_000)));
        assert_eq!(breaker.opens_until(), Some(at(31_000)), "the time runs from the third failure");
    }
}
