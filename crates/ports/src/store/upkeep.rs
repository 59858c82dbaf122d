//! Housekeeping of the Store.

use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::ids::JobId;
use lockgate_core::time::Timestamp;

use super::{Met, OutboxEntry, StoreError};

#[async_trait]
pub trait Upkeep: Send + Sync {
    /// Outbox rows after a number that are at least this old by the Store's clock, in the order of their numbers. 0 is
    /// before the first. Rows of one job are numbered in the order of its commits; rows of different jobs may be committed
    /// out of order, so a reader that wants all of them must start again from 0.
    async fn outbox(&self, after: i64, age: Duration, limit: usize) -> Result<Vec<OutboxRow>, StoreError>;

    /// All outbox rows of these jobs, in the order of their numbers.
    async fn outbox_of(&self, jobs: &[JobId]) -> Result<Vec<OutboxRow>, StoreError>;

    /// The size of the outbox, of which at most `limit` rows are read.
    async fn backlog(&self, limit: usize) -> Result<OutboxBacklog, StoreError>;

    /// Deletes rows that their sink has acknowledged.
    async fn outbox_done(&self, ids: &[i64]) -> Result<(), StoreError>;

    /// Deletes jobs that ended longer than `keep` ago, with all their rows except unacknowledged outbox rows; and expired
    /// idempotency keys, closed sessions that hold nothing, and closed edges. A job of a run, and a sub-run, stay until that
    /// run is over; a child stays until its parent has ended. Runs that were over longer than `keep` ago are deleted with
    /// their nodes and untaken messages. Slots that were decided longer than `keep` ago are deleted unless they are DUE or
    /// QUEUED.
    ///
    /// At most `limit` jobs per call; whole runs, until they and their nodes are `limit` rows or more; and at most `limit`
    /// slots. Returns how many jobs, runs and slots were deleted.
    async fn prune(&self, keep: Duration, limit: usize) -> Result<u64, StoreError>;

    /// Counts that the Store updates with each commit and does not scan for.
    async fn totals(&self) -> Result<Totals, StoreError>;

    /// Rows that cannot be decoded, as far as reads have met them.
    fn unreadable(&self) -> Met;

    /// Succeeds if the Store can write and read what a submit, a claim and a result write. Leaves nothing behind.
    async fn check(&self) -> Result<(), StoreError>;

    /// What keeps the Store from removing dead rows. None for a Store without such a thing.
    async fn pinned(&self) -> Result<Option<Pinned>, StoreError> {
        Ok(None)
    }
}

/// A holder of an old state of the Store: a transaction that stays open, or a replica that does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// How an operator finds it.
    pub holder: String,
    /// None if the Store does not know.
    pub held_for: Option<Duration>,
    /// Transactions since then.
    pub transactions: u64,
    /// Dead rows of the job tables that could not be removed.
    pub dead_rows: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    pub id: i64,
    pub job_id: JobId,
    /// When it was committed, by the Store's clock.
    pub at: Timestamp,
    pub entry: OutboxEntry,
}

/// Outbox rows that no sink has acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxBacklog {
    /// How many of the rows that were read.
    pub rows: u64,
    /// How long the oldest of them has been waiting, by the Store's clock.
    pub oldest: Duration,
}

/// Arrays are indexed by priority, in the order of `Priority::ALL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Jobs that have not ended.
    pub live: [u64; 4],
    pub dead_letters: [u64; 4],
    /// Ended jobs that are kept.
    pub ended: u64,
}
