//! Ends a waiting job that no worker can ever take.

use std::sync::Arc;

use super::{Env, Evidence, Failure, Illegal, Job, JobState, Reason, Transition};
use crate::pools::RoutingId;

impl Job {
    /// The caller has searched for a worker often enough. The evidence refuses the commit if the pools configuration changed
    /// meanwhile, because the new one may have a worker.
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
