//! Retention, the outbox, and the health check that writing works.

use std::time::Duration;

use lockgate_core::ids::TenantId;
use lockgate_ports::StoreError;
use lockgate_ports::store::CLOSED_LIFE;
use rusqlite::params;

use super::WriteTx;
use super::tallies::TenantDelta;
use crate::error::StatementError;

/// Deletes an ended job's rows other than its duties and its dead letter.
const BELONGINGS: [&str; 7] = [
    "DELETE FROM jobs WHERE seq = ?1",
    "DELETE FROM jobs_done WHERE seq = ?1",
    "DELETE FROM job_logs WHERE seq = ?1",
    "DELETE FROM idempotency WHERE seq = ?1",
    "DELETE FROM run_jobs WHERE seq = ?1",
    "DELETE FROM children WHERE seq = ?1",
    "DELETE FROM memos WHERE seq = ?1",
];

/// The life of a rehearsed job: created, claimed, ended, deleted. No other connection sees it.
const REHEARSED: [&str; 7] = [
    "INSERT INTO jobs (seq, job_id, tenant, topic, hash, request, payload) VALUES (?1, '~rehearsal', '', '', x'', '', '')",
    "INSERT INTO jobs_hot (seq, version, state, lane_id, due_at, delayed, deadline_at, life, events) \
     VALUES (?1, 1, 2, 0, 0, 1, 0, '', '')",
    "UPDATE jobs_hot SET version = 2, state = 3, delayed = 0, session = '~rehearsal' WHERE seq = ?1",
    "INSERT INTO jobs_done (seq, version, state, ended_at, life, events) VALUES (?1, 3, 5, 0, '', '')",
    "DELETE FROM jobs_hot WHERE seq = ?1",
    "DELETE FROM jobs_done WHERE seq = ?1",
    "DELETE FROM jobs WHERE seq = ?1",
];

impl WriteTx<'_> {
    pub(crate) fn prune(&mut self, keep: Duration, limit: usize) -> Result<u64, StatementError> {
        let old = self.ended_before((self.now - keep).as_millis(), limit)?;
        for seq in &old {
            self.forget_job(*seq)?;
        }
        self.conn.prepare_cached("DELETE FROM idempotency WHERE free_at <= ?1")?.execute([self.now.as_millis()])?;
        let closed_before = (self.now - CLOSED_LIFE).as_millis();
        self.conn.prepare_cached(include_str!("../../queries/forget_sessions.sql"))?.execute([closed_before])?;
        self.conn.prepare_cached(include_str!("../../queries/forget_edges.sql"))?.execute([closed_before])?;
        self.forget_lanes()?;
        let before = (self.now - keep).as_millis();
        Ok(old.len() as u64 + self.prune_runs(before, limit)? + self.prune_slots(before, limit)?)
    }

    /// Deletes an ended job with all its rows.
    pub(super) fn forget_job(&mut self, seq: i64) -> Result<(), StatementError> {
        let (tenant, stored_bytes) = self.size_of(seq)?;
        self.tallies.add(&tenant, TenantDelta { ended: -1, stored_bytes: -stored_bytes, ..TenantDelta::default() });
        for sql in BELONGINGS {
            self.conn.prepare_cached(sql)?.execute([seq])?;
        }
        self.forget_duties(seq)?;
        self.drop_letter(seq)?;
        self.totals_row.job_pruned();
        Ok(())
    }

    fn size_of(&self, seq: i64) -> Result<(TenantId, i64), StatementError> {
        let mut query = self.conn.prepare_cached(include_str!("../../queries/size_of_ended.sql"))?;
        let mut rows = query.query([seq])?;
        let row = rows.next()?.ok_or_else(|| StatementError::Row(format!("job {seq} has ended and is not there")))?;
        Ok((row.get_ref(0)?.as_str()?.into(), row.get(1)?))
    }

    fn ended_before(&self, at: i64, limit: usize) -> Result<Vec<i64>, StatementError> {
        let mut query = self.conn.prepare_cached(include_str!("../../queries/jobs_to_prune.sql"))?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let seqs = query.query_map([at, limit], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(seqs)
    }

    pub(crate) fn outbox_done(&mut self, ids: &[i64]) -> Result<(), StatementError> {
        let mut delete = self.conn.prepare_cached("DELETE FROM outbox WHERE outbox_id = ?1")?;
        for id in ids {
            delete.execute([id])?;
        }
        Ok(())
    }

    /// Executes what a submit, a claim and a result write, and deletes it again: in the same B-trees, at the position of the
    /// next job, and with as many pages as a small submit needs on disk. A damaged page counts as the fault of this task
    /// alone: a submit in the same transaction may not need that page, and is tried without this task.
    pub(crate) fn rehearse(&mut self) -> Result<(), StatementError> {
        self.rehearse_life(self.totals_row.last_seq + 1).map_err(|fault| match fault.before_commit() {
            StoreError::Corrupt(text) => StatementError::Row(text),
            _ => fault,
        })
    }

    fn rehearse_life(&self, seq: i64) -> Result<(), StatementError> {
        self.conn.prepare_cached("UPDATE book SET last_seq = ?1")?.execute(params![self.totals_row.last_seq])?;
        for sql in REHEARSED {
            self.conn.prepare_cached(sql)?.execute([seq])?;
        }
        Ok(())
    }
}
