//! How a job's row moves: born, on, to history, within history, and back.
//!
//! Each move names the version it replaces; a move that touches no row was overtaken. The lane, the request and the
//! payload follow from the frozen request and are written once.

use lockgate_core::job::{Job, JobState};
use rusqlite::params;
use rusqlite::types::ToSqlOutput;

use super::Ledger;
use crate::error::Fault;
use crate::row::{INLINE_BYTES_MAX, priority_code, state_code};
use crate::sheet::Sheet;

impl Ledger<'_> {
    pub(super) fn give_birth(&mut self, seq: i64, sheet: &Sheet) -> Result<(), Fault> {
        let job = &sheet.change.transition.job;
        let priority = priority_code(job.request.priority());
        let payload = self.keep_payload(seq, job.request.payload.as_str())?;
        self.book.job_born(priority);
        if job.state().is_terminal() {
            self.insert_done(seq, sheet, payload)?;
            self.book.job_ended(priority);
            return Ok(());
        }
        let (lane, must_wait) = (self.lane_id(job.lane())?, self.must_wait(job));
        self.statements.insert_hot.execute(params![
            seq,
            state_code(job.state()),
            priority as i64,
            lane,
            job.life.due_at.as_millis(),
            must_wait,
            job.life.deadline_at.map(|at| at.as_millis()),
            job.request.tenant.as_str(),
            job.request.topic.as_str(),
            &job.hash.0,
            sheet.life,
            sheet.request,
            sheet.events,
            payload,
        ])?;
        Ok(())
    }

    /// Denied at submit: history is all it has.
    fn insert_done(&mut self, seq: i64, sheet: &Sheet, payload: Option<&str>) -> Result<(), Fault> {
        let job = &sheet.change.transition.job;
        let (lane, ended_at) = (self.lane_id(job.lane())?, self.ended_at(job));
        self.statements.insert_done.execute(params![
            seq,
            job.version,
            state_code(job.state()),
            priority_code(job.request.priority()) as i64,
            lane,
            ended_at,
            job.request.tenant.as_str(),
            job.request.topic.as_str(),
            &job.hash.0,
            sheet.life,
            sheet.request,
            "",
            sheet.events,
            payload,
            sheet.result(),
        ])?;
        Ok(())
    }

    /// Live to live.
    pub(super) fn move_on(&mut self, seq: i64, sheet: &Sheet) -> Result<bool, Fault> {
        let job = &sheet.change.transition.job;
        let must_wait = self.must_wait(job);
        let session = job.life.attempt.binding.as_ref().filter(|_| job.state().is_held()).map(|b| b.session.as_str());
        let changed = self.statements.update_hot.execute(params![
            seq,
            job.version,
            state_code(job.state()),
            job.life.due_at.as_millis(),
            must_wait,
            job.life.deadline_at.map(|at| at.as_millis()),
            session,
            sheet.life,
            sheet.events,
        ])?;
        Ok(changed == 1)
    }

    /// Live to ended. Read and inserted by two statements: `INSERT … SELECT` would copy every page it touches to a
    /// statement journal first.
    pub(super) fn end(&mut self, seq: i64, sheet: &Sheet) -> Result<bool, Fault> {
        let job = &sheet.change.transition.job;
        let ended_at = self.ended_at(job);
        let mut rows = self.statements.leave_hot.query(params![seq, job.version - 1])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        let column = |at: usize| row.get_ref(at).map(ToSqlOutput::Borrowed);
        self.statements.insert_done.execute(params![
            seq,
            job.version,
            state_code(job.state()),
            column(0)?,
            column(1)?,
            ended_at,
            column(2)?,
            column(3)?,
            column(4)?,
            sheet.life,
            column(5)?,
            column(6)?,
            sheet.events,
            column(7)?,
            sheet.result(),
        ])?;
        drop(rows);
        self.statements.delete_hot.execute([seq])?;
        self.book.job_ended(priority_code(job.request.priority()));
        Ok(true)
    }

    /// Ended to ended: a replay that was denied at once.
    pub(super) fn end_again(&mut self, seq: i64, sheet: &Sheet) -> Result<bool, Fault> {
        let job = &sheet.change.transition.job;
        let changed = self.conn.prepare_cached(include_str!("../../queries/update_done.sql"))?.execute(params![
            seq,
            job.version,
            state_code(job.state()),
            self.ended_at(job),
            sheet.life,
            sheet.events,
            sheet.result(),
        ])?;
        if changed == 1 {
            self.drop_letter(seq)?;
        }
        Ok(changed == 1)
    }

    /// Ended to live: a new life.
    pub(super) fn revive(&mut self, seq: i64, sheet: &Sheet) -> Result<bool, Fault> {
        let job = &sheet.change.transition.job;
        let moved = self.conn.prepare_cached(include_str!("../../queries/revive_job.sql"))?.execute(params![
            seq,
            job.version,
            state_code(job.state()),
            job.life.due_at.as_millis(),
            self.must_wait(job),
            job.life.deadline_at.map(|at| at.as_millis()),
            sheet.life,
            sheet.events,
        ])?;
        if moved == 0 {
            return Ok(false);
        }
        self.conn.prepare_cached("DELETE FROM jobs_done WHERE seq = ?1")?.execute([seq])?;
        self.book.job_revived(priority_code(job.request.priority()));
        self.drop_letter(seq)?;
        Ok(true)
    }

    /// A short payload is returned for the row; a long one is stored beside it.
    fn keep_payload<'p>(&self, seq: i64, payload: &'p str) -> Result<Option<&'p str>, Fault> {
        if payload.len() <= INLINE_BYTES_MAX {
            return Ok(Some(payload));
        }
        let mut insert = self.conn.prepare_cached("INSERT INTO payloads (seq, body) VALUES (?1, ?2)")?;
        insert.execute(params![seq, payload])?;
        Ok(None)
    }

    /// Only jobs that had to wait are found by `due`; the others were offered when they were committed.
    fn must_wait(&self, job: &Job) -> bool {
        job.state() == JobState::Scheduled && job.life.due_at > self.now
    }

    fn ended_at(&self, job: &Job) -> i64 {
        job.life.ended_at.unwrap_or(self.now).as_millis()
    }
}
