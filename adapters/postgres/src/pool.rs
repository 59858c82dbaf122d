//! Connections for single calls, and the knowledge whether the server is reachable.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_ports::StoreError;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::conn::Conn;
use crate::counters::LiveCounters;
use crate::error::StatementError;
use crate::options::ConnectOptions;
use crate::retry::{TRIES_MAX, connect_after, repeat_after};

/// Opens connections. While the server does not answer, tries are spaced out: callers then fail at once instead of queueing.
pub(crate) struct Connector {
    pub(crate) options: ConnectOptions,
    pub(crate) tally: Arc<LiveCounters>,
    away: Mutex<Option<ReconnectBackoff>>,
    /// Rows of `totals` whose writers have a transaction of unknown outcome, which the server may still execute.
    unfenced: Mutex<BTreeSet<i64>>,
}

struct ReconnectBackoff {
    failures: u32,
    until: Instant,
    why: String,
}

impl Connector {
    pub(crate) fn new(options: ConnectOptions) -> Self {
        Self { options, tally: Arc::default(), away: Mutex::new(None), unfenced: Mutex::default() }
    }

    pub(crate) async fn open(&self) -> Result<Conn, StatementError> {
        if let Some(away) = self.away.lock().as_ref().filter(|away| Instant::now() < away.until) {
            return Err(StatementError::Away(away.why.clone()));
        }
        match Conn::open(&self.options, &self.tally).await {
            Ok(conn) => {
                *self.away.lock() = None;
                Ok(conn)
            }
            Err(fault) => {
                let why = fault.to_string();
                let mut away = self.away.lock();
                let failures = away.as_ref().map_or(0, |away| away.failures + 1);
                *away =
                    Some(ReconnectBackoff { failures, until: Instant::now() + connect_after(failures), why: why.clone() });
                Err(StatementError::Away(why))
            }
        }
    }
}

impl Connector {
    pub(crate) fn lose_track(&self, shard: i64) {
        self.unfenced.lock().insert(shard);
    }

    /// Must run before a change of unknown outcome is read back. Updating a writer's `totals` row waits for its open
    /// transaction, which has the row locked. Raising the guard makes a transaction that has not reached the server yet fail
    /// when it does.
    pub(crate) async fn fence(&self) -> Result<(), StatementError> {
        let shards: Vec<i64> = self.unfenced.lock().iter().copied().collect();
        if shards.is_empty() {
            return Ok(());
        }
        let mut conn = self.open().await?;
        conn.busy = true;
        for shard in shards {
            conn.rows("UPDATE totals SET guard = guard + 1 WHERE shard = $1", &[&shard]).await?;
            self.unfenced.lock().remove(&shard);
        }
        conn.busy = false;
        Ok(())
    }
}

pub(crate) struct ConnectionPool {
    pub(crate) connector: Arc<Connector>,
    places: Semaphore,
    idle: Mutex<Vec<Conn>>,
}

/// Whether an unanswered call may have changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessMode {
    Reads,
    Writes,
}

/// One call: its place in the pool, and its retries.
pub(crate) struct PooledCall<'p> {
    pool: &'p ConnectionPool,
    _place: SemaphorePermit<'p>,
    kind: AccessMode,
    pub(crate) deadline: Instant,
    tries: u32,
}

impl ConnectionPool {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        let places = Semaphore::new(connector.options.readers.max(1));
        Self { connector, places, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) async fn turn(&self, kind: AccessMode) -> Result<PooledCall<'_>, StoreError> {
        let deadline = Instant::now() + self.connector.options.deadline;
        let place = tokio::time::timeout_at(deadline, self.places.acquire()).await;
        let crowded = || StoreError::Unavailable("every connection to the database is busy".to_owned());
        let place = place.map_err(|_| crowded())?.map_err(|_| crowded())?;
        Ok(PooledCall { pool: self, _place: place, kind, deadline, tries: 0 })
    }
}

impl PooledCall<'_> {
    pub(crate) async fn conn(&self) -> Result<Conn, StoreError> {
        let kept = {
            let mut idle = self.pool.idle.lock();
            idle.retain(|conn| !conn.is_closed());
            idle.pop()
        };
        let conn = match kept {
            Some(conn) => Ok(conn),
            None => self.pool.connector.open().await,
        };
        let mut conn = conn.map_err(|fault| fault.before_commit())?;
        conn.busy = true;
        Ok(conn)
    }

    /// The answer of the call, or None if it must be retried.
    pub(crate) async fn judge<T>(
        &mut self,
        mut conn: Conn,
        answer: Result<Result<T, StatementError>, tokio::time::error::Elapsed>,
    ) -> Option<Result<T, StoreError>> {
        let fault = match answer.unwrap_or(Err(StatementError::TimedOut)) {
            Ok(value) => {
                self.give_back(conn);
                return Some(Ok(value));
            }
            Err(fault) => fault,
        };
        let again = fault.wants_repeating() && self.tries < TRIES_MAX;
        // Outside of a transaction ROLLBACK only warns, so it is safe in every case.
        let rolled_back =
            async { tokio::time::timeout_at(self.deadline, conn.say("ROLLBACK")).await.is_ok_and(|said| said.is_ok()) };
        if fault.leaves_the_connection() && rolled_back.await {
            self.give_back(conn);
        }
        if again {
            tokio::time::sleep(repeat_after(self.tries)).await;
            self.tries += 1;
            return None;
        }
        let unknown = self.kind == AccessMode::Writes && !fault.was_refused();
        Some(Err(if unknown { StoreError::UnknownOutcome(fault.to_string()) } else { fault.before_commit() }))
    }

    fn give_back(&self, mut conn: Conn) {
        conn.busy = false;
        self.pool.idle.lock().push(conn);
    }
}
