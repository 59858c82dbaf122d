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
        // What has not begun cannot run too long.
        if self.life.state == JobState::Dispatched {
            let evidence = Evidence::Reached(self.unstarted_since(env.now).ok_or(Illegal::NotDue)?);
            // A caller that wakes many at once marks them lost, and paces them.
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

    /// The time that the attempt had was what was left until the job's deadline, or that has passed meanwhile.
    fn ran_into_its_deadline(&self, now: Timestamp) -> bool {
        let bound = self.life.attempt.binding.as_ref().map(|binding| binding.timeout_at);
        self.life.deadline_at.is_some_and(|deadline| deadline <= now || bound.is_some_and(|bound| deadline <= bound))
    }

    /// When the attempt should have begun, if it has not by now. None where the deadline has passed as well: that ends the job.
    pub fn unstarted_since(&self, now: Timestamp) -> Option<Timestamp> {
        let in_time = self.life.deadline_at.is_none_or(|deadline| deadline > now);
        let waiting = self.holder().filter(|_| self.life.state == JobState::Dispatched && in_time);
        waiting.map(|binding| binding.start_by).filter(|start_by| *start_by <= now)
    }
}

impl Transition {
    /// The attempt ran too long. Retried while the client's budget lasts, then TIMEOUT.
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
