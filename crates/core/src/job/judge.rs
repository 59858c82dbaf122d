//! Judges a job that has no verdict, and judges a job again whose verdict is out of date.

use super::{Env, EventKind, Illegal, Job, JobState, Life, Reason, Transition};
use crate::verdict::{Decision, Judgement};

impl Job {
    pub(super) fn judged(&self, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.live()?;
        match self.life.state {
            // A parent at its barrier waits for its children, not for a verdict.
            JobState::Pending if self.barrier().is_some() => self.waited_too_long(env).ok_or(Illegal::NotDue),
            // The kernel still does not answer: nothing changed, so nothing is written.
            JobState::Pending if matches!(env.judgement, Judgement::Unavailable(_)) => Err(Illegal::NotDue),
            JobState::Pending => {
                // An early verdict must not start the job before its delay or backoff has passed.
                let due_at = self.life.due_at.max(env.now);
                Ok(Transition::from(self).judge(due_at, env))
            }
            // Going back takes a new attempt (J-1). No budget is spent, and the job keeps its place in the lane.
            JobState::Scheduled => Ok(Transition::from(self).next_attempt(self.life.due_at, env)),
            // The policy changed while the assignment was on its way. An attempt that it no longer allows is revoked,
            // started or not.
            JobState::Dispatched if !env.judgement_allows(&self.life) => {
                let mut transition = Transition::from(self);
                transition.stop_worker(env.now);
                transition.event(EventKind::AttemptLost, env.now, |event| event.reason = Some(Reason::Revoked));
                Ok(transition.next_attempt(env.now, env))
            }
            JobState::Dispatched => Err(Illegal::NotDue),
            state => Err(Illegal::State { input: "judging", state }),
        }
    }
}

impl Env<'_> {
    /// Whether the judgement lets the attempt go on. An unavailable kernel is no reason to revoke it.
    pub(super) fn judgement_allows(&self, life: &Life) -> bool {
        let Judgement::Decided(verdict) = &self.judgement else { return true };
        match verdict.decision {
            Decision::Allow | Decision::AllowWithConstraints | Decision::Throttle => true,
            Decision::RequireApproval => life.approval.as_ref().is_some_and(|given| given.satisfies(verdict, self.now)),
            Decision::Deny | Decision::Unknown(_) => false,
        }
    }
}
