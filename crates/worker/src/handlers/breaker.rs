//! One circuit breaker per host, so that a host that is down is not called by every waiting job.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Calls looked at; the breaker never opens on fewer.
const WINDOW: usize = 20;
const FIRST_REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Hosts remembered. Beyond them the ones with nothing against them are forgotten.
const HOSTS_MAX: usize = 10_000;

#[derive(Clone, Default)]
pub(super) struct Breakers {
    hosts: Arc<Mutex<BTreeMap<String, Breaker>>>,
}

impl Breakers {
    /// Asks to call `host`. The refusal says how long to wait.
    pub(super) fn admit(&self, host: &str) -> Result<Permit, Duration> {
        let mut hosts = self.hosts.lock();
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(host) {
            hosts.retain(|_, breaker| !breaker.is_closed());
        }
        hosts.entry(host.to_owned()).or_default().admit(Instant::now())?;
        Ok(Permit { breakers: self.clone(), host: host.to_owned(), said: false })
    }

    fn note(&self, host: &str, outcome: Option<Health>) {
        if let Some(breaker) = self.hosts.lock().get_mut(host) {
            breaker.note(outcome, Instant::now());
        }
    }
}

/// How a call went, as far as the host's health is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Good,
    Bad,
}

/// Permission for one call. Dropped without a word, as when a job is cancelled, it counts for nothing.
pub(super) struct Permit {
    breakers: Breakers,
    host: String,
    said: bool,
}

impl Permit {
    pub(super) fn note(mut self, health: Health) {
        self.said = true;
        self.breakers.note(&self.host, Some(health));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.said {
            self.breakers.note(&self.host, None);
        }
    }
}

#[derive(Debug)]
enum State {
    Closed {
        calls: VecDeque<Health>,
    },
    Open {
        until: Instant,
        rest: Duration,
    },
    /// One probe is on its way; its outcome decides. An answer that is lost is waited for no longer than `until`.
    Probing {
        until: Instant,
        rest: Duration,
    },
}

#[derive(Debug)]
struct Breaker(State);

impl Default for Breaker {
    fn default() -> Self {
        Self(State::Closed { calls: VecDeque::with_capacity(WINDOW) })
    }
}

impl Breaker {
    fn is_closed(&self) -> bool {
        matches!(self.0, State::Closed { .. })
    }

    fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        match &self.0 {
            State::Closed { .. } => Ok(()),
            State::Open { until, .. } | State::Probing { until, .. } if now < *until => Err(*until - now),
            State::Open { rest, .. } | State::Probing { rest, .. } => {
                self.0 = State::Probing { until: now + *rest, rest: *rest };
                Ok(())
            }
        }
    }

    fn note(&mut self, outcome: Option<Health>, now: Instant) {
        match (&mut self.0, outcome) {
            (State::Closed { calls }, Some(health)) => {
                calls.truncate(WINDOW - 1);
                calls.push_front(health);
                let bad = calls.iter().filter(|health| **health == Health::Bad).count();
                if calls.len() == WINDOW && bad * 2 >= WINDOW {
                    self.open(FIRST_REST, now);
                }
            }
            (State::Probing { .. }, Some(Health::Good)) => *self = Self::default(),
            (State::Probing { rest, .. }, Some(Health::Bad)) => {
                let rest = (*rest * 2).min(LONGEST_REST);
                self.open(rest, now);
            }
            // The probe was called off: the next caller may probe at once.
            (State::Probing { rest, .. }, None) => {
                let rest = *rest;
                self.0 = State::Open { until: now, rest };
            }
            // A straggler from before the breaker opened, or a call that was called off.
            (State::Open { .. }, _) | (State::Closed { .. }, None) => {}
        }
    }

    fn open(&mut self, rest: Duration, now: Instant) {
        self.0 = State::Open { until: now + rest, rest };
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn call(breakers: &Breakers, health: Health) {
        breakers.admit("h").unwrap_or_else(|wait| panic!("refused for {wait:?}")).note(health);
    }

    fn opened() -> Breakers {
        let breakers = Breakers::default();
        for n in 0..WINDOW {
            call(&breakers, if n % 2 == 0 { Health::Bad } else { Health::Good });
        }
        breakers
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_at_half_of_twenty_calls_and_not_before() {
        let breakers = Breakers::default();
        for _ in 0..WINDOW - 1 {
            call(&breakers, Health::Bad);
        }
        call(&breakers, Health::Bad);
        assert_eq!(breakers.admit("h").err(), Some(FIRST_REST));
        assert!(breakers.admit("other").is_ok(), "hosts do not share a breaker");
    }

    #[tokio::test(start_paused = true)]
    async fn fewer_failures_than_half_leave_it_closed() {
        let breakers = Breakers::default();
        for n in 0..10 * WINDOW {
            call(&breakers, if n % WINDOW < 9 { Health::Bad } else { Health::Good });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_rest_one_probe_goes_out_and_its_success_closes() {
        let breakers = opened();
        advance(FIRST_REST).await;
        let probe = breakers.admit("h").ok().unwrap();
        assert!(breakers.admit("h").is_err(), "one probe at a time");
        probe.note(Health::Good);
        call(&breakers, Health::Bad);
        call(&breakers, Health::Bad);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_probe_doubles_the_rest_up_to_a_minute() {
        let breakers = opened();
        for rest in [5, 10, 20, 40, 60, 60] {
            assert_eq!(breakers.admit("h").err(), Some(Duration::from_secs(rest)));
            advance(Duration::from_secs(rest)).await;
            call(&breakers, Health::Bad);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_called_off_lets_the_next_one_out() {
        let breakers = opened();
        advance(FIRST_REST).await;
        drop(breakers.admit("h"));
        assert!(breakers.admit("h").is_ok());
    }
}
