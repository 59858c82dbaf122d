//! Checks sagas: what the jobs of a workflow did, in commit order, and what of it was undone.

use std::collections::BTreeMap;

use lockgate_core::dag::saga::SagaCompensation;
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::{Job, JobState};
use lockgate_ports::RunChange;

use super::{Books, Witness};
use crate::check::{Violation, ensure};

/// One life of a job.
type JobLife = (JobId, u32);

/// The record of one workflow.
#[derive(Default)]
pub(super) struct Log {
    /// Completed work, in commit order.
    done: Vec<JobLife>,
    /// Jobs with a compensation, and whether it also applies to failures.
    undoable: BTreeMap<JobId, bool>,
    /// The job of each row.
    rows: BTreeMap<u32, JobId>,
    /// Entries that the saga has recorded, with their numbers.
    entries: BTreeMap<JobLife, u32>,
    /// The compensation jobs.
    undos: BTreeMap<JobLife, Vec<JobId>>,
}

impl Log {
    fn place(&self, life: &JobLife) -> Option<usize> {
        self.done.iter().position(|done| done == life)
    }
}

impl Books {
    /// Records a change of a job that is part of a run. Completed work of plain jobs is kept in order.
    pub(super) fn log(&mut self, job: &Job) {
        let Some(part) = &job.request.run else { return };
        // A late result counts once the job can have no other outcome; its run is told after the scan.
        let late = job.life.late.is_some() && job.life.state.is_terminal() && !job.result_is_held();
        if late {
            self.late.insert(job.request.job_id.clone());
        }
        if !part.undo {
            let leaving = (job.life.no, job.leaving().cloned().collect());
            self.leaving.entry(part.run.clone()).or_default().insert(job.request.job_id.clone(), leaving);
        }
        if part.undo || !part.run.is_saga() {
            return;
        }
        let log = self.sagas.entry(part.run.clone()).or_default();
        let id = job.request.job_id.clone();
        if let Some(undo) = &job.request.compensation {
            let half = SagaCompensation::read(undo).is_ok_and(|undo| undo.undo_on_failure);
            log.undoable.insert(id.clone(), half);
        }
        let life = (id, job.life.no);
        if (job.life.state == JobState::Succeeded || late) && log.place(&life).is_none() {
            log.done.push(life);
        }
    }

    /// Checks a step of a saga: its entries have the order in which the work was done, and a compensation begins only when
    /// all later work known to the saga is undone.
    pub(super) fn follow_saga(&mut self, change: &RunChange) {
        let run = &change.head.id;
        let mut log = self.sagas.remove(run).unwrap_or_default();
        for (key, row) in &change.nodes {
            let Some(job) = &row.job else { continue };
            log.rows.insert(key.node, job.clone());
            if row.entry.is_some() {
                log.entries.insert((job.clone(), key.item.unwrap_or(1)), row.entry_no);
            }
        }
        let mut numbered: Vec<(&JobLife, u32)> = log.entries.iter().map(|(life, no)| (life, *no)).collect();
        numbered.sort_by_key(|(_, no)| *no);
        // When a late result was produced cannot be told: its entry may be from then, or from the message about it.
        let dated = numbered.iter().filter(|(life, _)| !self.late.contains(&life.0));
        let places: Vec<usize> = dated.filter_map(|(life, _)| log.place(life)).collect();
        let entries = format!("{run}: {numbered:?}, done {:?}, of these late {:?}", log.done, self.late);
        self.require(places.is_sorted(), "R-8 entries are in the order of the commits", || entries);
        for birth in &change.jobs {
            let Some(part) = birth.job.request.run.as_ref().filter(|part| part.undo) else { continue };
            let id = &birth.job.request.job_id;
            let Some(job) = log.rows.get(&part.node).cloned() else {
                self.require(false, "R-8 only what was done is undone", || format!("{id} of {run} undoes nothing"));
                continue;
            };
            let life = (job, part.item.unwrap_or(1));
            let names = birth.job.request.payload.as_str().contains(&format!("\"{}\"", life.0));
            self.require(names, "R-8 an undo is told what it undoes", || format!("{id} for {life:?}"));
            let own = log.entries.get(&life).copied().unwrap_or(0);
            let later = log.entries.iter().filter(|(_, no)| **no > own).map(|(life, _)| life);
            let left: Vec<&JobLife> = later.filter(|life| !self.is_undone(&log, life)).collect();
            // A repeated compensation was ordered by a person, or follows a late result: the first one was in order.
            let again = log.undos.contains_key(&life);
            let told = format!("{run}: {id} begins for {life:?} before {left:?}");
            self.require(again || left.is_empty(), "R-8 the last is undone first", || told);
            log.undos.entry(life).or_default().push(id.clone());
        }
        self.sagas.insert(run.clone(), log);
    }

    fn is_undone(&self, log: &Log, life: &JobLife) -> bool {
        log.undos.get(life).is_some_and(|undos| undos.iter().any(|id| self.was_done(id)))
    }

    pub(super) fn was_done(&self, id: &JobId) -> bool {
        self.late.contains(id) || self.jobs.get(id).is_some_and(|entry| entry.state == JobState::Succeeded)
    }
}

impl Witness {
    /// R-8, in the end. Work that was not completed may be undone only if its compensation says so.
    pub(crate) fn undone(&self, run: &RunId, undoes: bool) -> Result<(), Violation> {
        let books = self.books.lock();
        let Some(log) = books.sagas.get(run) else { return Ok(()) };
        for life in log.done.iter().filter(|(job, _)| log.undoable.contains_key(job)) {
            ensure(books.is_undone(log, life) == undoes, "R-8 undone is exactly what was done", || {
                format!("{run}: {life:?}, rolled back: {undoes}, {:?}", log.undos)
            })?;
        }
        for (life, undos) in &log.undos {
            let (done, half) = (log.place(life).is_some(), log.undoable.get(&life.0).copied().unwrap_or(false));
            ensure(undoes && (done || half), "R-8 only what was done is undone", || {
                format!("{run}: {life:?} by {undos:?}")
            })?;
            let well = undos.iter().filter(|id| books.was_done(id)).count();
            ensure(well == 1 || undos.len() > 1, "R-8 each life is undone once", || {
                format!("{run}: {life:?} by {undos:?}")
            })?;
        }
        Ok(())
    }
}
