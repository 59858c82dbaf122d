//! Discard: an operator says that a dead letter is not to be replayed. The job keeps its state, its history and its result.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DeadLetter, Env, EventKind, Illegal, Job, Transition, clipped};
use crate::ids::ActorId;
use crate::time::Timestamp;

/// Who discarded the dead letter of a life, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discard {
    pub actor: ActorId,
    pub at: Timestamp,
    pub reason: Arc<str>,
}

impl Job {
    /// Jobs of runs too: their letters are open until an operator has looked at them, although only their run can replay them.
    pub(super) fn discarded(&self, actor: ActorId, reason: &str, env: &Env<'_>) -> Result<Transition, Illegal> {
        if !self.life.state.is_dead() {
            return Err(Illegal::State { input: "discard", state: self.life.state });
        }
        self.undiscarded()?;
        let mut transition = Transition::from(self);
        let reason = clipped(reason);
        transition.job.life.discarded = Some(Discard { actor: actor.clone(), at: env.now, reason: reason.clone() });
        transition.event(EventKind::Discarded, env.now, |event| {
            event.actor = Some(actor);
            event.message = Some(reason);
        });
        Ok(transition)
    }

    pub(super) fn undiscarded(&self) -> Result<(), Illegal> {
        self.life.discarded.as_ref().map_or(Ok(()), |discard| Err(Illegal::Discarded(discard.actor.clone())))
    }

    /// What the bad end of this life left, read off the job. None if the job did not end badly.
    pub fn dead_letter(&self) -> Option<DeadLetter> {
        let failure = self.life.last_error.as_ref().filter(|_| self.life.state.is_dead())?;
        let letter = DeadLetter::of(self, self.life.state, failure, self.life.ended_at?);
        Some(DeadLetter { discarded: self.life.discarded.clone(), ..letter })
    }
}

impl Transition {
    /// J-4: whether the open dead letter that the job may have is gone with this commit: a new one replaces it, the job is not
    /// dead any more, or an operator discarded it.
    pub fn drops_letter(&self) -> bool {
        self.dead_letter.is_some() || !self.job.state().is_dead() || self.job.life.discarded.is_some()
    }
}
