//! Lanes: the queues of ready jobs. They are an index over the Store: losing them costs latency and never a job.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::{AttemptToken, JobId, PoolName, TenantId};
use lockgate_core::job::Job;
use lockgate_core::lane::{LaneKey, Priority, ReadyKey, Shape};
use lockgate_core::pools::Pools;
use lockgate_core::time::Timestamp;

#[async_trait]
pub trait Lanes: Send + Sync {
    /// Applies a layout: from now on its pools decide where jobs wait, how they are limited and how they take turns. Waiting
    /// jobs and claims are forgotten; a [`rebuild`](Self::rebuild) must follow. Held limits stay held under the keys of the
    /// new layout, and unchanged rates continue. `held` are the attempts that workers hold: the lanes do not know those that
    /// no limit counted until now.
    ///
    /// Lanes shared by several processes change with the first process that calls; see [`Adopted`].
    async fn adopt(&self, layout: LaneLayout, held: Vec<Hold>) -> Adopted;

    /// Whether the lanes know everything that the Store knows.
    async fn condition(&self) -> Condition {
        Condition::Sound
    }

    /// Makes SCHEDULED, due jobs claimable. Idempotent: a job that waits or is claimed already stays as it is. An offer to a
    /// full window is only counted; [`refill_requests`](Self::refill_requests) asks for the job later.
    async fn offer(&self, jobs: Vec<Arc<Job>>);

    /// Answers one [`RefillRequest`] with the Store's next rows of that lane.
    async fn refill(&self, page: Refill);

    /// Claims the best heads for the free seats, with their limits, in one atomic step: never more than the seats have room
    /// for, and never more than a limit allows. A lane whose limit is full waits for that limit and delays no other lane.
    /// Freed room is offered to the waiting lanes, tenant by tenant in order of arrival; of each priority and kind of worker
    /// to as many lanes as there is room, because it is unknown which worker will claim first.
    ///
    /// Only claims advance time: jobs that a rate held back are claimable, and part of [`demand`](Self::demand), from the
    /// first claim on whose `now` has reached [`Claimed::again_at`]. A claim without seats suffices.
    async fn claim(&self, request: ClaimRequest) -> Claimed;

    /// Settles claimed or waiting jobs. Unknown jobs are ignored, and so is a settlement of a claim whose job was claimed
    /// again since.
    async fn settle(&self, settlements: Vec<Settlement>);

    /// What a worker with room could claim now; jobs whose limits are full are left out. Jobs that no pool may take are
    /// listed too, although they are never claimed. The cost is proportional to the list.
    async fn demand(&self) -> Result<Vec<Demand>, LanesAway>;

    /// Counts attempts that workers hold, each with the pool that it runs in, regardless of room: after a start or a loss,
    /// limits count them again. Rates are not charged. Idempotent; an attempt known elsewhere moves. An attempt that was
    /// released after the caller read it from the Store is counted again: the caller must check once more.
    async fn hold(&self, attempts: Vec<Hold>);

    /// Frees the limits of ended attempts, and makes the lanes that waited for them claimable. Unknown attempts are ignored.
    /// Returns whether something may have become claimable.
    async fn release(&self, attempts: Vec<AttemptToken>) -> bool;

    /// The attempts that hold limits, so that a caller can compare them with the Store.
    async fn holding(&self) -> Result<Vec<AttemptToken>, LanesAway>;

    /// The limits of one lane and their use, for a person who asks why the lane waits.
    async fn limits(&self, lane: &LaneKey) -> Vec<LimitView>;

    /// How turns were shared since the pools were adopted, by tenant; at most `limit`, those with the most claims first.
    /// Tenants without work for a long time are forgotten.
    async fn shares(&self, limit: usize) -> Result<Vec<TenantShare>, LanesAway>;

    /// How many jobs were claimed from the lanes of each pool since the pools were adopted; pools without claims are left
    /// out.
    async fn claimed_total(&self) -> Result<Vec<(PoolName, u64)>, LanesAway>;

    /// Lanes whose window runs low while the Store has more jobs. Every request is new: one that was never answered, for
    /// instance because the Store failed, is made again, and a late answer to it is ignored. One loop per process asks;
    /// among processes that share lanes, one at a time gets the request of a lane.
    async fn refill_requests(&self) -> Vec<RefillRequest>;

    /// Lanes with waiting jobs, deepest first; at most `limit`.
    async fn depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LanesAway>;

    /// Replaces the contents of these lanes by the Store's counts, all lanes in one call. Known jobs and claims of these
    /// lanes are forgotten and requested again from the start. Other lanes stay: their jobs were offered after the Store was
    /// read.
    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>);
}

/// The rules by which jobs wait.
#[derive(Clone, Debug)]
pub struct LaneLayout {
    /// Grows with every change of the pools in force; 0 before the first.
    pub version: u64,
    pub pools: Arc<Pools>,
}

/// The outcome of [`Lanes::adopt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// The lanes are empty now and must be rebuilt.
    Anew,
    /// The lanes had this layout already. Nothing was forgotten.
    Already,
    /// The lanes have a later version, which this process will learn of. Nothing changed.
    Outdated,
}

/// How much of the Store's state the lanes know. Lanes in memory always know it; shared lanes may lose their memory or be
/// unreachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The lanes know everything that they were told.
    Sound,
    /// A call was lost, or a rebuild was begun and not completed: rebuild the lanes.
    Behind,
    /// The lanes know nothing, not even a layout: adopt and rebuild.
    Blank,
    /// The lanes cannot be reached. Nothing can be claimed meanwhile, and nothing is lost.
    Away(Arc<str>),
}

/// The lanes cannot be reached or know nothing: how many jobs wait is unknown, which is not the same as none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lanes cannot say what waits ({0}); nothing is lost, and it goes on when they can")]
pub struct LanesAway(pub Arc<str>);

/// The free worker slots of one worker.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Shapes that fit this worker. Their concurrency keys and counts are ignored.
    pub shapes: Arc<[Arc<Shape>]>,
    pub free: usize,
}

#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The pool to claim from: the first choice of the jobs in its lanes.
    pub pool: PoolName,
    /// The pool of the seats' workers: the same pool, or another one that may run the topic's jobs. Its own limit counts.
    pub serving: PoolName,
    pub seats: Vec<Seat>,
    /// The most jobs to claim, even if more slots are free; bounds one commit.
    pub limit: usize,
    /// Used by rate limits.
    pub now: Timestamp,
}

#[derive(Clone, Debug, Default)]
pub struct Claimed {
    pub claims: Vec<Claim>,
    /// The earliest time at which a rate has room for a lane, of any pool, that waits for it.
    pub again_at: Option<Timestamp>,
}

/// An attempt that a worker holds.
#[derive(Clone, Debug)]
pub struct Hold {
    pub lane: LaneKey,
    pub pool: PoolName,
    pub token: AttemptToken,
}

/// Claimable jobs with equal requirements on a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The first choice of these jobs. None if no pool may take them.
    pub pool: Option<PoolName>,
    /// Their shape without concurrency key and count, which do not matter to a worker.
    pub shape: Arc<Shape>,
    /// The highest priority among them.
    pub urgency: Priority,
    /// How many of them are in memory now; at least one.
    pub waiting: usize,
}

/// One limit and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitView {
    pub key: Arc<str>,
    pub max: Option<u32>,
    pub held: u32,
    /// When its rate has room again, if it has none now.
    pub again_at: Option<Timestamp>,
    pub full: bool,
}

/// The turns that one tenant got, and those that it was entitled to, while it had claimable work.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantShare {
    pub tenant: TenantId,
    pub claims: u64,
    /// The claims made of its pool and priority while it had claimable work, each counted as the tenant's share of the total
    /// weight of all tenants with work.
    pub entitled: f64,
    /// The ready time of its oldest job in memory.
    pub oldest: Option<Timestamp>,
}

/// A job claimed for one seat. The lanes remember the claim until it is settled.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The index of the seat in the request.
    pub seat: usize,
    pub job_id: JobId,
    pub lane: LaneKey,
    pub key: ReadyKey,
    /// Distinguishes this claim from others of this place: after a rebuild or an expiry, a job may be claimed again.
    pub number: u64,
    /// The job as it was offered for this place, if the adapter keeps jobs; the Store has it in any case.
    pub job: Option<Arc<Job>>,
}

#[derive(Clone, Debug)]
pub enum Settlement {
    /// Sent to a worker: the job does not wait any more, and its attempt holds the limits of the claim. Must be called
    /// before the worker can answer, or the attempt could be released before it holds anything. Valid even if the claim was
    /// forgotten.
    Sent { lane: LaneKey, key: ReadyKey, token: AttemptToken },
    /// The job does not wait any more for another reason, whether it was claimed or not. Its limits are freed and its rates
    /// not charged. A caller that knows only its own claim gives the claim's number, so that it does not end a later claim.
    Gone { lane: LaneKey, key: ReadyKey, claim: Option<u64> },
    /// The claim with this number is undone: the job returns to its place, its limits are freed and its rates not charged.
    Returned { lane: LaneKey, key: ReadyKey, claim: u64, job: Arc<Job> },
}

/// A request to read `limit` rows of `lane` after `after` from the Store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefillRequest {
    pub lane: LaneKey,
    pub after: Option<ReadyKey>,
    pub limit: usize,
    /// Identifies the request, so that the answer to an earlier one is recognised.
    pub ticket: u64,
}

/// The Store's answer to a [`RefillRequest`].
#[derive(Clone, Debug)]
pub struct Refill {
    pub asked: RefillRequest,
    pub jobs: Vec<Arc<Job>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneDepth {
    /// None if no pool may take its jobs.
    pub pool: Option<PoolName>,
    pub lane: LaneKey,
    pub waiting: u64,
    /// How many of them are not claimed.
    pub unclaimed: u64,
    /// Whether a limit holds them back.
    pub limited: bool,
    /// The head's ready time, if the head is in the window.
    pub oldest: Option<ReadyKey>,
}
