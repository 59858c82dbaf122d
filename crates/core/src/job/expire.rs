//! A timer fired: the deadline, the attempt's timeout, or its time to start has passed.

use std::time::Duration;

use super::{Env, Evidence, Failure, Illegal, Job, JobState, Reason, Transition};
use crate::time::Timestamp;

impl Job {
    pub(super) fn woken(&self, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.live()?;
        if self.in_output_check() {
            return Err(Illegal::OutputCheck);
        }
        if let Some(deadline) = self.life.deadline_at.filter(|at| *at <= env.now) {
            let mut transition = Transition::from(self);
            transition.evidence = Evidence::Reached(deadline);
            transition.stop_worker(env.now);
            return Ok(transition.dead(JobState::Timeout, past_its_deadline(), env.now));
        }
        if let Some(over) = self.approval_expired(env).or_else(|| self.waited_too_long(env)) {
            return Ok(over);
        }
        let Some(binding) = self.holder() else {
            return Err(Illegal::NotDue);
        };
        // A dispatched attempt that has not started cannot have exceeded its run time: it is lost, not timed out.
        if self.life.state == JobState::Dispatched {
            let evidence = Evidence::Reached(self.unstarted_since(env.now).ok_or(Illegal::NotDue)?);
            // No delay here: callers that wake many jobs at once use `Input::Lost` and spread the retries themselves.
            return self.lost(&self.life.attempt.token, Reason::DispatchLost, evidence, Duration::ZERO, env);
        }
        if binding.timeout_at <= env.now {
            let mut transition = Transition::from(self);
            transition.evidence = Evidence::Reached(binding.timeout_at);
            transition.stop_worker(env.now);
            return Ok(transition.timed_out(env));
        }
        Err(Illegal::NotDue)
    }

    /// Whether the attempt's timeout was cut to the job's deadline, or the deadline has passed meanwhile.
    fn ran_into_its_deadline(&self, now: Timestamp) -> bool {
        let bound = self.life.attempt.binding.as_ref().map(|binding| binding.timeout_at);
        self.life.deadline_at.is_some_and(|deadline| deadline <= now || bound.is_some_and(|bound| deadline <= bound))
    }

    /// When the attempt should have started, if it has not. None if the deadline has passed too: then the deadline ends the
    /// job.
    pub fn unstarted_since(&self, now: Timestamp) -> Option<Timestamp> {
        let in_time = self.life.deadline_at.is_none_or(|deadline| deadline > now);
        let waiting = self.holder().filter(|_| self.life.state == JobState::Dispatched && in_time);
        waiting.map(|binding| binding.start_by).filter(|start_by| *start_by <= now)
    }
}

impl Transition {
    /// The attempt exceeded its timeout: retry while the failure budget lasts, then end as TIMEOUT.
    pub(super) fn timed_out(self, env: &Env<'_>) -> Self {
        if self.job.ran_into_its_deadline(env.now) {
            return self.dead(JobState::Timeout, past_its_deadline(), env.now);
        }
        let failure = Failure::new(Reason::ExecutionTimeout, "the attempt ran longer than its timeout");
        self.retry_or(JobState::Timeout, failure, None, None, env)
    }
}

fn past_its_deadline() -> Failure {
    Failure::new(Reason::DeadlineExceeded, "the job's deadline passed")
}
