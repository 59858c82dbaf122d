//! An open transaction, as its tasks see it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lockgate_core::ids::{JobId, SessionId};
use lockgate_core::job::Evidence;
use lockgate_core::lane::LaneKey;
use lockgate_core::pools::RoutingId;
use lockgate_core::time::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::RunningTotals;
use super::tallies::Tallies;
use crate::error::StatementError;

/// Lanes that the writing thread remembers. Looked up and never iterated.
#[derive(Default)]
pub(super) struct LaneIds {
    known: HashMap<LaneKey, i64>,
    /// How far the search for unused lanes has come.
    looked_at: i64,
}

/// The most remembered lanes, so that a client with made-up topics cannot fill the memory.
const LANES_REMEMBERED_MAX: usize = 10_000;
/// Lanes checked in one round of pruning.
const LANES_LOOKED_AT: i64 = 10_000;

impl LaneIds {
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}

/// State that a commit makes true; before it, the state since the last commit.
#[derive(Clone)]
pub(super) struct WriterState {
    pub(super) totals_row: RunningTotals,
    pub(super) in_force: ActiveIds,
}

/// The ids of the configuration in force. The writing thread remembers them, so that a dispatch needs no read.
#[derive(Clone)]
pub(super) struct ActiveIds {
    pub(super) policy: Arc<str>,
    pub(super) routing: RoutingId,
}

pub(crate) struct WriteTx<'c> {
    pub(super) conn: &'c Connection,
    /// The Store's time: read once per transaction, after the whole group has arrived.
    pub(super) now: Timestamp,
    pub(super) totals_row: &'c mut RunningTotals,
    pub(super) in_force: &'c mut ActiveIds,
    pub(super) statements: Statements<'c>,
    pub(super) lanes: &'c mut LaneIds,
    pub(super) tallies: Tallies,
    /// The log must be truncated, because it holds erased data from before this transaction.
    pub(super) erased: bool,
    /// Sessions read as evidence in this transaction: epoch, and whether closed.
    seen: BTreeMap<SessionId, Option<(u64, bool)>>,
}

/// The prepared statements of the hot path, looked up once per transaction instead of once per job.
pub(super) struct Statements<'c> {
    pub(super) insert_job: CachedStatement<'c>,
    pub(super) insert_hot: CachedStatement<'c>,
    pub(super) update_hot: CachedStatement<'c>,
    pub(super) schedule_hot: CachedStatement<'c>,
    pub(super) leave_hot: CachedStatement<'c>,
    pub(super) insert_done: CachedStatement<'c>,
    pub(super) delete_hot: CachedStatement<'c>,
}

impl<'c> WriteTx<'c> {
    pub(super) fn open(
        conn: &'c Connection,
        state: &'c mut WriterState,
        lanes: &'c mut LaneIds,
        now: Timestamp,
    ) -> Result<Self, StatementError> {
        let statements = Statements {
            insert_job: conn.prepare_cached(include_str!("../../queries/insert_job.sql"))?,
            insert_hot: conn.prepare_cached(include_str!("../../queries/insert_hot.sql"))?,
            update_hot: conn.prepare_cached(include_str!("../../queries/update_hot.sql"))?,
            schedule_hot: conn.prepare_cached(include_str!("../../queries/schedule_hot.sql"))?,
            leave_hot: conn.prepare_cached("SELECT events FROM jobs_hot WHERE seq = ?1 AND version = ?2")?,
            insert_done: conn.prepare_cached(include_str!("../../queries/insert_done.sql"))?,
            delete_hot: conn.prepare_cached("DELETE FROM jobs_hot WHERE seq = ?1")?,
        };
        let WriterState { totals_row, in_force } = state;
        let (tallies, seen) = (Tallies::default(), BTreeMap::new());
        Ok(Self { conn, now, totals_row, in_force, statements, lanes, tallies, erased: false, seen })
    }

    pub(crate) fn proves(&mut self, evidence: &Evidence) -> Result<bool, StatementError> {
        Ok(match evidence {
            Evidence::Version => true,
            Evidence::Reached(at) => *at <= self.now,
            Evidence::Attached { session, epoch } => self.session(session)? == Some((*epoch, false)),
            Evidence::Allowed { session, epoch, policy, routing } => {
                let ActiveIds { policy: allowing, routing: chosen_by } = &*self.in_force;
                policy == allowing && routing == chosen_by && self.session(session)? == Some((*epoch, false))
            }
            Evidence::InForce(policy) => *policy == self.in_force.policy,
            Evidence::Routed(routing) => *routing == self.in_force.routing,
            Evidence::Unchanged { job, version } => self.is_unchanged(job, *version)?,
            Evidence::Closed { session, epoch } => self.session(session)? == Some((*epoch, true)),
        })
    }

    /// Read anew each time, because an earlier change of this transaction may have changed it.
    fn is_unchanged(&self, job: &JobId, version: i64) -> Result<bool, StatementError> {
        let sql =
            "SELECT 1 FROM jobs JOIN jobs_hot ON jobs_hot.seq = jobs.seq WHERE jobs.job_id = ?1 AND jobs_hot.version = ?2";
        Ok(self.conn.prepare_cached(sql)?.exists(rusqlite::params![job.as_str(), version])?)
    }

    fn session(&mut self, session: &SessionId) -> Result<Option<(u64, bool)>, StatementError> {
        if let Some(seen) = self.seen.get(session) {
            return Ok(*seen);
        }
        let mut query = self.conn.prepare_cached("SELECT epoch, closed_at IS NOT NULL FROM sessions WHERE session = ?1")?;
        let found = query.query_row([session.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional()?;
        let found = found.map(|(epoch, closed)| (epoch.unsigned_abs(), closed));
        self.seen.insert(session.clone(), found);
        Ok(found)
    }

    /// Forgets the cached state of a session that this transaction changed.
    pub(super) fn session_changed(&mut self, session: &SessionId) {
        self.seen.remove(session);
    }

    /// Deletes lanes in which no job waits, a bounded number at a time. A job that begins to wait names its lane anew, so
    /// only lanes with waiting jobs need a row.
    pub(super) fn forget_lanes(&mut self) -> Result<(), StatementError> {
        let mut query =
            self.conn.prepare_cached("SELECT lane_id FROM lanes WHERE lane_id > ?1 ORDER BY lane_id LIMIT ?2")?;
        let page: Vec<i64> =
            query.query_map([self.lanes.looked_at, LANES_LOOKED_AT], |row| row.get(0))?.collect::<Result<_, _>>()?;
        // A short page is the last one: the next round starts from the beginning.
        let more = i64::try_from(page.len()).is_ok_and(|looked| looked == LANES_LOOKED_AT);
        self.lanes.looked_at = page.last().copied().filter(|_| more).unwrap_or_default();
        let mut delete = self.conn.prepare_cached(include_str!("../../queries/forget_lane.sql"))?;
        let mut forgotten = 0;
        for id in page {
            forgotten += delete.execute([id])?;
        }
        if forgotten > 0 {
            self.lanes.clear();
        }
        Ok(())
    }

    pub(super) fn lane_id(&mut self, lane: LaneKey) -> Result<i64, StatementError> {
        if let Some(id) = self.lanes.known.get(&lane) {
            return Ok(*id);
        }
        let key = serde_json::to_string(&lane)?;
        self.conn.prepare_cached("INSERT INTO lanes (key) VALUES (?1) ON CONFLICT DO NOTHING")?.execute([&key])?;
        let mut query = self.conn.prepare_cached("SELECT lane_id FROM lanes WHERE key = ?1")?;
        let id = query.query_row([&key], |row| row.get(0))?;
        if self.lanes.known.len() >= LANES_REMEMBERED_MAX {
            self.lanes.clear();
        }
        self.lanes.known.insert(lane, id);
        Ok(id)
    }
}
