//! Housekeeping.

use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::ids::JobId;
use lockgate_core::time::Timestamp;

use super::{Met, OutboxEntry, StoreError};

#[async_trait]
pub trait Upkeep: Send + Sync {
    /// Outbox rows after a number that are at least this old by the Store's clock, in the order of their numbers. 0 is before
    /// all of them. Rows of one job are numbered in the order of its commits; one of another job may come late with a lower
    /// number, so whoever wants all of them begins again from 0.
    async fn outbox(&self, after: i64, age: Duration, limit: usize) -> Result<Vec<OutboxRow>, StoreError>;

    /// All outbox rows of these jobs, in the order of their numbers.
    async fn outbox_of(&self, jobs: &[JobId]) -> Result<Vec<OutboxRow>, StoreError>;

    /// What waits in the outbox, of which no more than `limit` rows are looked at.
    async fn backlog(&self, limit: usize) -> Result<OutboxBacklog, StoreError>;

    /// Forgets rows that their sink acknowledged.
    async fn outbox_done(&self, ids: &[i64]) -> Result<(), StoreError>;

    /// Deletes jobs that ended longer than `keep` ago with all that belongs to them except unacknowledged outbox rows,
    /// and idempotency keys, closed sessions that hold nothing and closed edges past their life. A job of a run, and a run
    /// inside of another, stay until that run is over; a child stays until its parent has ended. Runs that were over longer than `keep` ago go with their nodes and
    /// what they did not hear. Slots of schedules that were decided longer than `keep` ago go unless they are DUE or QUEUED.
    ///
    /// At most `limit` jobs a call; whole runs, until they and their nodes are `limit` rows or more; and at most `limit` slots.
    /// How many jobs, runs and slots went.
    async fn prune(&self, keep: Duration, limit: usize) -> Result<u64, StoreError>;

    /// Counts kept up to date by the Store, not scanned for.
    async fn totals(&self) -> Result<Totals, StoreError>;

    /// Rows that cannot be decoded, as far as reads met them.
    fn unreadable(&self) -> Met;

    /// Answers when the Store can write and read what a submit, a claim and a result write. It leaves nothing behind.
    async fn check(&self) -> Result<(), StoreError>;

    /// What keeps the Store from removing rows that are no longer in force. None in a Store that knows no such thing.
    async fn pinned(&self) -> Result<Option<Pinned>, StoreError> {
        Ok(None)
    }
}

/// Something that holds on to an old state of the Store: a transaction that stays open, a replica that reads nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// How an operator finds it.
    pub holder: String,
    /// None if the Store does not know.
    pub held_for: Option<Duration>,
    /// Transactions since then.
    pub transactions: u64,
    /// Rows of the tables of jobs that are no longer in force and were not removed.
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
    /// Of those that were looked at.
    pub rows: u64,
    /// For how long the oldest of them has been waiting, by the Store's clock.
    pub oldest: Duration,
}

/// Indexed by priority, in the order of `Priority::ALL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Jobs that have not ended.
    pub live: [u64; 4],
    pub dead_letters: [u64; 4],
    /// Jobs ended and kept.
    pub ended: u64,
}
