//! A waiting job that no worker can ever take.

use std::sync::Arc;

use super::{Env, Evidence, Failure, Illegal, Job, JobState, Reason, Transition};
use crate::pools::RoutingId;

impl Job {
    /// Ends a job that waits for a worker. The caller has looked for one often enough; a change of the configuration
    /// meanwhile is a new chance.
    pub(super) fn given_up(
        &self,
        reason: Reason,
        message: Arc<str>,
        routing: RoutingId,
        env: &Env<'_>,
    ) -> Result<Transition, Illegal> {
        self.live()?;
        if self.life.state != JobState::Scheduled {
            return Err(Illegal::State { input: "giving up", state: self.life.state });
        }
        if self.life.due_at > env.now {
            return Err(Illegal::NotDue);
        }
        let mut transition = Transition::from(self);
        transition.evidence = Evidence::Routed(routing);
        Ok(transition.dead(JobState::Failed, Failure::new(reason, message), env.now))
    }
}
