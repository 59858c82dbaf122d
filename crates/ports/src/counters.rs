//! Small things that all replicas share: circuit breakers, velocity windows, totals that operators read, locks that only save
//! work, and what is known of workers.
//!
//! They protect and inform, they promise nothing: a caller that cannot reach them goes on with what its own process knows.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::breaker::{BreakerSettings, BreakerState, Ticket};
use lockgate_core::rate::{Rate, RateGrant};

#[cfg(doc)]
use crate::registry::SEEN_LIFE;
use crate::registry::WorkersSnapshot;

/// A queue that is shown is never longer than this: alerts fire long before.
pub const LENGTH_MAX: u64 = 10_000;
/// An entry that is not renewed no longer holds.
pub const LENGTH_LIFE: Duration = Duration::from_secs(60);

#[async_trait]
pub trait Counters: Send + Sync {
    /// Asks a breaker to let one call through, and how it stands then. All replicas give it the same settings.
    async fn ask(&self, breaker: &str, settings: &BreakerSettings)
    -> Result<(BreakerAnswer, BreakerStanding), CountersAway>;

    /// What became of a call that was let through, and how the breaker stands then. A ticket from before the latest change
    /// of state changes nothing.
    async fn tell(
        &self,
        breaker: &str,
        settings: &BreakerSettings,
        ticket: Ticket,
        outcome: CallOutcome,
    ) -> Result<BreakerStanding, CountersAway>;

    /// How a breaker stands. Changes nothing.
    async fn look(&self, breaker: &str, settings: &BreakerSettings) -> Result<BreakerStanding, CountersAway>;

    /// Adds to a total. An error leaves open whether it was added.
    async fn add(&self, total: &str, by: u64) -> Result<(), CountersAway>;

    /// The place of each job in its velocity window, in the order asked, all in one round trip. A job enters a window once
    /// and keeps its place, which moves up as older jobs leave.
    async fn places(&self, asks: &[VelocityAsk]) -> Result<Vec<u64>, CountersAway>;

    /// Takes a token for each of `want` from every one of these buckets, in one round trip: for as many as all of them have
    /// tokens for. A bucket begins full.
    async fn take(&self, buckets: &[(Arc<str>, Rate)], want: u32) -> Result<RateGrant, CountersAway>;

    /// Takes each of these locks that is free, or keeps it if `holder` has it: for `ttl` from now. Which of them it has then. They
    /// only save work: two who believe that they hold one do the same thing twice.
    async fn hold(&self, locks: &[&str], holder: &str, ttl: Duration) -> Result<Vec<bool>, CountersAway>;

    /// Gives locks back that `holder` has.
    async fn let_go(&self, locks: &[&str], holder: &str) -> Result<(), CountersAway>;

    /// Keeps a snapshot of all workers for [`SEEN_LIFE`], instead of the one before.
    async fn keep_workers(&self, snapshot: &WorkersSnapshot) -> Result<(), CountersAway>;

    /// The latest snapshot of all workers and its age, by the clock of the counters. None if there is none, or if it cannot be
    /// read: another release may have written it.
    async fn kept_workers(&self) -> Result<Option<(WorkersSnapshot, Duration)>, CountersAway>;

    /// Shows how long queues are where programs that are not ours look for it, such as autoscalers: up to [`LENGTH_MAX`], and
    /// for no longer than [`LENGTH_LIFE`]. Counters that no such program can read show nothing.
    async fn show_lengths(&self, _queues: &[(Arc<str>, u64)]) -> Result<(), CountersAway> {
        Ok(())
    }
}

/// The answer to a wish to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerAnswer {
    Go(Ticket),
    /// Asking again makes sense after this time.
    Refused {
        again_in: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Succeeded,
    Failed,
}

/// A shared breaker at the moment of the answer. Spans instead of times: clocks of replicas differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerStanding {
    pub state: BreakerState,
    /// In a row while closed; the whole budget otherwise.
    pub failures: u32,
    /// While open: how long until the first probe is let through.
    pub probes_in: Option<Duration>,
}

/// One job and one window of a policy rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VelocityAsk {
    pub rule: Arc<str>,
    /// What the jobs in the window have in common.
    pub key: Arc<str>,
    pub job_id: Arc<str>,
    pub span: Duration,
    pub visit: Visit,
}

/// What a question does to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The job is in the window from now on.
    Enter,
    /// The window stays as it is: the answer is the place the job has or would get.
    Look,
}

/// The counters did not answer in time. The caller does not wait: go on with what this process knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shared counters do not answer ({0}); this process goes on with its own until they do")]
pub struct CountersAway(pub Arc<str>);
