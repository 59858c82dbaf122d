//! Asks jobs back that were sent ahead of a free slot, when something more urgent has no place.

use super::attempt::{HeldAttempt, HeldPhase};
use super::session::EdgeSession;
use super::{EdgeEffect, EdgeState, ToWorker};
use crate::job::JobState;
use crate::lane::{Priority, Shape};
use crate::pools::{Route, Routing};

impl EdgeState {
    /// Frees places on one worker that fits the shape, from jobs less urgent than `urgency` that have not begun. One worker
    /// at a time: the next round asks the next one if that was not enough. A worker that has begun one meanwhile keeps it
    /// and says nothing.
    pub fn on_urgent(&mut self, shape: &Shape, route: &Route, routing: &Routing, urgency: Priority) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        for id in &self.ahead {
            let Some(session) = self.sessions.get_mut(id).filter(|session| !session.is_leaving()) else { continue };
            let name = &session.profile.pool;
            let open = route.contains(name) && routing.closed(name).is_none();
            let fits = open && session.profile.lacks(shape, routing.pools.pool(name)).next().is_none();
            if fits && session.ask_back(urgency, &mut out) {
                break;
            }
        }
        out
    }
}

impl EdgeSession {
    /// Whether anything is asked back. Everything less urgent that waits is: the urgent job must not queue behind it.
    fn ask_back(&mut self, urgency: Priority, out: &mut Vec<EdgeEffect>) -> bool {
        if !self.attached {
            return false;
        }
        let mut revoked = Vec::new();
        let mut asked = false;
        let less_urgent = |held: &&mut HeldAttempt| held.job.request.priority() > urgency;
        for held in self.held.values_mut().filter(|held| held.job.state() == JobState::Dispatched).filter(less_urgent) {
            // A worker cannot give back an attempt that has not arrived.
            let HeldPhase::Sent { asked_back } = &mut held.phase else { continue };
            asked = true;
            if !std::mem::replace(asked_back, true) {
                let (job_id, token) = (held.job.request.job_id.clone(), held.job.life.attempt.token.clone());
                revoked.push(ToWorker::Revoke { job_id, token });
            }
        }
        for message in revoked {
            self.tell(message, out);
        }
        asked
    }
}
