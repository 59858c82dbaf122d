//! A circuit breaker as a pure state machine: closed, open, half-open.
//!
//! Failures in a row open it; after a while a few probes are let through; enough of them that succeed close it, and one
//! that fails opens it again. Time is an argument. Every call carries the ticket it was admitted with, so that an answer
//! that comes after the state moved on changes nothing.

use std::time::Duration;

use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Consecutive failures that open it.
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

/// Admission of one call. Only who issued it can say what it is good for.
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
    /// One more with every change of state.
    epoch: u64,
    inner: Inner,
    asked: u64,
}

#[derive(Clone, Debug)]
enum Inner {
    Closed { failures: u32 },
    Open { until: Timestamp },
    HalfOpen { probes: Vec<(u64, Timestamp)>, successes: u32 },
}

impl Breaker {
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings, epoch: 0, inner: Inner::Closed { failures: 0 }, asked: 0 }
    }

    /// The state at `now`: an open breaker whose time is over is half-open, asked or not.
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match &self.inner {
            Inner::Closed { .. } => BreakerState::Closed,
            Inner::Open { until } if now < *until => BreakerState::Open,
            Inner::Open { .. } | Inner::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Consecutive failures while closed; the whole budget otherwise.
    pub fn failures(&self) -> u32 {
        match self.inner {
            Inner::Closed { failures } => failures,
            Inner::Open { .. } | Inner::HalfOpen { .. } => self.settings.fail_budget,
        }
    }

    /// When an open breaker lets the first probe through.
    pub fn opens_until(&self) -> Option<Timestamp> {
        match self.inner {
            Inner::Open { until } => Some(until),
            _ => None,
        }
    }

    /// Asks to make a call.
    pub fn ask(&mut self, now: Timestamp) -> Result<Ticket, Refused> {
        if let Inner::Open { until } = self.inner {
            if now < until {
                return Err(Refused { until });
            }
            self.become_(Inner::HalfOpen { probes: Vec::new(), successes: 0 });
        }
        self.asked += 1;
        let ticket = Ticket { epoch: self.epoch, probe: self.asked };
        if let Inner::HalfOpen { probes, .. } = &mut self.inner {
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
            Inner::Closed { failures } => *failures = 0,
            Inner::HalfOpen { probes, successes } => {
                probes.retain(|(probe, _)| *probe != ticket.probe);
                *successes += 1;
                if *successes >= self.settings.close_after {
                    self.become_(Inner::Closed { failures: 0 });
                }
            }
            Inner::Open { .. } => {}
        }
    }

    pub fn failed(&mut self, ticket: Ticket, now: Timestamp) {
        if ticket.epoch != self.epoch {
            return;
        }
        match &mut self.inner {
            Inner::Closed { failures } => {
                *failures += 1;
                if *failures >= self.settings.fail_budget {
                    self.open(now);
                }
            }
            Inner::HalfOpen { .. } => self.open(now),
            Inner::Open { .. } => {}
        }
    }

    fn open(&mut self, now: Timestamp) {
        self.become_(Inner::Open { until: now + self.settings.open_for });
    }

    fn become_(&mut self, next: Inner) {
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
    fn two_of_at_most_three_probes_close_it() {
        let mut breaker = opened();
        let probes: Vec<_> = (0..3).map(|_| breaker.ask(at(40_000)).unwrap()).collect();
        assert!(breaker.ask(at(40_000)).is_err(), "three in flight and no more");
        breaker.succeeded(probes[0]);
        assert_eq!(breaker.state(at(40_001)), BreakerState::HalfOpen);
        breaker.succeeded(probes[1]);
        assert_eq!(breaker.state(at(40_002)), BreakerState::Closed);
        breaker.failed(probes[2], at(40_003));
        assert_eq!(breaker.failures(), 0, "an answer from before counts for nothing");
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
    fn late_failures_of_calls_from_before_do_not_open_it_twice() {
        let mut breaker = Breaker::new(BreakerSettings::default());
        let tickets: Vec<_> = (0..6).map(|_| breaker.ask(at(0)).unwrap()).collect();
        tickets[..3].iter().for_each(|ticket| breaker.failed(*ticket, at(1_000)));
        tickets[3..].iter().for_each(|ticket| breaker.failed(*ticket, at(20_000)));
        assert_eq!(breaker.opens_until(), Some(at(31_000)), "the time runs from the third failure");
    }
}
