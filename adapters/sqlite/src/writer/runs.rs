//! Writes DAGs, steps of runs, and messages to runs.

use std::time::Duration;

use lockgate_core::dag::RunState;
use lockgate_core::ids::{JobSeq, RunId};
use lockgate_core::request::RunRef;
use lockgate_ports::store::{DagRow, KEY_LIFE, NewDag, RunRefusal};
use lockgate_sql::codes::{item_code, run_state_code};
use rusqlite::{OptionalExtension, params};

use super::WriteTx;
use super::tallies::TenantDelta;
use crate::encoded_change::EncodedChange;
use crate::encoded_run_step::EncodedRunStep;
use crate::error::StatementError;
use crate::reads;

/// The outcome of a step: its inserted jobs, or why it was refused.
pub(crate) type StepResult = Result<Vec<JobSeq>, RunRefusal>;

impl WriteTx<'_> {
    pub(crate) fn put_dag(&mut self, dag: &NewDag) -> Result<DagRow, StatementError> {
        let latest = reads::dag(self.conn, &dag.tenant, &dag.name, None)?;
        if let Some(same) = latest.as_ref().filter(|latest| latest.text == dag.text) {
            return Ok(same.clone());
        }
        let version = latest.map_or(1, |latest| latest.version + 1);
        self.conn.prepare_cached(include_str!("../../queries/insert_dag.sql"))?.execute(params![
            dag.tenant.as_str(),
            &*dag.name,
            version,
            &*dag.snapshot,
            dag.actor.as_str(),
            self.now.as_millis(),
            serde_json::to_string(&dag.pins)?,
            &*dag.text,
        ])?;
        self.keep_audit(std::slice::from_ref(&dag.audit))?;
        let NewDag { tenant, name, snapshot, text, actor, pins, audit: _ } = dag.clone();
        Ok(DagRow { tenant, name, version, snapshot, text, actor, at: self.now, pins })
    }

    pub(crate) fn advance(&mut self, sheets: &[EncodedRunStep]) -> Result<Vec<StepResult>, StatementError> {
        sheets.iter().map(|sheet| self.step(sheet)).collect()
    }

    /// checks a step as a whole before anything of it is written, so that a refused step leaves no trace and needs no
    /// savepoint.
    fn step(&mut self, sheet: &EncodedRunStep) -> Result<StepResult, StatementError> {
        let before = self.version_and_state(sheet.head.id.as_str())?;
        if let Some(refusal) = self.refuses(sheet, before.map(|(version, _)| version))? {
            return Ok(Err(refusal));
        }
        let was_live = before.is_some_and(|(_, state)| state < FIRST_OVER);
        let runs = i64::from(!sheet.head.state.is_over()) - i64::from(was_live);
        if runs != 0 || before.is_none() {
            self.tallies.add(&sheet.head.tenant, TenantDelta { runs, ..TenantDelta::default() });
        }
        let run_no = self.write_head(sheet)?;
        self.write_nodes(run_no, sheet)?;
        self.forget_heard(sheet)?;
        self.keep_audit(&sheet.audit)?;
        let mut seqs = Vec::with_capacity(sheet.jobs.len());
        for job in &sheet.jobs {
            let seq = self.insert(job)?.map_err(|_| StatementError::Row("a free job id was taken".to_owned()))?;
            self.keep_sides(seq, job)?;
            seqs.push(seq);
        }
        if let Some(parent) = sheet.head.parent.as_ref().filter(|_| sheet.head.state.is_over()) {
            self.tell(&parent.run, None, Some(&sheet.head.id))?;
        }
        Ok(Ok(seqs))
    }

    fn version_and_state(&self, run: &str) -> Result<Option<(i64, i64)>, StatementError> {
        let mut query = self.conn.prepare_cached("SELECT version, state FROM runs WHERE run_id = ?1")?;
        Ok(query.query_row([run], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    fn refuses(&mut self, sheet: &EncodedRunStep, version: Option<i64>) -> Result<Option<RunRefusal>, StatementError> {
        let head = &sheet.head;
        if let Some(key) = &sheet.key
            && let Some((run, hash)) = reads::run_of_key(self.conn, &head.tenant, &key.key, self.now)?
        {
            return Ok(Some(RunRefusal::Taken { run, hash }));
        }
        let mut fits = version.unwrap_or(0) + 1 == head.version && !sheet.has_twins;
        for job in &sheet.jobs {
            let birth = &job.change.transition;
            fits = fits && self.seq_of(&birth.job.request.job_id)?.is_none() && self.proves(&birth.evidence)?;
        }
        Ok((!fits).then_some(RunRefusal::Conflict))
    }

    fn write_head(&self, sheet: &EncodedRunStep) -> Result<i64, StatementError> {
        let head = &sheet.head;
        let columns = params![
            head.id.as_str(),
            head.version,
            run_state_code(head.state),
            head.wakes_at.map(|at| at.as_millis()),
            head.state.is_over().then(|| head.ended_at.unwrap_or(self.now).as_millis()),
            head.parent.as_ref().map(|parent| parent.run.as_str()),
            sheet.head_text,
            head.tenant.as_str(),
            &*head.dag.name,
        ];
        if head.version > 1 {
            self.conn.prepare_cached(include_str!("../../queries/update_run.sql"))?.execute(&columns[..7])?;
            let run_no = self.number("SELECT run_no FROM runs WHERE run_id = ?1", [head.id.as_str()])?;
            return run_no.ok_or_else(|| StatementError::Row("a run was there and is not".to_owned()));
        }
        self.conn.prepare_cached(include_str!("../../queries/insert_run.sql"))?.execute(columns)?;
        let run_no = self.conn.last_insert_rowid();
        if let Some(key) = &sheet.key {
            let free_at = (self.now + KEY_LIFE).as_millis();
            let sql = "INSERT OR REPLACE INTO run_keys (tenant, key, run_id, hash, free_at) VALUES (?1, ?2, ?3, ?4, ?5)";
            let columns = params![head.tenant.as_str(), &*key.key, head.id.as_str(), &key.hash.0, free_at];
            self.conn.prepare_cached(sql)?.execute(columns)?;
        }
        Ok(run_no)
    }

    fn write_nodes(&self, run_no: i64, sheet: &EncodedRunStep) -> Result<(), StatementError> {
        let mut upsert = self.conn.prepare_cached(include_str!("../../queries/upsert_node.sql"))?;
        for (key, body) in &sheet.nodes {
            upsert.execute(params![run_no, key.node, item_code(key.item), sheet.head.version, body])?;
        }
        Ok(())
    }

    fn forget_heard(&self, sheet: &EncodedRunStep) -> Result<(), StatementError> {
        let mut delete = self.conn.prepare_cached("DELETE FROM run_news WHERE news_no = ?1 AND run_id = ?2")?;
        for no in &sheet.heard {
            delete.execute(params![no, sheet.head.id.as_str()])?;
        }
        Ok(())
    }

    /// Writes what a job's change means for the run that it belongs to.
    pub(super) fn keep_part(&self, seq: JobSeq, part: &RunRef, sheet: &EncodedChange) -> Result<(), StatementError> {
        let job = &sheet.change.transition.job;
        if job.version == 1 {
            let sql = "INSERT INTO run_jobs (seq, run_id) VALUES (?1, ?2)";
            self.conn.prepare_cached(sql)?.execute(params![seq.0, part.run.as_str()])?;
        }
        if sheet.change.transition.tells_its_run() {
            self.tell(&part.run, Some(seq), None)?;
        }
        if let Some((key, for_ms)) = sheet.change.transition.memoises() {
            let until = (self.now + Duration::from_millis(for_ms)).as_millis();
            let sql = "INSERT OR REPLACE INTO memos (tenant, key, seq, until) VALUES (?1, ?2, ?3, ?4)";
            self.conn.prepare_cached(sql)?.execute(params![job.request.tenant.as_str(), key, seq.0, until])?;
        }
        Ok(())
    }

    /// writes a message about a job or a sub-run.
    fn tell(&self, run: &RunId, job: Option<JobSeq>, child: Option<&RunId>) -> Result<(), StatementError> {
        let sql = "INSERT INTO run_news (run_id, at, seq, child) VALUES (?1, ?2, ?3, ?4)";
        let columns = params![run.as_str(), self.now.as_millis(), job.map(|seq| seq.0), child.map(RunId::as_str)];
        self.conn.prepare_cached(sql)?.execute(columns)?;
        Ok(())
    }

    /// Deletes an ended run with all its rows. Returns how many rows it and its nodes were.
    pub(super) fn forget_run(&self, run_no: i64, run_id: &str) -> Result<usize, StatementError> {
        let nodes = self.conn.prepare_cached("DELETE FROM run_nodes WHERE run_no = ?1")?.execute([run_no])?;
        for sql in RUN_BELONGINGS {
            self.conn.prepare_cached(sql)?.execute([run_id])?;
        }
        Ok(1 + nodes)
    }

    /// Deletes whole runs, the oldest end first, until they and their nodes are `limit` rows or more.
    pub(super) fn prune_runs(&self, before: i64, limit: usize) -> Result<u64, StatementError> {
        let mut query = self.conn.prepare_cached(include_str!("../../queries/runs_to_prune.sql"))?;
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let old = query.query_map([before, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let old = old.collect::<Result<Vec<(i64, String)>, _>>()?;
        let (mut rows, mut gone) = (0, 0);
        for (run_no, run_id) in old {
            if rows >= limit {
                break;
            }
            rows += self.forget_run(run_no, &run_id)?;
            gone += 1;
        }
        for sql in ["DELETE FROM run_keys WHERE free_at <= ?1", "DELETE FROM memos WHERE until <= ?1"] {
            self.conn.prepare_cached(sql)?.execute([self.now.as_millis()])?;
        }
        // Messages that the last jobs of deleted runs wrote late.
        self.conn.prepare_cached(include_str!("../../queries/forget_stray_news.sql"))?.execute([before])?;
        Ok(gone)
    }
}

/// The first state of a run that is over, as a code.
const FIRST_OVER: i64 = RunState::Succeeded as i64;

/// Deletes a run and its rows other than its nodes.
const RUN_BELONGINGS: [&str; 3] = [
    "DELETE FROM runs WHERE run_id = ?1",
    "DELETE FROM run_news WHERE run_id = ?1",
    "DELETE FROM run_keys WHERE run_id = ?1",
];
