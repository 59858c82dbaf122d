//! Checks commits of jobs against the record of what was committed before.

use std::collections::BTreeSet;

use lockgate_core::ids::{JobId, JobSeq};
use lockgate_core::job::{EventKind, Job, JobState, Transition};
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::{Decision, Verdict};
use lockgate_ports::{ChangeError, JobChange, SnapshotKind, StoreError};

use super::{Books, JobBook, Meaning, Witness};

impl Witness {
    pub(crate) async fn commit(&self, changes: Vec<JobChange>) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError> {
        let asked: Vec<Transition> = changes.iter().map(|change| change.transition.clone()).collect();
        let answers = self.planted.commit(&self.disk, changes).await?;
        let now = self.clock.now();
        let mut books = self.books.lock();
        for (transition, answer) in asked.iter().zip(&answers) {
            if answer.is_ok() {
                books.note(transition, now);
            }
        }
        Ok(answers)
    }
}

impl Books {
    /// Records a change that the Store acknowledged.
    pub(super) fn note(&mut self, transition: &Transition, now: Timestamp) {
        self.follows(transition);
        self.is_proven(transition, now);
        let job = &transition.job;
        if transition.events.iter().any(|event| event.kind == EventKind::Dispatched) {
            self.may_be_dispatched(job);
        }
        if job.life.state == JobState::Scheduled || job.holder().is_some() {
            self.require(allowing(job).is_some(), "A-7 nothing waits for a worker that was not allowed to", || {
                told(job, &format!("{:?}", job.life.attempt.verdict))
            });
        }
        self.follows_workers(transition);
        self.relate(transition);
        self.enter(job);
        self.log(job);
        self.keeps_limits(job);
    }

    /// Versions, lives, attempts and events must continue without gaps.
    fn follows(&mut self, transition: &Transition) {
        let job = &transition.job;
        let before = self.jobs.get(&job.request.job_id);
        let known = before.map_or((0, 0, 0, 0, false), |entry| {
            (entry.version, entry.life, entry.attempt, entry.state.rank(), entry.state.is_terminal())
        });
        let (version, life, attempt, rank, ended) = known;
        let events = before.map_or(0, |entry| entry.events);
        let end = before.map(|entry| entry.state).filter(|state| state.is_terminal() && job.life.no == life);
        self.require(job.version == version + 1, "S-1 each version is followed by one change", || {
            told(job, &format!("version {version} before"))
        });
        let progress = (job.life.no, job.life.attempt.no, job.life.state.rank()) >= (life, attempt, rank);
        self.require(progress, "J-1 nothing goes back", || told(job, &format!("{life} {attempt} {rank} before")));
        let revived = ended && !job.life.state.is_terminal();
        self.require(!revived || job.life.no == life + 1, "J-3 only a replay revives", || told(job, "ended before"));
        let stays = end.is_none_or(|end| end == job.life.state || is_scan(end, job.life.state));
        self.require(stays, "J-3 what ended stays as it ended", || told(job, &format!("{end:?} before")));
        let numbered = transition.events.iter().zip(events + 1..).all(|(event, n)| event.n == n);
        let counted = job.life.events == events + transition.events.len() as u64;
        self.require(numbered && counted, "S-4 events without gaps", || told(job, &format!("{events} events before")));
    }

    /// Whatever the evidence says: the worker that gets an attempt must be attached and have room, and the policy in force
    /// must allow the attempt.
    fn may_be_dispatched(&mut self, job: &Job) {
        let before = self.jobs.get(&job.request.job_id);
        let again = before.is_some_and(|entry| entry.attempt == job.life.attempt.no && entry.state.is_held());
        self.require(!again, "A-3 an attempt is dispatched once", || told(job, "was held before"));
        let stands = allowing(job).is_some_and(|verdict| *verdict.snapshot == *self.in_force(SnapshotKind::Policy));
        self.require(stands, "G-1 nothing is dispatched but under the policy in force", || told(job, "no such verdict"));
        let Meaning { denied, asks } = self.policies.get(self.in_force(SnapshotKind::Policy)).cloned().unwrap_or_default();
        let topic = Some(&job.request.topic);
        // A compensation may run without a verdict while the kernel does not answer, and is judged later.
        let undoes = job.request.run.as_ref().is_some_and(|part| part.undo);
        let unjudged = undoes && job.life.attempt.verdict.as_ref().is_some_and(|verdict| verdict.bypassed);
        self.require(unjudged || denied.as_ref() != topic, "G-1 nothing that is denied is dispatched", || {
            told(job, "its topic is denied")
        });
        let agreed = unjudged || asks.as_ref() != topic || self.approved.contains(&job.request.job_id);
        self.require(agreed, "G-2 what people are asked about waits for them", || told(job, "nobody agreed"));
        // Claims made before do not matter: a pause holds from its commit on.
        let paused = self.closed.contains(self.in_force(SnapshotKind::PoolStates));
        self.require(!paused, "S-1 a paused pool starts nothing", || told(job, "its pool is paused"));
        let Some(binding) = &job.life.attempt.binding else { return };
        let (slots, open) = self.sessions.get(&binding.session).map_or((0, false), |session| (session.slots, session.open));
        self.require(open, "S-1 only an attached session gets work", || told(job, binding.session.as_str()));
        let others = self.held.get(&binding.session).map_or(0, BTreeSet::len);
        let places = slots + self.workers.lock().ahead(&binding.session);
        self.require(others < places, "A-5 a worker holds no more than it has places for", || {
            told(job, &format!("{others} held before"))
        });
    }

    pub(super) fn enter(&mut self, job: &Job) {
        let id: &JobId = &job.request.job_id;
        if let Some(session) = self.jobs.get(id).and_then(|entry| entry.holder.as_ref())
            && let Some(held) = self.held.get_mut(session)
        {
            held.remove(id);
        }
        let holder = job.holder().map(|binding| binding.session.clone());
        if let Some(session) = &holder {
            self.held.entry(session.clone()).or_default().insert(id.clone());
        }
        let attempt = &job.life.attempt;
        let before = || self.jobs.get(id).map_or_else(|| job.life.lost.as_ref().map_or(0, |lost| lost.no), |e| e.dispatched);
        let dispatched = if attempt.binding.is_some() { attempt.no } else { before() };
        let entry = JobBook {
            version: job.version,
            life: job.life.no,
            attempt: attempt.no,
            state: job.life.state,
            events: job.life.events,
            topic: job.request.topic.clone(),
            holder,
            looked_at: job.in_output_check(),
            dispatched,
            dispatched_at: attempt.binding.as_ref().map(|binding| binding.dispatched_at),
            started_at: attempt.started_at,
        };
        self.jobs.insert(id.clone(), entry);
    }

    fn keeps_limits(&mut self, job: &Job) {
        let Some(max) = self.limits.get(&job.request.topic).copied().filter(|_| job.life.state == JobState::Dispatched)
        else {
            return;
        };
        let of_topic = |entry: &&JobBook| entry.holder.is_some() && entry.topic == job.request.topic;
        let at_work = self.jobs.values().filter(of_topic).count();
        self.require(at_work <= max, "L-6 a limit is never exceeded", || {
            told(job, &format!("{at_work} at work, {max} allowed"))
        });
    }
}

/// The verdict by which the current attempt may start, if it may.
fn allowing(job: &Job) -> Option<&Verdict> {
    let agreed = || job.life.approval.as_ref().is_some_and(|approval| approval.granted_at.is_some());
    job.life.attempt.verdict.as_deref().filter(|verdict| {
        matches!(verdict.decision, Decision::Allow | Decision::AllowWithConstraints)
            || (verdict.decision == Decision::RequireApproval && agreed())
    })
}

/// A late scan, or a release.
fn is_scan(before: JobState, after: JobState) -> bool {
    use JobState::{OutputQuarantined, Succeeded};
    matches!((before, after), (Succeeded, OutputQuarantined) | (OutputQuarantined, Succeeded))
}

pub(super) fn told(job: &Job, more: &str) -> String {
    let (life, attempt) = (&job.life, &job.life.attempt);
    format!("{} v{} life {} attempt {} {}: {more}", job.request.job_id, job.version, life.no, attempt.no, life.state)
}
