//! Writes the duties of jobs, and the result that is held while its scan is owed.

use lockgate_core::ids::{JobSeq, TenantId};
use lockgate_core::job::Duty;
use rusqlite::params;

use super::WriteTx;
use super::tallies::{TenantDelta, bytes};
use crate::encoded_change::EncodedChange;
use crate::error::StatementError;

impl WriteTx<'_> {
    pub(super) fn keep_duties(&self, seq: JobSeq, duties: &[(Duty, bool)]) -> Result<(), StatementError> {
        for (duty, begins) in duties {
            let sql = if *begins {
                "INSERT INTO duties (kind, seq) VALUES (?1, ?2)"
            } else {
                "DELETE FROM duties WHERE kind = ?1 AND seq = ?2"
            };
            self.conn.prepare_cached(sql)?.execute(params![duty.as_str(), seq.0])?;
        }
        Ok(())
    }

    pub(super) fn forget_duties(&self, seq: i64) -> Result<(), StatementError> {
        let mut delete = self.conn.prepare_cached("DELETE FROM duties WHERE kind = ?1 AND seq = ?2")?;
        for duty in Duty::ALL {
            delete.execute(params![duty.as_str(), seq])?;
        }
        Ok(())
    }

    pub(super) fn hold_result(&mut self, seq: i64, tenant: &TenantId, result: &str) -> Result<(), StatementError> {
        let before = self.number("SELECT octet_length(body) FROM held_results WHERE seq = ?1", [seq])?.unwrap_or(0);
        let more = TenantDelta { stored_bytes: bytes(result) - before, ..TenantDelta::default() };
        self.tallies.add(tenant, more);
        let mut insert = self.conn.prepare_cached("INSERT OR REPLACE INTO held_results (seq, body) VALUES (?1, ?2)")?;
        insert.execute(params![seq, result])?;
        Ok(())
    }

    /// The held result of a job that ends. A result is held only while its scan is owed, so other ends skip the read.
    pub(super) fn take_held_result(&self, seq: i64, sheet: &EncodedChange) -> Result<Option<String>, StatementError> {
        if !sheet.duties.contains(&(Duty::Scan, false)) {
            return Ok(None);
        }
        self.text("DELETE FROM held_results WHERE seq = ?1 RETURNING body", [seq])
    }
}
