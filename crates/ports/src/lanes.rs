//! Ready queues. An index over the Store: losing it costs latency, never a job.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::{AttemptToken, JobId, PoolName, TenantId};
use lockgate_core::job::Job;
use lockgate_core::lane::{LaneKey, Priority, ReadyKey, Shape};
use lockgate_core::pools::Pools;
use lockgate_core::time::Timestamp;

#[async_trait]
pub trait Lanes: Send + Sync {
    /// From now on jobs wait, are limited and take turns as these pools say. What waits is forgotten, claims too: a
    /// [`rebuild`](Self::rebuild) follows. What is held of limits stays held, under the keys of now, and rates that did not
    /// change go on. `held` are the attempts that workers hold: those that no limit counted until now are not known here.
    ///
    /// Lanes that several processes share change with the first of them; see [`Adopted`].
    async fn adopt(&self, layout: LaneLayout, held: Vec<Hold>) -> Adopted;

    /// How far what is known here can be relied on.
    async fn condition(&self) -> Condition {
        Condition::Sound
    }

    /// Makes SCHEDULED, due jobs claimable. Idempotent: a job that waits or is claimed already is left as it is.
    /// An offer that finds its window full only counts; [`refill_requests`](Self::refill_requests) asks for it again later.
    async fn offer(&self, jobs: Vec<Arc<Job>>);

    /// Answers one [`RefillRequest`] with the Store's next rows of that lane.
    async fn refill(&self, page: Refill);

    /// Takes the best heads for the free seats, and their limits, in one atomic step. Never more than the seats ask for,
    /// never more than a limit has room for. A lane whose limit is full waits for that limit, and delays no other lane. When
    /// room appears it is offered to the lanes that wait, tenant by tenant in the order in which they came; of each priority
    /// and kind of worker to as many as there is room for, because it is not known which worker will ask first.
    ///
    /// Only claims let time pass: what a rate held back is claimable, and in [`demand`](Self::demand), from the first claim
    /// on whose `now` reached [`Claimed::again_at`]. One without seats will do.
    async fn claim(&self, request: ClaimRequest) -> Claimed;

    /// Says what became of claimed or waiting jobs. Unknown jobs are ignored, and so is what is said of a claim when its job
    /// was claimed again since.
    async fn settle(&self, settlements: Vec<Settlement>);

    /// What could be claimed now if a worker had room for it: jobs whose limits are full are left out. What no pool may take
    /// is listed too, and never claimed. Costs what the list is long.
    async fn demand(&self) -> Result<Vec<Demand>, LanesAway>;

    /// Attempts that workers hold, each with the pool it runs in: after a start or a loss, limits count them again, room or
    /// not. Rates are not charged. Idempotent; an attempt that is known elsewhere moves. One that was released after the caller
    /// had read of it counts again: it is the caller's to look once more.
    async fn hold(&self, attempts: Vec<Hold>);

    /// These attempts are over: what they held of limits is free, and the lanes that waited for it are claimable again.
    /// Unknown ones are ignored. Whether something may be claimable now that was not.
    async fn release(&self, attempts: Vec<AttemptToken>) -> bool;

    /// Attempts that hold something of a limit, so that a caller can compare them with the Store.
    async fn holding(&self) -> Result<Vec<AttemptToken>, LanesAway>;

    /// The limits of one lane as they stand now, for a person who asks why it waits.
    async fn limits(&self, lane: &LaneKey) -> Vec<LimitView>;

    /// How turns were shared out since the pools were adopted, by tenant; at most `limit`, those with the most claims first.
    /// Tenants that have had nothing to do for long are forgotten.
    async fn shares(&self, limit: usize) -> Result<Vec<TenantShare>, LanesAway>;

    /// How many jobs were claimed from the lanes of each pool since the pools were adopted; nothing where none was.
    async fn claimed_total(&self) -> Result<Vec<(PoolName, u64)>, LanesAway>;

    /// Lanes whose window runs low while the Store has more. Every ask is new: one that was made before and never
    /// answered, because the Store failed for instance, is simply made again, and its late answer is ignored. One
    /// loop per process asks; of several processes that share lanes, one at a time is told of a lane.
    async fn refill_requests(&self) -> Vec<RefillRequest>;

    /// Sub-queues with waiting jobs, deepest first; at most `limit`.
    async fn depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LanesAway>;

    /// Takes the Store's word on how many jobs wait where, all lanes in one call. What was known of these lanes, claims too,
    /// is forgotten and asked for again from their start. Other lanes stay: their jobs were offered after the Store was read.
    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>);
}

/// By which rules jobs wait.
#[derive(Clone, Debug)]
pub struct LaneLayout {
    /// Grows with every change of the pools in force; 0 before there was one.
    pub version: u64,
    pub pools: Arc<Pools>,
}

/// What became of [`Lanes::adopt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// The lanes are empty now: rebuild them.
    Anew,
    /// They were laid out like this already. Nothing was forgotten.
    Already,
    /// They follow a later version, which this process will learn of. Nothing changed.
    Outdated,
}

/// How far lanes know what the Store knows. Those in memory always do; shared ones may lose their memory or be out of reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Everything that was said to them is known.
    Sound,
    /// Something was said that they did not hear, or a rebuild was begun and not ended: rebuild them.
    Behind,
    /// They know nothing, not even by which rules jobs wait: adopt and rebuild.
    Blank,
    /// They cannot be asked: nothing can be claimed until they can, and nothing is lost.
    Away(Arc<str>),
}

/// The lanes could not be asked, or know nothing: how much waits is unknown, which is something else than nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lanes cannot say what waits ({0}); nothing is lost, and it goes on when they can")]
pub struct LanesAway(pub Arc<str>);

/// Free places of one worker.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Shapes this worker fits. Their concurrency keys and counts are not looked at.
    pub shapes: Arc<[Arc<Shape>]>,
    pub free: usize,
}

#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The pool whose lanes are asked: the first choice of the jobs that wait in them.
    pub pool: PoolName,
    /// The pool of the seats' workers: the same, or one that the topic's jobs may also run in. Its own limit counts.
    pub serving: PoolName,
    pub seats: Vec<Seat>,
    /// Most jobs taken, however many places are free: bounds one commit.
    pub limit: usize,
    /// For limits by time.
    pub now: Timestamp,
}

#[derive(Clone, Debug, Default)]
pub struct Claimed {
    pub claims: Vec<Claim>,
    /// The earliest time at which a limit by time has room for a lane, of any pool, that waits for it.
    pub again_at: Option<Timestamp>,
}

/// An attempt that a worker holds.
#[derive(Clone, Debug)]
pub struct Hold {
    pub lane: LaneKey,
    pub pool: PoolName,
    pub token: AttemptToken,
}

/// Claimable jobs that ask the same of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The first choice of these jobs. None when no pool may take them.
    pub pool: Option<PoolName>,
    /// Their shape without concurrency key and count, which are no business of a worker's.
    pub shape: Arc<Shape>,
    /// The most urgent of them.
    pub urgency: Priority,
    /// How many are in memory now; at least one.
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

/// What one tenant got of the turns it was entitled to, while it had claimable work.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantShare {
    pub tenant: TenantId,
    pub claims: u64,
    /// Claims made of its pool and priority while it had claimable work, each counted as its weight by the weights of all
    /// that had.
    pub entitled: f64,
    /// The ready time of its oldest job in memory.
    pub oldest: Option<Timestamp>,
}

/// A job taken from its lane for one seat. It stays known as claimed until it is settled.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Index into the request's seats.
    pub seat: usize,
    pub job_id: JobId,
    pub lane: LaneKey,
    pub key: ReadyKey,
    /// Tells this claim from every other of the same place: after a rebuild, or when its time is up, a job may be claimed again.
    pub number: u64,
    /// The job as it was offered for this very place, where the adapter keeps it; the Store has it in any case.
    pub job: Option<Arc<Job>>,
}

#[derive(Clone, Debug)]
pub enum Settlement {
    /// Sent to a worker: it does not wait any more, and its attempt holds what the claim took of limits. Said before the
    /// worker can answer, or the attempt may be released before it holds anything. It counts even if the claim was forgotten.
    Sent { lane: LaneKey, key: ReadyKey, token: AttemptToken },
    /// Gone some other way: it does not wait any more, whether it was claimed or still in the lane. Its limits are
    /// free, and its rates not charged. A caller that knows only its own claim gives its number, and so ends no later claim.
    Gone { lane: LaneKey, key: ReadyKey, claim: Option<u64> },
    /// The claim with this number came to nothing: back to its place, its limits are free and its rates not charged.
    Returned { lane: LaneKey, key: ReadyKey, claim: u64, job: Arc<Job> },
}

/// Ask the Store for `limit` rows of `lane` after `after`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefillRequest {
    pub lane: LaneKey,
    pub after: Option<ReadyKey>,
    pub limit: usize,
    /// Tells the answer to this ask from the answer to an earlier one.
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
    /// None when no pool may take its jobs.
    pub pool: Option<PoolName>,
    pub lane: LaneKey,
    pub waiting: u64,
    /// Those of them that are not claimed.
    pub unclaimed: u64,
    /// A limit holds them back.
    pub limited: bool,
    /// The head's ready time, if the head is in the window.
    pub oldest: Option<ReadyKey>,
}
