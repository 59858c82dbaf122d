//! Writes log lines, a bounded number per job.

use lockgate_ports::LogLine;
use lockgate_ports::store::LOG_LINES_MAX;
use rusqlite::params;

use super::WriteTx;
use crate::error::StatementError;

impl WriteTx<'_> {
    pub(crate) fn append_logs(&mut self, lines: &[LogLine]) -> Result<(), StatementError> {
        let mut insert =
            self.conn.prepare_cached("INSERT INTO job_logs (seq, n, attempt, at, line) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        let mut trim = self.conn.prepare_cached("DELETE FROM job_logs WHERE seq = ?1 AND n <= ?2")?;
        let kept = i64::try_from(LOG_LINES_MAX).unwrap_or(i64::MAX);
        for line in lines {
            let Some(seq) = self.seq_of(&line.job_id)? else { continue };
            let last = self.number("SELECT n FROM job_logs WHERE seq = ?1 ORDER BY n DESC LIMIT 1", [seq])?;
            let n = last.unwrap_or(0) + 1;
            insert.execute(params![seq, n, line.attempt, line.at.as_millis(), &*line.line])?;
            trim.execute([seq, n - kept])?;
        }
        Ok(())
    }
}
