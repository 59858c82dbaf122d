//! A step of a saga: one decision in the making.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::entry::SagaEntry;
use super::{IDLE, Saga, SagaCompensation};
use crate::dag::plan::{RunMessage, RunTransition, Settled, awaited, or_in_words, was_quarantined};
use crate::dag::{Closing, JobTries, NodeKey, NodeRun, NodeState, RunHead, RunState, UndoState};
use crate::ids::{JobId, SessionId};
use crate::job::{Failure, Job, JobState, Leaving, Reason};
use crate::request::JobRequest;
use crate::time::Timestamp;

pub(super) struct SagaStep<'a> {
    pub(super) saga: &'a mut Saga,
    pub(super) now: Timestamp,
    before: RunHead,
    changed: BTreeSet<NodeKey>,
    settled: Settled,
    pub(super) jobs: Vec<Arc<JobRequest>>,
    pub(super) dead: Vec<(Arc<JobRequest>, Failure)>,
    /// Stuck compensations that were retried or resolved, to be cancelled.
    pub(super) stops: Vec<JobId>,
}

impl<'a> SagaStep<'a> {
    pub(super) fn of(saga: &'a mut Saga, now: Timestamp) -> Self {
        let before = saga.run.head.clone();
        let (changed, settled) = (BTreeSet::new(), Settled::default());
        Self { saga, now, before, changed, settled, jobs: Vec::new(), dead: Vec::new(), stops: Vec::new() }
    }

    pub(super) fn head(&mut self) -> &mut RunHead {
        &mut self.saga.run.head
    }

    pub(super) fn row(&self, key: NodeKey) -> Option<&NodeRun> {
        self.saga.run.nodes.get(&key)
    }

    /// The only way to change a row, so that all counts derived from rows stay correct.
    pub(super) fn change(&mut self, key: NodeKey, change: impl FnOnce(&mut NodeRun)) {
        let before = self.row(key).cloned();
        let mut row = before.clone().unwrap_or_default();
        change(&mut row);
        if before.as_ref() == Some(&row) {
            return;
        }
        if row.state == NodeState::Running {
            self.saga.running.insert(key);
        } else {
            self.saga.running.remove(&key);
        }
        if let Some(until) = before.as_ref().and_then(NodeRun::left_by) {
            self.saga.leaving.remove(&(until, key));
        }
        self.saga.leaving.extend(row.left_by().map(|until| (until, key)));
        if let Some(at) = row.ended_at {
            self.saga.quiet_since = self.saga.quiet_since.max(at);
        }
        self.changed.insert(key);
        self.settled.note(key, before.as_ref(), &row);
        self.saga.run.nodes.insert(key, row);
    }

    /// `later` are the messages that follow in this step.
    pub(super) fn hear(&mut self, news: &RunMessage, later: &[RunMessage]) {
        match news {
            RunMessage::Plain(job) => self.hear_job(job, later),
            RunMessage::Job { part, state, failure, .. } if part.undo && part.run == self.saga.run.head.id => {
                self.hear_undo(part, *state, failure.as_ref());
            }
            RunMessage::Job { .. } | RunMessage::Late { .. } | RunMessage::Run(_) => {}
        }
    }

    fn hear_job(&mut self, job: &Job, later: &[RunMessage]) {
        if job.request.run.as_ref().is_none_or(|part| part.undo || part.run != self.saga.run.head.id) {
            return;
        }
        let key = self.key_of(job);
        let row = self.row(key);
        // A message carries the job in its present state, so the message of its creation, read late, may show its end. The
        // row must begin first; the end is taken from the message that follows.
        let born = !job.state().is_terminal() || later.iter().any(|news| news.is_of(job));
        match row.map(|row| row.state) {
            None if born => {
                let (id, now) = (job.request.job_id.clone(), self.now);
                self.change(key, |row| {
                    (row.state, row.job, row.began_at) = (NodeState::Running, Some(id), Some(now));
                });
            }
            _ if !job.state().is_terminal() => {}
            None | Some(NodeState::Running) => self.end(key, job),
            Some(_) => self.revise(key, job),
        }
        if job.state().is_terminal() {
            self.note_leaving(key, job);
        }
    }

    /// Records the sessions that may still be working on revoked attempts of a life. A row that still runs has not ended, so
    /// none is recorded.
    fn note_leaving(&mut self, key: NodeKey, job: &Job) {
        let leaving: Vec<Leaving> = job.leaving().cloned().collect();
        if self.row(key).is_some_and(|row| row.state != NodeState::Running && row.leaving != leaving) {
            self.change(key, |row| row.leaving = leaving);
        }
    }

    /// Ends the wait for workers whose sessions are closed.
    pub(super) fn note_closed(&mut self, closed: &BTreeSet<SessionId>) {
        let keys: Vec<NodeKey> = self.saga.leaving.iter().map(|(_, key)| *key).collect();
        for key in keys {
            self.change(key, |row| row.note_closed(closed));
        }
    }

    /// Ends waits that have expired: the workers had to stop those attempts by now.
    fn forget_left(&mut self) {
        while let Some((_, key)) = self.saga.leaving.first().copied().filter(|(until, _)| *until <= self.now) {
            self.change(key, |row| row.leaving.clear());
        }
    }

    /// Each life has its own row, because the work of every life is undone, whatever became of the next one.
    fn key_of(&mut self, job: &Job) -> NodeKey {
        let head = &mut self.saga.run.head;
        let node = *self.saga.jobs.entry(job.request.job_id.clone()).or_insert_with(|| {
            head.total += 1;
            head.total - 1
        });
        if job.life.no > 1 { NodeKey::item(node, job.life.no) } else { NodeKey::of(node) }
    }

    /// Records how a life ended. Completed work with a compensation becomes an entry of the log.
    fn end(&mut self, key: NodeKey, job: &Job) {
        let failure = job.life.last_error.as_ref().filter(|_| job.state() != JobState::Succeeded);
        let (state, failure) = match job.state() {
            JobState::Succeeded => (NodeState::Succeeded, None),
            JobState::Cancelled => (NodeState::Canceled, failure.cloned()),
            state => (NodeState::Failed, Some(or_in_words(failure, state))),
        };
        let (entry, entry_no) = self.entry_of(job);
        let (id, now, late) = (job.request.job_id.clone(), self.now, job.is_done_late());
        let tries = JobTries::of(job);
        self.change(key, |row| {
            (row.state, row.failure, row.late) = (state, failure, late);
            row.job = Some(id);
            row.tries = Some(tries);
            row.began_at = row.began_at.or(Some(now));
            row.ended_at = Some(now);
            if entry.is_some() {
                (row.entry, row.entry_no) = (entry, entry_no);
            }
        });
        if rolls_back(job) && self.saga.run.head.closing.is_none() {
            let why = job.life.last_error.as_ref().map_or("it ran out of time", |failure| &*failure.message);
            let reason = job.life.last_error.as_ref().map_or(Reason::DeadlineExceeded, |failure| failure.reason);
            self.close(Closing::Compensate, Failure::new(reason, format!("job {}: {why}", job.request.job_id)));
        }
    }

    fn entry_of(&mut self, job: &Job) -> (Option<crate::request::Json>, u32) {
        let done = matches!(job.state(), JobState::Succeeded | JobState::OutputQuarantined) || job.is_done_late();
        let undo = job.request.compensation.as_ref();
        let on_failure = || undo.and_then(|undo| SagaCompensation::read(undo).ok()).is_some_and(|undo| undo.undo_on_failure);
        let half_done = || was_begun(job) && on_failure();
        if undo.is_none() || !(done || half_done()) {
            return (None, 0);
        }
        self.saga.entries += 1;
        (SagaEntry::of(&job.request), self.saga.entries)
    }

    /// The outcome of a life that had ended changed: its result was quarantined or released, or work that was given up
    /// succeeded.
    fn revise(&mut self, key: NodeKey, job: &Job) {
        let Some(row) = self.row(key) else { return };
        let quarantined = job.state() == JobState::OutputQuarantined;
        let done = quarantined || job.state() == JobState::Succeeded;
        let late = job.is_done_late() && !row.late;
        match row.state {
            NodeState::Succeeded if done => self.change(key, |row| row.tainted = quarantined),
            _ if was_quarantined(row) && done && !quarantined => {
                self.change(key, |row| (row.state, row.failure) = (NodeState::Succeeded, None));
            }
            NodeState::Failed | NodeState::Canceled if (done || late) && !was_quarantined(row) => {
                let undone = row.undo.as_ref().map(|undo| undo.round);
                self.end(key, job);
                if let Some(round) = undone {
                    // The compensation ran before the work was done, so a new round of it is needed.
                    self.start_undo(key, round + 1);
                }
            }
            _ => {}
        }
    }

    /// The job that a row waits for does not exist, so no message about it will come.
    pub(super) fn give_up(&mut self, key: NodeKey, failure: Failure) {
        let Some(row) = self.row(key) else { return };
        let now = self.now;
        if row.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Running) {
            self.end_undo(key, UndoState::Stuck, Some(failure));
        } else if awaited(row).is_some() {
            self.change(key, |row| {
                (row.state, row.failure, row.ended_at) = (NodeState::Failed, Some(failure), Some(now));
            });
        }
    }

    /// Closes the saga. Its failure stays the first one that closed it.
    pub(super) fn close(&mut self, closing: Closing, failure: Failure) {
        let head = self.head();
        head.closing = Some(closing);
        head.failure.get_or_insert(failure);
    }

    pub(super) fn go_on(mut self) -> Option<RunTransition> {
        let closing = self.saga.run.head.closing;
        let undoes = closing.is_some_and(Closing::undoes);
        if undoes {
            self.forget_left();
        }
        // work still under way may succeed, and would then have to be undone first.
        if undoes && self.saga.running.is_empty() && self.saga.leaving.is_empty() {
            self.undo();
        }
        let state = self.state();
        let quiet = (closing.is_none() && self.saga.running.is_empty()).then(|| self.saga.quiet_since + IDLE);
        let left = self.saga.leaving.first().filter(|_| undoes).map(|(until, _)| *until);
        let wakes_at = quiet.or(left);
        let done = self.saga.run.head.total.saturating_sub(u32::try_from(self.saga.running.len()).unwrap_or(u32::MAX));
        let now = self.now;
        let head = self.head();
        head.state = state;
        head.ended_at = if state.is_over() { head.ended_at.or(Some(now)) } else { None };
        head.wakes_at = wakes_at.filter(|_| !state.is_over());
        head.done = done;
        if self.changed.is_empty() && self.saga.run.head == self.before {
            return None;
        }
        Some(self.bare())
    }

    fn state(&self) -> RunState {
        let saga = &*self.saga;
        let still = saga.running.is_empty();
        match saga.run.head.closing {
            None if still && saga.quiet_since + IDLE <= self.now => {
                let failed = saga.run.nodes.values().any(|row| row.state == NodeState::Failed);
                if failed { RunState::SucceededWithFailures } else { RunState::Succeeded }
            }
            None => RunState::Running,
            Some(Closing::Cancel) if still => RunState::Canceled,
            Some(Closing::Fail) if still => RunState::Failed,
            Some(Closing::Cancel | Closing::Fail) => RunState::Running,
            Some(Closing::Compensate | Closing::CancelAndCompensate) => self.undo_state(still && saga.leaving.is_empty()),
        }
    }

    /// The transition with all changes of this step.
    pub(super) fn bare(self) -> RunTransition {
        self.saga.run.head.version += 1;
        let rows = &self.saga.run.nodes;
        RunTransition {
            head: self.saga.run.head.clone(),
            nodes: self.changed.iter().filter_map(|key| rows.get(key).map(|row| (*key, row.clone()))).collect(),
            jobs: self.jobs,
            dead: self.dead,
            runs: Vec::new(),
            stop_jobs: self.saga.implied().stop_jobs.into_iter().chain(self.stops).collect(),
            stop_runs: Vec::new(),
            more: false,
            settled: self.settled,
        }
    }
}

/// Whether a worker had the job and may have done part of its work. A job that was denied, or cancelled while it waited, did
/// nothing.
fn was_begun(job: &Job) -> bool {
    let counters = &job.life.counters;
    job.life.attempt.binding.is_some() || counters.failures + counters.infra_failures + counters.snoozes > 0
}

/// Without a DAG no `on_fail` says what follows a failure. A fatal failure and a timeout roll back; a failure that a replay
/// may mend does not.
fn rolls_back(job: &Job) -> bool {
    let fatal = || job.life.last_error.as_ref().is_some_and(|failure| failure.reason == Reason::Fatal);
    match job.state() {
        JobState::Timeout => true,
        JobState::Failed => fatal(),
        _ => false,
    }
}
