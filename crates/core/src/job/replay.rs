//! Replay: a dead job gets a new life with fresh budgets, a fresh deadline and a new verdict. Attempt numbers go on.

use std::time::Duration;

use super::{Counters, Duty, Env, EventKind, Illegal, Job, JobState, Transition};
use crate::ids::ActorId;

impl Job {
    /// Whether the job by itself allows a new life. Whether its saga is still open is for the caller to check, since the job
    /// does not know.
    pub fn replayable(&self) -> Result<(), Illegal> {
        if !self.life.state.is_dead() {
            return Err(Illegal::State { input: "replay", state: self.life.state });
        }
        self.undiscarded()?;
        // A new life starts without a family, so children that still have to be stopped would be forgotten.
        if self.owes(Duty::Disown) {
            return Err(Illegal::Disowning);
        }
        match &self.request.run {
            Some(part) if !part.run.is_saga() => Err(Illegal::OfRun(part.run.clone())),
            Some(part) if part.undo => Err(Illegal::Undoes),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn replayed(&self, actor: ActorId, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.replayable()?;
        let mut transition = Transition::from(self);
        let life = &mut transition.job.life;
        life.no += 1;
        life.state = JobState::Pending;
        life.counters = Counters::default();
        life.began_at = env.now;
        life.ended_at = None;
        life.lost = None;
        life.taken.clear();
        life.late = None;
        life.approval = None;
        life.output = None;
        life.bypass = None;
        life.family = None;
        life.deadline_at = self.request.deadline_ms.map(|ms| env.now + Duration::from_millis(ms));
        transition.event(EventKind::Replayed, env.now, |event| event.actor = Some(actor));
        Ok(transition.next_attempt(env.now, env))
    }
}
