//! Force retry: an operator ends the wait before the next attempt.

use super::{Effect, Env, EventKind, Illegal, Job, JobState, Transition, clipped};
use crate::ids::ActorId;

impl Job {
    /// Only a wait between two attempts is ended. A time that the client named for the first attempt is part of what it asked
    /// for, and waits for verdicts, people, children, workers and limits have other ends.
    pub(super) fn hastened(&self, actor: ActorId, note: Option<&str>, env: &Env<'_>) -> Result<Transition, Illegal> {
        let waits = self.life.state == JobState::Scheduled && self.life.due_at > env.now;
        if !waits || self.attempts_made() == 0 {
            return Err(Illegal::NoRetryWaits(self.life.state));
        }
        let mut transition = Transition::from(self);
        transition.job.life.due_at = env.now;
        transition.event(EventKind::RetryForced, env.now, |event| {
            event.actor = Some(actor);
            event.message = note.map(clipped);
        });
        transition.effects.push(Effect::Offer);
        Ok(transition)
    }
}
