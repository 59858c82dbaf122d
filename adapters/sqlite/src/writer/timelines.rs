//! Begins a new timeline after the database was restored to an earlier state.

use lockgate_core::audit::AuditEntry;
use lockgate_sql::codes::state;
use lockgate_sql::packed;
use rusqlite::params;

use super::WriteTx;
use crate::error::StatementError;

/// Rows in memory at once.
const PAGE: i64 = 1_000;

impl WriteTx<'_> {
    /// One transaction for all jobs: no other process has the folder meanwhile, so no one waits for it.
    pub(crate) fn begin_timeline(&mut self, salt: &[u8; 16], audit: &AuditEntry) -> Result<Option<u64>, StatementError> {
        let leased = "SELECT 1 FROM edges WHERE closed_at IS NULL AND expires_at > ?1";
        if self.number(leased, [self.now.as_millis()])?.is_some() {
            return Ok(None);
        }
        let (mut after, mut jobs) = (0, 0);
        loop {
            let page = self.lives(after)?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            jobs += page.len() as u64;
            let mut update =
                self.conn.prepare_cached("UPDATE jobs_hot SET life = ?2, version = version + 1 WHERE seq = ?1")?;
            for (seq, mut life) in page {
                life.renew_tokens(salt);
                update.execute(params![seq, packed::life_text(&life)?])?;
            }
        }
        self.keep_audit(std::slice::from_ref(audit))?;
        // With the new timeline an accepted loss needs no further care.
        self.conn.execute("UPDATE book SET accepted_loss = NULL", [])?;
        Ok(Some(jobs))
    }

    fn lives(&self, after: i64) -> Result<Vec<(i64, lockgate_core::job::Life)>, StatementError> {
        let sql = "SELECT seq, state, life FROM jobs_hot WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let mut query = self.conn.prepare_cached(sql)?;
        let mut rows = query.query([after, PAGE])?;
        let mut page = Vec::new();
        while let Some(row) = rows.next()? {
            page.push((row.get(0)?, packed::read_life(row.get_ref(2)?.as_str()?, state(row.get(1)?)?)?));
        }
        Ok(page)
    }
}
