//! A client cancels the job. The job ends at once; the worker that holds it is told to stop, and its late result changes
//! nothing.

use std::sync::Arc;

use super::{Env, EventKind, Failure, Illegal, Job, JobState, Reason, Transition, clipped};
use crate::ids::ActorId;

impl Job {
    pub(super) fn cancelled(&self, actor: ActorId, note: Option<Arc<str>>, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.live()?;
        if self.in_output_check() {
            return Err(Illegal::OutputCheck);
        }
        let mut transition = Transition::from(self);
        transition.stop_worker(env.now);
        let message = note.map_or_else(|| format!("cancelled by {actor}").into(), |note| clipped(&note));
        transition.event(EventKind::Cancelled, env.now, |event| {
            event.actor = Some(actor);
            event.reason = Some(Reason::Cancelled);
            event.message = Some(message.clone());
        });
        Ok(transition.end(JobState::Cancelled, Some(Failure::new(Reason::Cancelled, message)), env.now))
    }
}
