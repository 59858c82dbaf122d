//! Moves a job's rows: created, between live states, to history, within history, and back to live.
//!
//! The request is written once and stays; only the small row beside it moves. Each statement names the version that it
//! replaces; a move that updates no row was overtaken by another change.

use lockgate_core::job::{Job, JobState};
use lockgate_sql::codes::state_code;
use rusqlite::{OptionalExtension, params};

use super::WriteTx;
use super::tallies::{TenantDelta, bytes};
use crate::encoded_change::EncodedChange;
use crate::error::StatementError;
use crate::row::priority_code;

impl WriteTx<'_> {
    /// Writes the request, once for all lives. False if the id is taken.
    pub(super) fn record(&mut self, seq: i64, sheet: &EncodedChange) -> Result<bool, StatementError> {
        let job = &sheet.change.transition.job;
        let inserted = self.statements.insert_job.execute(params![
            seq,
            job.request.job_id.as_str(),
            job.request.tenant.as_str(),
            job.request.topic.as_str(),
            &job.hash.0,
            sheet.request,
            job.request.payload.as_str(),
        ])?;
        Ok(inserted == 1)
    }

    pub(super) fn give_birth(&mut self, seq: i64, sheet: &EncodedChange) -> Result<(), StatementError> {
        let job = &sheet.change.transition.job;
        let priority = priority_code(job.request.priority());
        self.totals_row.job_born(priority);
        let payload = bytes(job.request.payload.as_str());
        self.tallies.add(&job.request.tenant, TenantDelta { live: 1, stored_bytes: payload, ..TenantDelta::default() });
        if job.state().is_terminal() {
            // The job was denied at submit: it goes straight to history.
            self.totals_row.job_ended(priority);
            self.tallies.add(&job.request.tenant, TenantDelta { live: -1, ended: 1, ..TenantDelta::default() });
            return self.insert_done(seq, sheet, &sheet.events, None);
        }
        self.insert_hot(seq, sheet, &sheet.events)
    }

    /// A created or revived job has no holder, so those columns are empty.
    fn insert_hot(&mut self, seq: i64, sheet: &EncodedChange, events: &str) -> Result<(), StatementError> {
        let job = &sheet.change.transition.job;
        let (lane, must_wait) = (self.lane_id(job.lane())?, self.must_wait(job));
        self.statements.insert_hot.execute(params![
            seq,
            job.version,
            state_code(job.state()),
            lane,
            job.life.due_at.as_millis(),
            must_wait,
            job.deadline().map(|at| at.as_millis()),
            sheet.life,
            events,
        ])?;
        Ok(())
    }

    fn insert_done(
        &mut self,
        seq: i64,
        sheet: &EncodedChange,
        events: &str,
        held: Option<&str>,
    ) -> Result<(), StatementError> {
        let job = &sheet.change.transition.job;
        let (ended_at, result) = (self.ended_at(job), sheet.result().or(held));
        let more = result.map_or(0, bytes) - held.map_or(0, bytes);
        self.tallies.add(&job.request.tenant, TenantDelta { stored_bytes: more, ..TenantDelta::default() });
        self.statements.insert_done.execute(params![
            seq,
            job.version,
            state_code(job.state()),
            ended_at,
            sheet.life,
            events,
            result,
        ])?;
        Ok(())
    }

    /// Updates a live job that stays live.
    pub(super) fn move_on(&mut self, seq: i64, sheet: &EncodedChange) -> Result<bool, StatementError> {
        let job = &sheet.change.transition.job;
        let must_wait = self.must_wait(job);
        // A new verdict may have changed the shape, and thereby the lane. The lane is stored only while the job waits in it.
        let lane = if job.state() == JobState::Scheduled { Some(self.lane_id(job.lane())?) } else { None };
        let columns = params![
            seq,
            job.version,
            state_code(job.state()),
            job.life.due_at.as_millis(),
            must_wait,
            job.deadline().map(|at| at.as_millis()),
            job.holder().map(|binding| binding.session.as_str()),
            sheet.life,
            sheet.events,
            lane,
        ];
        let changed = match lane {
            Some(_) => self.statements.schedule_hot.execute(columns)?,
            None => self.statements.update_hot.execute(&columns[..9])?,
        };
        if changed == 1
            && job.in_output_check()
            && let Some(result) = sheet.result()
        {
            self.hold_result(seq, &job.request.tenant, result)?;
        }
        Ok(changed == 1)
    }

    /// Moves a live job to history. Read and delete are two statements, because `RETURNING` would build a temporary table
    /// for its single row.
    pub(super) fn end(&mut self, seq: i64, sheet: &EncodedChange) -> Result<bool, StatementError> {
        let job = &sheet.change.transition.job;
        let left = self.statements.leave_hot.query_row([seq, job.version - 1], |row| row.get(0)).optional()?;
        let Some(mut events): Option<String> = left else { return Ok(false) };
        events.push_str(&sheet.events);
        let held = self.take_held_result(seq, sheet)?;
        self.insert_done(seq, sheet, &events, held.as_deref())?;
        self.statements.delete_hot.execute([seq])?;
        self.totals_row.job_ended(priority_code(job.request.priority()));
        self.tallies.add(&job.request.tenant, TenantDelta { live: -1, ended: 1, ..TenantDelta::default() });
        Ok(true)
    }

    /// Updates an ended job that stays ended: a late scan, a release, a discard, or a replay that was denied at once.
    pub(super) fn end_again(&mut self, seq: i64, sheet: &EncodedChange) -> Result<bool, StatementError> {
        let job = &sheet.change.transition.job;
        let before = self.result_bytes(seq)?;
        let changed = self.conn.prepare_cached(include_str!("../../queries/update_done.sql"))?.execute(params![
            seq,
            job.version,
            state_code(job.state()),
            self.ended_at(job),
            sheet.life,
            sheet.events,
            sheet.result(),
        ])?;
        if changed == 0 {
            return Ok(false);
        }
        let more = self.result_bytes(seq)? - before;
        self.tallies.add(&job.request.tenant, TenantDelta { stored_bytes: more, ..TenantDelta::default() });
        // J-4: a job that stays dead keeps its dead letter, unless an operator discards it.
        if sheet.change.transition.drops_letter() {
            self.drop_letter(seq)?;
        }
        Ok(true)
    }

    /// Moves an ended job back to live: a new life.
    pub(super) fn revive(&mut self, seq: i64, sheet: &EncodedChange) -> Result<bool, StatementError> {
        let job = &sheet.change.transition.job;
        let result = self.result_bytes(seq)?;
        let sql = "DELETE FROM jobs_done WHERE seq = ?1 AND version = ?2 RETURNING events";
        let left = self.text(sql, [seq, job.version - 1])?;
        let Some(mut events) = left else { return Ok(false) };
        events.push_str(&sheet.events);
        self.insert_hot(seq, sheet, &events)?;
        self.totals_row.job_revived(priority_code(job.request.priority()));
        let back = TenantDelta { live: 1, ended: -1, stored_bytes: -result, ..TenantDelta::default() };
        self.tallies.add(&job.request.tenant, back);
        self.drop_letter(seq)?;
        Ok(true)
    }

    /// The size of an ended job's result.
    fn result_bytes(&self, seq: i64) -> Result<i64, StatementError> {
        let sql = "SELECT COALESCE(octet_length(result), 0) FROM jobs_done WHERE seq = ?1";
        Ok(self.number(sql, [seq])?.unwrap_or(0))
    }

    /// The index behind `due` holds only jobs that had to wait; the others were offered when they were committed.
    fn must_wait(&self, job: &Job) -> bool {
        job.state() == JobState::Scheduled && job.life.due_at > self.now
    }

    fn ended_at(&self, job: &Job) -> i64 {
        job.life.ended_at.unwrap_or(self.now).as_millis()
    }
}
