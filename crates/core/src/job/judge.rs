//! A job that had no verdict gets one, or one whose verdict is out of date is judged again.

use super::{Env, EventKind, Illegal, Job, JobState, Life, Reason, Transition};
use crate::verdict::{Decision, Judgement};

impl Job {
    pub(super) fn judged(&self, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.live()?;
        match self.life.state {
            // It waits for its children, and not for a verdict.
            JobState::Pending if self.barrier().is_some() => self.waited_too_long(env).ok_or(Illegal::NotDue),
            // The kernel still does not answer: that is no news, and not worth a write.
            JobState::Pending if matches!(env.judgement, Judgement::Unavailable(_)) => Err(Illegal::NotDue),
            JobState::Pending => {
                // Judged early, it still starts no earlier than its delay or backoff says.
                let due_at = self.life.due_at.max(env.now);
                Ok(Transition::from(self).judge(due_at, env))
            }
            // Going back is a new attempt (J-1). Nothing is burnt, and the job keeps its place in the lane.
            JobState::Scheduled => Ok(Transition::from(self).next_attempt(self.life.due_at, env)),
            // The policy moved while the attempt was on its way. Started or not, what is no longer allowed is called back.
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
    /// Whether the judgement lets an attempt of this life go on. Without one there is no reason to call it back.
    pub(super) fn judgement_allows(&self, life: &Life) -> bool {
        let Judgement::Decided(verdict) = &self.judgement else { return true };
        match verdict.decision {
            Decision::Allow | Decision::AllowWithConstraints | Decision::Throttle => true,
            Decision::RequireApproval => life.approval.as_ref().is_some_and(|given| given.satisfies(verdict, self.now)),
            Decision::Deny | Decision::Unknown(_) => false,
        }
    }
}
