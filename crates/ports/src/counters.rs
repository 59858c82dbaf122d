//! Counters that all replicas share: circuit breakers, velocity windows, totals for operators, locks that only save work,
//! and the workers' snapshot.
//!
//! Counters protect and inform but guarantee nothing: a caller that cannot reach them continues with its own process's
//! counts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::breaker::{BreakerSettings, BreakerState, Ticket};
use lockgate_core::rate::{Rate, RateGrant};

#[cfg(doc)]
use crate::registry::SEEN_LIFE;
use crate::registry::WorkersSnapshot;

/// The longest queue that is shown; alerts fire long before.
pub const LENGTH_MAX: u64 = 10_000;
/// A shown length that is not renewed within this time is dropped.
pub const LENGTH_LIFE: Duration = Duration::from_secs(60);

#[async_trait]
pub trait Counters: Send + Sync {
    /// Asks a breaker to let one call through. Returns the answer and the breaker's state afterwards. All replicas pass
    /// equal settings.
    async fn ask(&self, breaker: &str, settings: &BreakerSettings)
    -> Result<(BreakerAnswer, BreakerStanding), CountersAway>;

    /// Reports the outcome of a call that was let through, and returns the breaker's state afterwards. A ticket from before
    /// the latest change of state has no effect.
    async fn tell(
        &self,
        breaker: &str,
        settings: &BreakerSettings,
        ticket: Ticket,
        outcome: CallOutcome,
    ) -> Result<BreakerStanding, CountersAway>;

    /// The breaker's state. Changes nothing.
    async fn look(&self, breaker: &str, settings: &BreakerSettings) -> Result<BreakerStanding, CountersAway>;

    /// Adds to a total. After an error it is unknown whether it was added.
    async fn add(&self, total: &str, by: u64) -> Result<(), CountersAway>;

    /// The position of each job in its velocity window, in the order of `asks`, in one round trip. A job enters a window
    /// once and keeps its place, which moves up as older jobs leave.
    async fn places(&self, asks: &[VelocityAsk]) -> Result<Vec<u64>, CountersAway>;

    /// Takes up to `want` tokens from every one of these buckets, in one round trip: as many as the emptiest can give. A new
    /// bucket is full.
    async fn take(&self, buckets: &[(Arc<str>, Rate)], want: u32) -> Result<RateGrant, CountersAway>;

    /// Takes or keeps each of these locks that is free or held by `holder`, for `ttl` from now. Returns which of them
    /// `holder` has then. The locks only save work: if two processes both believe that they hold one, work is done twice.
    async fn hold(&self, locks: &[&str], holder: &str, ttl: Duration) -> Result<Vec<bool>, CountersAway>;

    /// Releases the locks that `holder` has.
    async fn let_go(&self, locks: &[&str], holder: &str) -> Result<(), CountersAway>;

    /// Stores a snapshot of all workers for [`SEEN_LIFE`], replacing the previous one.
    async fn keep_workers(&self, snapshot: &WorkersSnapshot) -> Result<(), CountersAway>;

    /// The latest snapshot of all workers and its age, by the counters' clock. None if there is none, or if it cannot be
    /// decoded, because another release wrote it.
    async fn kept_workers(&self) -> Result<Option<(WorkersSnapshot, Duration)>, CountersAway>;

    /// Publishes the lengths of queues for other programs, such as autoscalers: up to [`LENGTH_MAX`], for [`LENGTH_LIFE`].
    /// Counters that no other program can read publish nothing.
    async fn show_lengths(&self, _queues: &[(Arc<str>, u64)]) -> Result<(), CountersAway> {
        Ok(())
    }
}

/// The answer to a request to make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerAnswer {
    Go(Ticket),
    /// The call is refused; asking again makes sense after this time.
    Refused {
        again_in: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Succeeded,
    Failed,
}

/// The state of a shared breaker at the moment of the answer. Durations instead of times, because the clocks of replicas
/// differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerStanding {
    pub state: BreakerState,
    /// Failures in a row while closed; the whole budget otherwise.
    pub failures: u32,
    /// While open: the time until the first probe is let through.
    pub probes_in: Option<Duration>,
}

/// One job and one window of a policy rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VelocityAsk {
    pub rule: Arc<str>,
    /// The values that the jobs of the window share.
    pub key: Arc<str>,
    pub job_id: Arc<str>,
    pub span: Duration,
    pub visit: Visit,
}

/// Whether a query changes the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The job enters the window.
    Enter,
    /// The window stays unchanged: the answer is the position that the job has or would get.
    Look,
}

/// The counters did not answer in time. The caller must not wait but continue with its own process's counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shared counters do not answer ({0}); this process goes on with its own until they do")]
pub struct CountersAway(pub Arc<str>);
