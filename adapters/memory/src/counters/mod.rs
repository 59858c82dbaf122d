//! Counters in memory: core's breaker and windows behind a lock.

mod registry;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::breaker::{Breaker, BreakerSettings, Ticket};
use lockgate_core::policy::{VelocityWindow, VelocityWindows};
use lockgate_core::rate::{Rate, RateBuckets, RateGrant};
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

use lockgate_ports::clock::Clock;
use lockgate_ports::counters::{BreakerAnswer, BreakerStanding, CallOutcome, Counters, CountersAway, VelocityAsk, Visit};
use lockgate_ports::registry::WorkersSnapshot;
use registry::SharedLocks;

/// The counters of one process, or of several simulated ones that share this value.
pub struct MemoryCounters {
    clock: Arc<dyn Clock>,
    /// Each with the settings of its first caller.
    breakers: Mutex<BTreeMap<String, Breaker>>,
    totals: Mutex<BTreeMap<String, u64>>,
    windows: Mutex<VelocityWindows>,
    buckets: Mutex<RateBuckets>,
    registry: SharedLocks,
}

impl MemoryCounters {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            breakers: Mutex::default(),
            totals: Mutex::default(),
            windows: Mutex::default(),
            buckets: Mutex::default(),
            registry: SharedLocks::default(),
        }
    }

    /// The sum of what was added to a total.
    pub fn total(&self, name: &str) -> u64 {
        self.totals.lock().get(name).copied().unwrap_or_default()
    }

    fn with<T>(
        &self,
        name: &str,
        settings: &BreakerSettings,
        act: impl FnOnce(&mut Breaker, Timestamp) -> T,
    ) -> (T, BreakerStanding) {
        let now = self.clock.now();
        let mut breakers = self.breakers.lock();
        let breaker = breakers.entry(name.to_owned()).or_insert_with(|| Breaker::new(*settings));
        let acted = act(breaker, now);
        let probes_in = breaker.opens_until().map(|until| until.since(now)).filter(|span| !span.is_zero());
        (acted, BreakerStanding { state: breaker.state(now), failures: breaker.failures(now), probes_in })
    }
}

#[async_trait]
impl Counters for MemoryCounters {
    async fn ask(
        &self,
        breaker: &str,
        settings: &BreakerSettings,
    ) -> Result<(BreakerAnswer, BreakerStanding), CountersAway> {
        Ok(self.with(breaker, settings, |breaker, now| match breaker.ask(now) {
            Ok(ticket) => BreakerAnswer::Go(ticket),
            Err(refused) => BreakerAnswer::Refused { again_in: refused.until.since(now) },
        }))
    }

    async fn tell(
        &self,
        breaker: &str,
        settings: &BreakerSettings,
        ticket: Ticket,
        outcome: CallOutcome,
    ) -> Result<BreakerStanding, CountersAway> {
        let ((), standing) = self.with(breaker, settings, |breaker, now| match outcome {
            CallOutcome::Succeeded => breaker.succeeded(ticket),
            CallOutcome::Failed => breaker.failed(ticket, now),
        });
        Ok(standing)
    }

    async fn look(&self, breaker: &str, settings: &BreakerSettings) -> Result<BreakerStanding, CountersAway> {
        Ok(self.with(breaker, settings, |_, _| ()).1)
    }

    async fn add(&self, total: &str, by: u64) -> Result<(), CountersAway> {
        *self.totals.lock().entry(total.to_owned()).or_default() += by;
        Ok(())
    }

    async fn places(&self, asks: &[VelocityAsk]) -> Result<Vec<u64>, CountersAway> {
        let now = self.clock.now();
        let mut windows = self.windows.lock();
        let place = |ask: &VelocityAsk| {
            let window = VelocityWindow { rule: &ask.rule, key: &ask.key, job_id: &ask.job_id, now, span: ask.span };
            match ask.visit {
                Visit::Enter => windows.enter(&window),
                Visit::Look => windows.look(&window),
            }
        };
        Ok(asks.iter().map(place).collect())
    }

    async fn take(&self, buckets: &[(Arc<str>, Rate)], want: u32) -> Result<RateGrant, CountersAway> {
        Ok(self.buckets.lock().take(buckets, want, self.clock.now()))
    }

    async fn hold(&self, locks: &[&str], holder: &str, ttl: Duration) -> Result<Vec<bool>, CountersAway> {
        let now = self.clock.now();
        Ok(locks.iter().map(|lock| self.registry.hold(lock, holder, now, now + ttl)).collect())
    }

    async fn let_go(&self, locks: &[&str], holder: &str) -> Result<(), CountersAway> {
        locks.iter().for_each(|lock| self.registry.let_go(lock, holder));
        Ok(())
    }

    async fn keep_workers(&self, snapshot: &WorkersSnapshot) -> Result<(), CountersAway> {
        self.registry.keep(snapshot.clone(), self.clock.now());
        Ok(())
    }

    async fn kept_workers(&self) -> Result<Option<(WorkersSnapshot, Duration)>, CountersAway> {
        Ok(self.registry.kept(self.clock.now()))
    }
}
