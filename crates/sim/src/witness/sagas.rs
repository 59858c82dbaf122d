//! What the jobs of a workflow did, in the order of the commits, and what was undone of it.

use std::collections::BTreeMap;

use lockgate_core::dag::saga::SagaCompensation;
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::{Job, JobState};
use lockgate_ports::RunChange;

use super::{Books, Witness};
use crate::check::{Violation, ensure};

/// One life of a job.
type JobLife = (JobId, u32);

/// Of one workflow.
#[derive(Default)]
pub(super) struct Log {
    /// Work that was done, in the order of the commits.
    done: Vec<JobLife>,
    /// Jobs that say how they are undone, and whether that goes for half of their work too.
    undoable: BTreeMap<JobId, bool>,
    /// The job of each row.
    rows: BTreeMap<u32, JobId>,
    /// Entries that the saga says it has, by their numbers.
    entries: BTreeMap<JobLife, u32>,
    /// The jobs that undo.
    undos: BTreeMap<JobLife, Vec<JobId>>,
}

impl Log {
    fn place(&self, life: &JobLife) -> Option<usize> {
        self.done.iter().position(|done| done == life)
    }
}

impl Books {
    /// A change of a job that is part of a run. What plain jobs did is kept in order.
    pub(super) fn log(&mut self, job: &Job) {
        let Some(part) = &job.request.run else { return };
        // It counts once nothing else can come of the job, and its run hears of it when policy has looked at it.
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

    /// A step of a saga: its entries are in the order in which the work was done, and an undo begins only when everything that
    /// the saga knows to have been done later is undone.
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
        // Of what was done after its job had ended nobody can say when: its entry may be from then, or from the news of it.
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
            // One that begins again is a person's, or of what was done late: its turn was before.
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
    /// R-8, in the end. Of what was not done only that may be undone which says so.
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
