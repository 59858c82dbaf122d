//! Circuit breakers for the targets of handlers, so that a target which is down is not called by every waiting job.
//!
//! ```
//! use lockgate_worker::{Breakers, JobError, Worker};
//!
//! # async fn send() -> Result<(), std::io::Error> { Ok(()) }
//! let breakers = Breakers::default();
//! let worker = Worker::connect("http://127.0.0.1:8080").handle("mail.send", move |_context, _payload| {
//!     let breakers = breakers.clone();
//!     async move {
//!         // While the target is known to be down the job snoozes, which costs no attempt.
//!         let permit = breakers.admit("smtp.example.com")?;
//!         match send().await {
//!             Ok(()) => {
//!                 permit.succeeded();
//!                 Ok("sent")
//!             }
//!             Err(error) => Err(permit.failed().map_or_else(|| JobError::retryable(&error), JobError::from)),
//!         }
//!     }
//! });
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_contract::breaker::{Breaker, BreakerSettings, BreakerState, Ticket};
use lockgate_contract::time::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::JobError;

/// The most remembered targets. Beyond them, targets without failures are forgotten.
const TARGETS_MAX: usize = 10_000;
/// How long jobs wait for a probe in flight before another one is sent. If it were longer, jobs would snooze on after a
/// probe has found the target healthy.
const PROBE_TTL: Duration = Duration::from_secs(2);

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRules {
    /// The number of latest calls that count. A breaker never opens on fewer.
    pub calls: usize,
    /// This many failures among them open the breaker.
    pub failures: u32,
    /// How long the breaker is open before a probe is let through. A failed probe doubles it.
    pub rest: Duration,
    /// The longest rest.
    pub rest_max: Duration,
}

impl Default for BreakerRules {
    /// 10 of 20 calls, 5 s to 1 min.
    fn default() -> Self {
        Self { calls: 20, failures: 10, rest: Duration::from_secs(5), rest_max: Duration::from_secs(60) }
    }
}

/// One breaker for each target, such as a host. Clones share them.
#[derive(Clone, Default)]
pub struct Breakers {
    shared: Arc<SharedBreakers>,
}

struct SharedBreakers {
    rules: BreakerRules,
    began: Instant,
    state: Mutex<TrackedTargets>,
}

#[derive(Default)]
struct TrackedTargets {
    targets: BTreeMap<String, Breaker>,
    opened: u64,
    refused: u64,
}

/// Counters for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BreakerCounts {
    /// Targets that are not called now, or only by probes.
    pub open: u64,
    /// How often a breaker opened, including after a failed probe.
    pub opened: u64,
    /// Calls that were not let through.
    pub refused: u64,
}

/// The target is known to be down. Converted to a [`JobError`], it snoozes the job until the breaker lets a call through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitOpen {
    pub target: String,
    /// The time after which a call may be tried again.
    pub wait: Duration,
}

impl From<CircuitOpen> for JobError {
    fn from(open: CircuitOpen) -> Self {
        Self::snooze(open.wait)
    }
}

impl Default for SharedBreakers {
    fn default() -> Self {
        Self { rules: BreakerRules::default(), began: Instant::now(), state: Mutex::default() }
    }
}

impl Breakers {
    pub fn new(rules: BreakerRules) -> Self {
        Self { shared: Arc::new(SharedBreakers { rules, ..SharedBreakers::default() }) }
    }

    /// Asks for permission to call `target`.
    pub fn admit(&self, target: &str) -> Result<Permit, CircuitOpen> {
        let (now, mut state) = (self.shared.now(), self.shared.state.lock());
        let TrackedTargets { targets, refused, .. } = &mut *state;
        if targets.len() >= TARGETS_MAX && !targets.contains_key(target) {
            targets.retain(|_, breaker| breaker.state(now) != BreakerState::Closed);
        }
        let breaker = targets.entry(target.to_owned()).or_insert_with(|| self.shared.rules.breaker());
        match breaker.ask(now) {
            Ok(ticket) => Ok(Permit { breakers: self.clone(), target: target.to_owned(), ticket: Some(ticket) }),
            Err(until) => {
                *refused += 1;
                Err(CircuitOpen { target: target.to_owned(), wait: until.until.since(now) })
            }
        }
    }

    pub fn counts(&self) -> BreakerCounts {
        let (now, state) = (self.shared.now(), self.shared.state.lock());
        let open = state.targets.values().filter(|breaker| breaker.state(now) != BreakerState::Closed).count();
        BreakerCounts { open: open as u64, opened: state.opened, refused: state.refused }
    }

    fn failed(&self, target: &str, ticket: Ticket) -> Option<CircuitOpen> {
        let (now, mut state) = (self.shared.now(), self.shared.state.lock());
        let TrackedTargets { targets, opened, .. } = &mut *state;
        let breaker = targets.get_mut(target)?;
        let before = breaker.opens_until();
        breaker.failed(ticket, now);
        let until = breaker.opens_until();
        *opened += u64::from(until.is_some() && until != before);
        until.map(|until| CircuitOpen { target: target.to_owned(), wait: until.since(now) })
    }

    fn with(&self, target: &str, change: impl FnOnce(&mut Breaker)) {
        if let Some(breaker) = self.shared.state.lock().targets.get_mut(target) {
            change(breaker);
        }
    }
}

impl SharedBreakers {
    /// A clock that cannot be set.
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}

impl BreakerRules {
    fn breaker(&self) -> Breaker {
        let settings = BreakerSettings {
            fail_budget: self.failures,
            open_for: self.rest,
            probes_max: 1,
            close_after: 1,
            probe_ttl: PROBE_TTL,
        };
        Breaker::new(settings).over_latest(self.calls).resting_up_to(self.rest_max)
    }
}

/// Permission for one call. A permit that is dropped without a report, as when a job is cancelled, does not count.
#[must_use = "a permit that is dropped at once says nothing about the call"]
pub struct Permit {
    breakers: Breakers,
    target: String,
    ticket: Option<Ticket>,
}

impl Permit {
    /// The target answered; whether the answer is good for the job does not matter here.
    pub fn succeeded(mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.breakers.with(&self.target, |breaker| breaker.succeeded(ticket));
        }
    }

    /// The target did not answer, or reported that it is unhealthy. Some if the breaker is open now: then the target is at
    /// fault and not the job, which should snooze instead of spending an attempt.
    pub fn failed(mut self) -> Option<CircuitOpen> {
        let ticket = self.ticket.take()?;
        self.breakers.failed(&self.target, ticket)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.breakers.with(&self.target, |breaker| breaker.called_off(ticket));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const REST: Duration = Duration::from_secs(5);

    fn call(breakers: &Breakers, well: bool) {
        let permit = breakers.admit("h").unwrap_or_else(|open| panic!("refused: {open:?}"));
        if well { permit.succeeded() } else { drop(permit.failed()) }
    }

    fn wait(breakers: &Breakers) -> Option<Duration> {
        breakers.admit("h").err().map(|open| open.wait)
    }

    fn opened() -> Breakers {
        let breakers = Breakers::default();
        for n in 0..20 {
            call(&breakers, n % 2 == 0);
        }
        breakers
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_at_half_of_twenty_calls_and_not_before() {
        let breakers = Breakers::default();
        for _ in 0..19 {
            assert!(breakers.admit("h").is_ok_and(|permit| permit.failed().is_none()));
        }
        let open = breakers.admit("h").ok().and_then(Permit::failed);
        assert_eq!(open, Some(CircuitOpen { target: "h".to_owned(), wait: REST }), "the call that opens it is told");
        assert_eq!(wait(&breakers), Some(REST));
        assert!(breakers.admit("other").is_ok(), "targets do not share a breaker");
        assert_eq!(breakers.counts(), BreakerCounts { open: 1, opened: 1, refused: 1 });
    }

    #[tokio::test(start_paused = true)]
    async fn fewer_failures_than_half_leave_it_closed() {
        let breakers = Breakers::default();
        for n in 0..200 {
            call(&breakers, n % 20 >= 9);
        }
        assert_eq!(breakers.counts(), BreakerCounts::default());
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_rest_one_probe_goes_out_and_its_success_closes() {
        let breakers = opened();
        advance(REST).await;
        let probe = breakers.admit("h").ok().unwrap();
        assert_eq!(wait(&breakers), Some(PROBE_TTL), "one probe at a time, and no rest behind it");
        probe.succeeded();
        call(&breakers, false);
        call(&breakers, false);
        assert_eq!(breakers.counts().open, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_probe_doubles_the_rest_up_to_a_minute_and_says_so() {
        let breakers = opened();
        for (rest, next) in [(5, 10), (10, 20), (20, 40), (40, 60), (60, 60)] {
            assert_eq!(wait(&breakers), Some(Duration::from_secs(rest)));
            advance(Duration::from_secs(rest)).await;
            let open = breakers.admit("h").ok().and_then(Permit::failed);
            assert_eq!(open.map(|open| open.wait), Some(Duration::from_secs(next)));
        }
        assert_eq!(breakers.counts().opened, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_fails_after_others_opened_it_is_told_too() {
        let breakers = Breakers::default();
        let straggler = breakers.admit("h").ok().unwrap();
        for _ in 0..20 {
            call(&breakers, false);
        }
        assert_eq!(straggler.failed().map(|open| open.wait), Some(REST));
        assert_eq!(breakers.counts().opened, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_called_off_lets_the_next_one_out() {
        let breakers = opened();
        advance(REST).await;
        drop(breakers.admit("h"));
        assert!(breakers.admit("h").is_ok());
    }

    #[test]
    fn an_open_circuit_snoozes_a_job() {
        let open = CircuitOpen { target: "h".to_owned(), wait: REST };
        assert_eq!(JobError::from(open), JobError::snooze(REST));
    }
}
