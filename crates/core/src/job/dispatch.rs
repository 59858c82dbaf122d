//! Binds a claimed job to a worker's session, and records the worker's report that it started.

use super::{Binding, Dispatch, Env, EventKind, Evidence, Illegal, Job, JobState, Transition};
use crate::ids::AttemptToken;
use crate::time::Timestamp;
use crate::verdict::BUILTIN_ALLOW;

impl Job {
    pub(super) fn dispatched(&self, to: Dispatch, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.live()?;
        // SCHEDULED implies an allowing verdict and no binding, because every path back to SCHEDULED mints a new
        // attempt.
        if self.life.state != JobState::Scheduled {
            return Err(Illegal::State { input: "dispatch", state: self.life.state });
        }
        if self.life.due_at > env.now {
            return Err(Illegal::NotDue);
        }
        let timeout_at = self.attempt_timeout(env);
        let mut transition = Transition::from(self);
        let worker = to.worker.clone();
        let life = &mut transition.job.life;
        life.state = JobState::Dispatched;
        // The dispatched attempt replaces the lost one: a late result of the lost attempt is refused from now on.
        life.lost = None;
        life.attempt.binding = Some(Binding {
            session: to.session.clone(),
            worker: to.worker,
            dispatched_at: env.now,
            timeout_at,
            start_by: self.start_by(env),
            assignment: to.assignment,
        });
        transition.event(EventKind::Dispatched, env.now, |event| event.worker = Some(worker));
        let policy = self.life.attempt.verdict.as_ref().map_or_else(|| BUILTIN_ALLOW.into(), |v| v.snapshot.clone());
        transition.evidence = Evidence::Allowed { session: to.session, epoch: to.epoch, policy, routing: to.routing };
        Ok(transition)
    }

    pub(super) fn started(&self, token: &AttemptToken, at: Timestamp, env: &Env<'_>) -> Result<Transition, Illegal> {
        if !self.holds(token) {
            return Err(Illegal::Superseded);
        }
        if self.life.state == JobState::Running {
            return Err(Illegal::State { input: "start", state: self.life.state });
        }
        let mut transition = Transition::from(self);
        transition.note_start(at, env.now);
        Ok(transition)
    }
}

impl Transition {
    /// Only the worker's report sets RUNNING, never the scheduler. The worker's clock is not trusted: its start time is
    /// clamped to the interval between dispatch and now.
    pub(super) fn note_start(&mut self, at: Timestamp, now: Timestamp) {
        let deadline = self.job.life.deadline_at;
        let Some(binding) = &mut self.job.life.attempt.binding else { return };
        // A start time before the dispatch, from a clock that is behind, would shorten the attempt's timeout: clamp it.
        let (at, worker) = (at.min(now).max(binding.dispatched_at), Some(binding.worker.clone()));
        // The worker starts its own timer at the start, too: time spent waiting for a worker slot does not count.
        let timeout_at = at + binding.timeout_at.since(binding.dispatched_at);
        binding.timeout_at = deadline.map_or(timeout_at, |deadline| deadline.min(timeout_at));
        self.job.life.state = JobState::Running;
        self.job.life.attempt.started_at = Some(at);
        self.event(EventKind::Started, at, |event| event.worker = worker);
    }
}
