//! Checks runs of DAGs by their jobs: what was done, what of it was undone, and in which order.

use std::time::Duration;

use lockgate_core::ids::{JobId, RunId, SessionId};
use lockgate_core::job::{JobState, Leaving};
use lockgate_core::request::RunRef;
use lockgate_core::time::Timestamp;
use lockgate_ports::RunChange;

use super::{Books, StepKey, Witness};
use crate::clock::SKEW_MS_MAX;
use crate::flow::UNDONE;

/// The outcome of a node or an item.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) node: u32,
    pub(crate) item: Option<u32>,
    pub(crate) done: bool,
    /// Whether a compensation job was ever created.
    pub(crate) tried: bool,
    pub(crate) undone: bool,
}

impl Books {
    /// Records a step of a run. The witness's record is of the run before the step.
    pub(super) fn follow_run(&mut self, change: &RunChange, now: Timestamp) {
        let run = &change.head.id;
        let closing = self.closing.contains(run);
        if change.head.closing.is_some() {
            self.closing.insert(run.clone());
        }
        for (key, row) in change.nodes.iter().filter(|(_, row)| row.state.is_over()) {
            let Some(job) = row.job.clone() else { continue };
            // A workflow of plain jobs has a row per life; a node of a DAG covers all lives of its job.
            let life = if run.is_saga() { key.item.unwrap_or(1) } else { u32::MAX };
            let heard = self.heard_of.entry(run.clone()).or_default().entry(job).or_default();
            *heard = life.max(*heard);
        }
        for birth in &change.jobs {
            let Some(part) = &birth.job.request.run else { continue };
            let id = &birth.job.request.job_id;
            self.require(part.undo || !closing, "R-6 nothing new starts in a run that is closing", || {
                format!("{id} of {part:?}")
            });
            let at_work = if part.undo { self.at_work(run, now) } else { None };
            self.require(at_work.is_none(), "R-5 nothing is undone while a worker may be at work on it", || {
                format!("{id} at {now:?} while {at_work:?} is at work")
            });
            // A retried compensation was in order the first time.
            let left = if part.undo && part.round == 0 && !run.is_saga() { self.left_after(part) } else { None };
            self.require(left.is_none(), "R-5 what was done later is undone first", || format!("{id} before {left:?}"));
        }
    }

    /// A job that the run knows to be over, while a worker has not let go of it although it was cancelled or revoked, or
    /// while the scan of its result is pending. The run cannot know of a job that was submitted or replayed while the step
    /// was being made.
    fn at_work(&self, run: &RunId, now: Timestamp) -> Option<(JobId, Leaving)> {
        let heard = |id: &JobId| self.heard_of.get(run).and_then(|heard| heard.get(id)).copied().unwrap_or(0);
        let open = |id: &SessionId| self.sessions.get(id).is_some_and(|session| session.open);
        // The clock of the process that takes the step may be ahead.
        let then = now + Duration::from_millis(SKEW_MS_MAX);
        let waits = |leaving: &Leaving| leaving.scan || (leaving.until > then && open(&leaving.session));
        let known = self.leaving.get(run).into_iter().flatten().filter(|(id, (life, _))| heard(id) >= *life);
        let mut left = known.filter_map(|(id, (_, leaving))| Some((id, leaving.iter().find(|one| waits(one))?)));
        left.next().map(|(id, leaving)| (id.clone(), leaving.clone()))
    }

    /// Work of a later node that was done and is not undone. Late work counts only once the run has its message.
    fn left_after(&self, part: &RunRef) -> Option<JobId> {
        let later =
            |(run, node, _, _, undo): &StepKey| *run == part.run && *node > part.node && !undo && UNDONE.contains(node);
        let done = |id: &JobId| self.jobs.get(id).is_some_and(|entry| entry.state == JobState::Succeeded);
        let mut left =
            self.parts.iter().filter(|&(key, id)| later(key) && done(id) && !self.undos(key).any(|id| self.was_done(id)));
        left.next().map(|(_, id)| id.clone())
    }

    /// The compensation jobs of a part.
    fn undos(&self, (run, node, item, ..): &StepKey) -> impl Iterator<Item = &JobId> {
        let of = (run.clone(), *node, *item);
        self.parts.iter().filter(move |(key, _)| key.4 && (&key.0, key.1, key.2) == (&of.0, of.1, of.2)).map(|(_, id)| id)
    }
}

impl Witness {
    /// The outcomes of a run's nodes and items that had a job.
    pub(crate) fn pieces(&self, run: &RunId) -> Vec<Piece> {
        let books = self.books.lock();
        let own = books.parts.iter().filter(|((of, _, _, _, undo), _)| of == run && !undo);
        let piece = |(key, id): (&StepKey, &JobId)| Piece {
            node: key.1,
            item: key.2,
            done: books.was_done(id),
            tried: books.undos(key).next().is_some(),
            undone: books.undos(key).any(|id| books.was_done(id)),
        };
        own.map(piece).collect()
    }
}
