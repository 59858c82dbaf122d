//! Counters that all replicas share: each question is one atomic script, by the server's clock.

mod counter_server;
mod names;
mod scripts;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::breaker::{BreakerSettings, BreakerState, Ticket};
use lockgate_core::rate::{Rate, RateGrant};
use lockgate_ports::counters::{LENGTH_LIFE, LENGTH_MAX};
use lockgate_ports::{
    BreakerAnswer, BreakerStanding, CallOutcome, Counters, CountersAway, SEEN_LIFE, VelocityAsk, Visit, WorkersSnapshot,
};
use redis::{Script, ScriptInvocation, cmd};

use crate::error::ConnectError;
use crate::options::Options;
use crate::server_client::ServerClient;
pub(crate) use counter_server::CounterServer;
pub(crate) use names::KeyNames;
use scripts::SCRIPTS;

/// How long the server remembers a circuit breaker that no process asks for.
const KEPT: Duration = Duration::from_secs(24 * 3600);

pub struct RedisCounters {
    link: CounterServer,
    names: KeyNames,
}

impl RedisCounters {
    /// An unreachable server is no error here: the counters report it until it answers. No call waits longer than
    /// `response_timeout`, and none waits while the server is known to be unreachable.
    pub async fn connect(options: &Options) -> Result<Self, ConnectError> {
        let names = KeyNames::of(&options.installation)?;
        Ok(Self { link: CounterServer::connect(ServerClient::of(options)?, options.response_timeout).await, names })
    }

    fn breaker<'s>(&self, script: &'s Script, name: &str, settings: &BreakerSettings) -> ScriptInvocation<'s> {
        let mut call = script.prepare_invoke();
        for key in self.names.breaker(name) {
            call.key(key);
        }
        call.arg(settings.fail_budget).arg(millis(settings.open_for)).arg(settings.probes_max);
        call.arg(settings.close_after).arg(millis(settings.probe_ttl)).arg(millis(KEPT + settings.open_for));
        call.arg(millis(settings.counted_for()));
        call
    }

    async fn run<T: redis::FromRedisValue>(&self, call: ScriptInvocation<'_>) -> Result<T, CountersAway> {
        self.link.run(|mut connection| async move { call.invoke_async(&mut connection).await }).await
    }
}

#[async_trait]
impl Counters for RedisCounters {
    async fn ask(
        &self,
        breaker: &str,
        settings: &BreakerSettings,
    ) -> Result<(BreakerAnswer, BreakerStanding), CountersAway> {
        let call = self.breaker(&SCRIPTS.ask, breaker, settings);
        let (go, epoch, probe, again_ms, state, failures, left_ms): (bool, u64, u64, u64, String, u32, u64) =
            self.run(call).await?;
        let asked = match go {
            true => BreakerAnswer::Go(Ticket { epoch, probe }),
            false => BreakerAnswer::Refused { again_in: Duration::from_millis(again_ms) },
        };
        Ok((asked, standing((state, failures, left_ms))))
    }

    async fn tell(
        &self,
        breaker: &str,
        settings: &BreakerSettings,
        ticket: Ticket,
        outcome: CallOutcome,
    ) -> Result<BreakerStanding, CountersAway> {
        let mut call = self.breaker(&SCRIPTS.tell, breaker, settings);
        call.arg(ticket.epoch).arg(ticket.probe).arg(u8::from(outcome == CallOutcome::Succeeded));
        self.run(call).await.map(standing)
    }

    async fn look(&self, breaker: &str, settings: &BreakerSettings) -> Result<BreakerStanding, CountersAway> {
        self.run(self.breaker(&SCRIPTS.look, breaker, settings)).await.map(standing)
    }

    async fn add(&self, total: &str, by: u64) -> Result<(), CountersAway> {
        let mut command = cmd("INCRBY");
        command.arg(self.names.total(total)).arg(by);
        self.link.run(|mut connection| async move { command.query_async(&mut connection).await }).await
    }

    async fn places(&self, asks: &[VelocityAsk]) -> Result<Vec<u64>, CountersAway> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = SCRIPTS.places.prepare_invoke();
        for ask in asks {
            call.key(self.names.window(&ask.rule, &ask.key));
            call.arg(&*ask.job_id).arg(millis(ask.span)).arg(u8::from(ask.visit == Visit::Enter));
        }
        self.run(call).await
    }

    async fn take(&self, buckets: &[(Arc<str>, Rate)], want: u32) -> Result<RateGrant, CountersAway> {
        if buckets.is_empty() {
            return Ok(RateGrant::all(want));
        }
        let mut call = SCRIPTS.take.prepare_invoke();
        call.arg(want);
        for (bucket, rate) in buckets {
            call.key(self.names.bucket(bucket, *rate));
            call.arg(rate.max).arg(millis(rate.window));
        }
        let (granted, again_ms, short): (u32, u64, usize) = self.run(call).await?;
        Ok(RateGrant { granted, again_in: Duration::from_millis(again_ms), short: short.checked_sub(1) })
    }

    /// One script per lock: the locks need not share a cluster slot, and there are few.
    async fn hold(&self, locks: &[&str], holder: &str, ttl: Duration) -> Result<Vec<bool>, CountersAway> {
        let mut held = Vec::with_capacity(locks.len());
        for lock in locks {
            let mut call = SCRIPTS.hold.prepare_invoke();
            call.key(self.names.lock(lock)).arg(holder).arg(millis(ttl));
            held.push(self.run(call).await?);
        }
        Ok(held)
    }

    async fn let_go(&self, locks: &[&str], holder: &str) -> Result<(), CountersAway> {
        for lock in locks {
            let mut call = SCRIPTS.let_go.prepare_invoke();
            call.key(self.names.lock(lock)).arg(holder);
            self.run::<u64>(call).await?;
        }
        Ok(())
    }

    async fn keep_workers(&self, snapshot: &WorkersSnapshot) -> Result<(), CountersAway> {
        let text = serde_json::to_string(snapshot).map_err(|error| CountersAway(error.to_string().into()))?;
        let mut command = cmd("SET");
        command.arg(self.names.workers()).arg(text).arg("PX").arg(millis(SEEN_LIFE));
        self.link.run(|mut connection| async move { command.query_async(&mut connection).await }).await
    }

    async fn kept_workers(&self) -> Result<Option<(WorkersSnapshot, Duration)>, CountersAway> {
        let mut call = SCRIPTS.kept.prepare_invoke();
        call.key(self.names.workers());
        let (text, left_ms): (Option<String>, i64) = self.run(call).await?;
        let Some(text) = text else { return Ok(None) };
        match serde_json::from_str(&text) {
            Ok(snapshot) => {
                let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
                Ok(Some((snapshot, SEEN_LIFE.saturating_sub(left))))
            }
            Err(error) => {
                tracing::warn!(key = self.names.workers(), %error, "the snapshot of workers cannot be read; it is left alone");
                Ok(None)
            }
        }
    }

    /// One script per queue: the queues need not share a cluster slot, and there are few.
    async fn show_lengths(&self, queues: &[(Arc<str>, u64)]) -> Result<(), CountersAway> {
        for (queue, length) in queues {
            let mut call = SCRIPTS.lengths.prepare_invoke();
            call.key(self.names.queue(queue)).arg((*length).min(LENGTH_MAX)).arg(millis(LENGTH_LIFE));
            self.run::<u64>(call).await?;
        }
        Ok(())
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn standing((state, failures, left_ms): (String, u32, u64)) -> BreakerStanding {
    let state = match state.as_str() {
        "closed" => BreakerState::Closed,
        "open" => BreakerState::Open,
        _ => BreakerState::HalfOpen,
    };
    BreakerStanding { state, failures, probes_in: (left_ms > 0).then(|| Duration::from_millis(left_ms)) }
}
