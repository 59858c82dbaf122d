//! Ready queues. An index over the Store: losing it costs latency, never a job.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::{JobId, PoolName};
use lockgate_core::job::Job;
use lockgate_core::lane::{LaneKey, ReadyKey, Shape};

#[async_trait]
pub trait Lanes: Send + Sync {
    /// Makes SCHEDULED, due jobs claimable. Idempotent: a job that waits or is claimed already is left as it is.
    /// An offer that finds its window full only counts; [`hungry`](Self::hungry) asks for it again later.
    async fn offer(&self, jobs: Vec<Arc<Job>>);

    /// Answers one [`Hungry`] with the Store's next rows of that lane.
    async fn feed(&self, page: Page);

    /// Takes the best heads for the free seats in one atomic step. Never more than the seats ask for.
    async fn claim(&self, request: ClaimRequest) -> Vec<Claim>;

    /// Says what became of claimed or waiting jobs. Unknown jobs are ignored.
    async fn settle(&self, settlements: Vec<Settlement>);

    /// The shapes that wait in a pool, so that callers can say which of them their workers fit.
    async fn shapes(&self, pool: &PoolName) -> ShapeSet;

    /// Lanes whose window runs low while the Store has more. Every ask is new: one that was made before and never
    /// answered, because the Store failed for instance, is simply made again, and its late answer is ignored. One
    /// loop per process asks.
    async fn hungry(&self) -> Vec<Hungry>;

    /// Sub-queues with waiting jobs, deepest first; at most `limit`.
    async fn depths(&self, limit: usize) -> Vec<LaneDepth>;

    /// Takes the Store's word on how many jobs wait where. What was known of these lanes, claims too, is forgotten and
    /// asked for again from their start. Other lanes stay: their jobs were offered after the Store was read.
    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>);
}

/// Free places of one kind of worker.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Shapes this worker fits.
    pub shapes: Arc<[Arc<Shape>]>,
    pub free: usize,
}

#[derive(Clone, Debug)]
pub struct ClaimRequest {
    pub pool: PoolName,
    pub seats: Vec<Seat>,
    /// Most jobs taken, however many places are free: bounds one commit.
    pub limit: usize,
}

/// A job taken from its lane for one seat. It stays known as claimed until it is settled.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Index into the request's seats.
    pub seat: usize,
    pub job_id: JobId,
    pub lane: LaneKey,
    pub key: ReadyKey,
    /// The job as it was offered, where the adapter keeps it; the Store has it in any case.
    pub job: Option<Arc<Job>>,
}

#[derive(Clone, Debug)]
pub enum Settlement {
    /// Dispatched or gone otherwise: it does not wait any more, whether it was claimed or still in the lane.
    Gone { lane: LaneKey, key: ReadyKey },
    /// The claim came to nothing: back to its place.
    Returned { lane: LaneKey, key: ReadyKey, job: Arc<Job> },
}

/// Ask the Store for `limit` rows of `lane` after `after`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hungry {
    pub lane: LaneKey,
    pub after: Option<ReadyKey>,
    pub limit: usize,
    /// Tells the answer to this ask from the answer to an earlier one.
    pub ticket: u64,
}

/// The Store's answer to a [`Hungry`].
#[derive(Clone, Debug)]
pub struct Page {
    pub asked: Hungry,
    pub jobs: Vec<Arc<Job>>,
}

#[derive(Clone, Debug, Default)]
pub struct ShapeSet {
    /// Changes whenever the set does.
    pub generation: u64,
    pub shapes: Arc<[Arc<Shape>]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneDepth {
    pub lane: LaneKey,
    pub waiting: u64,
    /// The head's ready time, if the head is in the window.
    pub oldest: Option<ReadyKey>,
}
