//! Applies changes one after the other, each completely or not at all.

use std::collections::BTreeSet;

use lockgate_core::ids::{JobId, JobSeq};
use lockgate_core::job::DeadLetter;
use lockgate_ports::{ChangeError, OutboxEntry};
use rusqlite::params;
use rusqlite::types::FromSql;

use super::WriteTx;
use crate::encoded_change::EncodedChange;
use crate::error::StatementError;
use crate::reads;
use crate::row::priority_code;

/// The inner error is the answer to one item; the outer one fails the transaction.
pub(super) type ChangeResult<T> = Result<Result<T, ChangeError>, StatementError>;

/// The state of the call that is being committed.
struct CommitCall<'a> {
    /// The last sequence number assigned before the call.
    last_seq: i64,
    refused: BTreeSet<&'a JobId>,
}

impl WriteTx<'_> {
    pub(crate) fn commit(&mut self, sheets: &[EncodedChange]) -> Result<Vec<Result<JobSeq, ChangeError>>, StatementError> {
        let mut call = CommitCall { last_seq: self.totals_row.last_seq, refused: BTreeSet::new() };
        let mut results = Vec::with_capacity(sheets.len());
        for sheet in sheets {
            let result = self.apply(sheet, &call)?;
            if result.is_err() {
                call.refused.insert(&sheet.change.transition.job.request.job_id);
            }
            results.push(result);
        }
        Ok(results)
    }

    /// Checks a change before anything of it is written, so that a refused change leaves no trace and needs no savepoint.
    fn apply(&mut self, sheet: &EncodedChange, call: &CommitCall<'_>) -> ChangeResult<JobSeq> {
        let transition = &sheet.change.transition;
        if !self.proves(&transition.evidence)? {
            return Ok(Err(ChangeError::Conflict));
        }
        let moved = if transition.job.version == 1 { self.insert(sheet)? } else { self.replace(sheet, call)? };
        if let Ok(seq) = moved {
            self.keep_sides(seq, sheet)?;
        }
        Ok(moved)
    }

    /// Writes the rows of a change other than the job's own.
    pub(super) fn keep_sides(&mut self, seq: JobSeq, sheet: &EncodedChange) -> Result<(), StatementError> {
        let transition = &sheet.change.transition;
        if let Some(letter) = &transition.dead_letter {
            self.keep_letter(seq, letter)?;
        }
        self.keep_duties(seq, &sheet.duties)?;
        self.keep_audit(&sheet.audit)?;
        for entry in &sheet.change.outbox {
            self.keep_outbox(&transition.job.request.job_id, entry)?;
        }
        if let Some(part) = &transition.job.request.run {
            self.keep_part(seq, part, sheet)?;
        }
        if let Some(of) = transition.job.request.child_of.as_ref().filter(|_| transition.job.version == 1) {
            let mut insert = self.conn.prepare_cached("INSERT INTO children (parent, life, seq) VALUES (?1, ?2, ?3)")?;
            insert.execute(params![of.parent.as_str(), of.life, seq.0])?;
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, sheet: &EncodedChange) -> ChangeResult<JobSeq> {
        let request = &sheet.change.transition.job.request;
        if let Some(key) = &request.idempotency_key
            && let Some(seq) = reads::key_owner(self.conn, request.tenant.as_str(), key, self.now)?
        {
            return Ok(Err(self.taken(seq, true)?));
        }
        let seq = self.totals_row.last_seq + 1;
        if !self.record(seq, sheet)? {
            let owner =
                self.seq_of(&request.job_id)?.ok_or_else(|| StatementError::Row("an id is taken by nobody".to_owned()))?;
            return Ok(Err(self.taken(owner, false)?));
        }
        self.totals_row.last_seq = seq;
        if let Some(key) = &request.idempotency_key {
            self.take_key(request.tenant.as_str(), key, seq)?;
        }
        self.give_birth(seq, sheet)?;
        Ok(Ok(JobSeq(seq)))
    }

    fn replace(&mut self, sheet: &EncodedChange, call: &CommitCall<'_>) -> ChangeResult<JobSeq> {
        let job = &sheet.change.transition.job;
        let numbered = (job.seq != JobSeq::default()).then_some(job.seq.0);
        let born_in_call = || Ok::<_, StatementError>(self.seq_of(&job.request.job_id)?.filter(|seq| *seq > call.last_seq));
        let known = if numbered.is_some() { numbered } else { born_in_call()? };
        let Some(seq) = known.filter(|_| !call.refused.contains(&job.request.job_id)) else {
            return Ok(Err(ChangeError::Conflict));
        };
        let moved = if job.state().is_terminal() {
            self.end(seq, sheet)? || self.end_again(seq, sheet)?
        } else {
            self.move_on(seq, sheet)? || self.revive(seq, sheet)?
        };
        Ok(if moved { Ok(JobSeq(seq)) } else { Err(ChangeError::Conflict) })
    }

    fn take_key(&self, tenant: &str, key: &str, seq: i64) -> Result<(), StatementError> {
        let free_at = self.now + lockgate_ports::store::KEY_LIFE;
        let sql = "INSERT OR REPLACE INTO idempotency (tenant, key, seq, free_at) VALUES (?1, ?2, ?3, ?4)";
        self.conn.prepare_cached(sql)?.execute(params![tenant, key, seq, free_at.as_millis()])?;
        Ok(())
    }

    fn taken(&self, seq: i64, by_key: bool) -> Result<ChangeError, StatementError> {
        let taken = reads::owner(self.conn, seq, by_key)?;
        let taken = taken.ok_or_else(|| StatementError::Row(format!("job {seq} is named and not there")))?;
        Ok(ChangeError::Taken(Box::new(taken)))
    }

    fn keep_letter(&mut self, seq: JobSeq, letter: &DeadLetter) -> Result<(), StatementError> {
        let sql = "INSERT INTO dead_letters (seq, tenant, topic, priority, reason, letter) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let priority = priority_code(letter.priority);
        self.conn.prepare_cached(sql)?.execute(params![
            seq.0,
            letter.tenant.as_str(),
            letter.topic.as_str(),
            priority as i64,
            letter.reason.stored(),
            serde_json::to_string(letter)?,
        ])?;
        self.totals_row.letter_kept(priority);
        Ok(())
    }

    pub(super) fn drop_letter(&mut self, seq: i64) -> Result<(), StatementError> {
        if let Some(priority) = self.number("DELETE FROM dead_letters WHERE seq = ?1 RETURNING priority", [seq])? {
            self.totals_row.letter_gone(usize::try_from(priority).unwrap_or_default());
        }
        Ok(())
    }

    fn keep_outbox(&self, job_id: &JobId, entry: &OutboxEntry) -> Result<(), StatementError> {
        let sql = "INSERT INTO outbox (job_id, sink, body, at) VALUES (?1, ?2, ?3, ?4)";
        let columns = params![job_id.as_str(), &*entry.sink, entry.body.as_str(), self.now.as_millis()];
        self.conn.prepare_cached(sql)?.execute(columns)?;
        Ok(())
    }

    pub(super) fn seq_of(&self, id: &JobId) -> Result<Option<i64>, StatementError> {
        self.number("SELECT seq FROM jobs WHERE job_id = ?1", [id.as_str()])
    }

    pub(super) fn number(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<i64>, StatementError> {
        self.first(sql, params)
    }

    pub(super) fn text(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<String>, StatementError> {
        self.first(sql, params)
    }

    /// The first column of the first row, if there is one. All rows are stepped through, as RETURNING requires.
    fn first<T: FromSql>(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<T>, StatementError> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut first = None;
        while let Some(row) = rows.next()? {
            first = first.or(Some(row.get(0)?));
        }
        Ok(first)
    }
}
