//! Erases a tenant.

use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::TenantId;
use lockgate_ports::{Erased, Usage};
use rusqlite::params;

use super::WriteTx;
use crate::connection::{OVERWRITE_ALWAYS, OVERWRITE_USUALLY};
use crate::error::StatementError;

/// The tenant's rows other than jobs, runs and slots.
const REST: [&str; 5] = [
    "DELETE FROM schedules WHERE tenant = ?1",
    "DELETE FROM dags WHERE tenant = ?1",
    "DELETE FROM idempotency WHERE tenant = ?1",
    "DELETE FROM run_keys WHERE tenant = ?1",
    "DELETE FROM memos WHERE tenant = ?1",
];

impl WriteTx<'_> {
    /// `jobs` were found by an earlier read, so each is checked again.
    pub(crate) fn erase(
        &mut self,
        tenant: &TenantId,
        jobs: &[i64],
        limit: usize,
        audit: &AuditEntry,
    ) -> Result<Erased, StatementError> {
        self.conn.execute_batch(OVERWRITE_ALWAYS)?;
        let erased = self.erase_rows(tenant, jobs, limit, audit);
        self.conn.execute_batch(OVERWRITE_USUALLY)?;
        erased
    }

    fn erase_rows(
        &mut self,
        tenant: &TenantId,
        jobs: &[i64],
        limit: usize,
        audit: &AuditEntry,
    ) -> Result<Erased, StatementError> {
        let (jobs, runs) = (self.erase_jobs(tenant, jobs)?, self.erase_runs(tenant, limit)?);
        let usage = self.usage(tenant)?;
        let mut erased = Erased { jobs, runs, live_jobs: usage.live, live_runs: usage.runs, done: false };
        let is_over = "SELECT 1 FROM runs WHERE tenant = ?1 AND state >= 4 LIMIT 1";
        if usage != Usage::default() || self.number(is_over, [tenant.as_str()])?.is_some() {
            return Ok(erased);
        }
        let mut gone = self.erase_rest(tenant, limit)?;
        let slot = "SELECT 1 FROM schedule_slots WHERE tenant = ?1 LIMIT 1";
        erased.done = self.number(slot, [tenant.as_str()])?.is_none();
        if erased.done {
            gone += usize::from(self.forget_tally(tenant)?);
            if gone > 0 {
                self.keep_audit(std::slice::from_ref(audit))?;
            }
        }
        Ok(erased)
    }

    fn erase_jobs(&mut self, tenant: &TenantId, jobs: &[i64]) -> Result<u64, StatementError> {
        let mut gone = 0;
        for seq in jobs {
            // The job may have begun a new life, or be deleted already.
            let still = params![tenant.as_str(), seq - 1, seq, 1];
            if self.number(include_str!("../../queries/jobs_to_erase.sql"), still)?.is_some() {
                let untold = "DELETE FROM outbox WHERE job_id = (SELECT job_id FROM jobs WHERE seq = ?1)";
                self.conn.prepare_cached(untold)?.execute([seq])?;
                self.forget_job(*seq)?;
                gone += 1;
            }
        }
        Ok(gone)
    }

    fn erase_runs(&mut self, tenant: &TenantId, limit: usize) -> Result<u64, StatementError> {
        let mut query = self.conn.prepare_cached(include_str!("../../queries/runs_to_erase.sql"))?;
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let over = query.query_map(params![tenant.as_str(), most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let over = over.collect::<Result<Vec<(i64, String)>, _>>()?;
        for (run_no, run_id) in &over {
            self.forget_run(*run_no, run_id)?;
        }
        Ok(over.len() as u64)
    }

    /// Returns how many rows were deleted.
    fn erase_rest(&mut self, tenant: &TenantId, limit: usize) -> Result<usize, StatementError> {
        let mut gone = 0;
        for sql in REST {
            gone += self.conn.prepare_cached(sql)?.execute([tenant.as_str()])?;
        }
        // No job waits in the tenant's lanes any more.
        self.conn.prepare_cached("DELETE FROM lanes WHERE key ->> '$.tenant' = ?1")?.execute([tenant.as_str()])?;
        self.lanes.clear();
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let slots = params![tenant.as_str(), most];
        gone += self.conn.prepare_cached(include_str!("../../queries/erase_slots.sql"))?.execute(slots)?;
        Ok(gone)
    }
}
