//! A job that had no verdict gets one, or one whose verdict is out of date is judged again.

use super::{Env, Illegal, Job, JobState, Transition};

impl Job {
    pub(super) fn judged(&self, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.live()?;
        match self.life.state {
            JobState::Pending => {
                // Judged early, it still starts no earlier than its delay or backoff says.
                let due_at = self.life.due_at.max(env.now);
                Ok(Transition::from(self).judge(due_at, env))
            }
            // Going back is a new attempt (J-1). Nothing is burnt, and the job keeps its place in the lane.
            JobState::Scheduled => Ok(Transition::from(self).next_attempt(self.life.due_at, env)),
            state => Err(Illegal::State { input: "judging", state }),
        }
    }
}
