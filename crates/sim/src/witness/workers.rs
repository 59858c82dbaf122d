//! Checks reports against what workers really did, as the simulated workers record it. Any other report is invented.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::ids::{JobId, SessionId};
use lockgate_core::job::{EventKind, Job, JobEvent, Outcome, Reason, Transition};

use super::jobs::told;
use super::{Books, Witness};

/// How an attempt ended, as its worker reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Done,
    Failed,
    Fatal,
    Snoozed,
    Waits,
}

/// By job and attempt.
#[derive(Default)]
pub(super) struct WorkerBooks {
    begun: BTreeSet<(JobId, u32)>,
    said: BTreeSet<(JobId, u32, Word)>,
    /// Attempts that were declared lost, whatever happened to them later.
    lost: BTreeSet<(JobId, u32)>,
    /// How many jobs each session lets wait besides the running ones. No row stores it.
    ahead: BTreeMap<SessionId, usize>,
}

impl WorkerBooks {
    pub(super) fn ahead(&self, session: &SessionId) -> usize {
        self.ahead.get(session).copied().unwrap_or(0)
    }
}

impl Books {
    /// Records a change as far as it concerns workers. The witness's record is of the job before the change.
    pub(super) fn follows_workers(&mut self, transition: &Transition) {
        let job = &transition.job;
        let id = &job.request.job_id;
        let before = self.jobs.get(id).filter(|entry| entry.life == job.life.no);
        // The last attempt dispatched in this life, if no worker holds it.
        let free = before.filter(|entry| entry.holder.is_none()).map(|entry| entry.dispatched);
        for event in &transition.events {
            let late_of = event.late_of.filter(|_| event.kind != EventKind::DoneLate);
            let in_time = late_of.is_none_or(|late| free == Some(late) && late < event.attempt);
            self.require(in_time, "A-4 a late result counts until the next attempt is dispatched", || {
                told(job, &format!("{:?} of {late_of:?}, free after {free:?}", event.kind))
            });
            let attempt = event.late_of.unwrap_or(event.attempt);
            let real = {
                let workers = self.workers.lock();
                let said = |word| workers.said.contains(&(id.clone(), attempt, word));
                match event.kind {
                    EventKind::Started | EventKind::ChildrenSubmitted => workers.begun.contains(&(id.clone(), attempt)),
                    _ => word_of(event).is_none_or(said),
                }
            };
            self.require(real, "A-1 of an attempt counts only what its worker said", || {
                told(job, &format!("{:?} of attempt {attempt}", event.kind))
            });
            if matches!(event.reason, Some(Reason::AgentLost | Reason::DispatchLost)) {
                self.workers.lock().lost.insert((id.clone(), event.attempt));
            }
            if event.kind == EventKind::DoneLate {
                self.is_a_note(job);
            }
        }
    }

    /// A late result of a run's job is recorded only if its worker reported a success.
    fn is_a_note(&mut self, job: &Job) {
        let id = &job.request.job_id;
        let stays = self.jobs.get(id).is_some_and(|entry| {
            (entry.life, entry.attempt, entry.state) == (job.life.no, job.life.attempt.no, job.life.state)
        });
        let first = self.noted.insert((id.clone(), job.life.no));
        self.require(first, "A-9 late work is taken down once", || told(job, "once more"));
        let of_a_run = job.request.run.is_some();
        self.require(stays && of_a_run, "A-9 late work ends nothing", || told(job, &format!("{:?}", job.request.run)));
    }
}

/// The report that a worker must have made for this event.
fn word_of(event: &JobEvent) -> Option<Word> {
    match (event.kind, event.reason) {
        (EventKind::Succeeded | EventKind::OutputHeld | EventKind::OutputQuarantined | EventKind::DoneLate, _) => {
            Some(Word::Done)
        }
        (EventKind::AttemptFailed | EventKind::Failed, Some(Reason::Failed)) => Some(Word::Failed),
        (EventKind::Failed, Some(Reason::Fatal)) => Some(Word::Fatal),
        (EventKind::Snoozed, _) => Some(Word::Snoozed),
        (EventKind::WaitingForChildren, _) => Some(Word::Waits),
        _ => None,
    }
}

impl Witness {
    /// A worker is about to announce that it lets this many jobs wait.
    pub(crate) fn expect_ahead(&self, session: &SessionId, ahead: usize) {
        self.books.lock().workers.lock().ahead.insert(session.clone(), ahead);
    }

    /// A worker begins an attempt.
    pub(crate) fn saw_begin(&self, job: &JobId, attempt: u32) {
        self.books.lock().workers.lock().begun.insert((job.clone(), attempt));
    }

    /// Whether an attempt was declared lost, by a change that the Store acknowledged.
    pub(crate) fn was_lost(&self, job: &JobId, attempt: u32) -> bool {
        self.books.lock().workers.lock().lost.contains(&(job.clone(), attempt))
    }

    /// An attempt ends, and its worker is about to report how.
    pub(crate) fn saw_end(&self, job: &JobId, attempt: u32, outcome: &Outcome) {
        let word = match outcome {
            Outcome::Succeeded { .. } => Word::Done,
            Outcome::FailedRetryable { .. } => Word::Failed,
            Outcome::FailedFatal { .. } => Word::Fatal,
            Outcome::Snooze { .. } => Word::Snoozed,
            Outcome::AwaitChildren { .. } => Word::Waits,
            // A worker reports these outcomes also for attempts that never started, so they prove nothing.
            Outcome::TimedOut | Outcome::Cancelled { .. } | Outcome::Interrupted | Outcome::Revoked => return,
        };
        self.books.lock().workers.lock().said.insert((job.clone(), attempt, word));
    }
}
