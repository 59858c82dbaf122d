//! Asks jobs back that were sent ahead of a free slot, when something more urgent has no place.

use lockgate_core::ids::{PoolName, SessionId};
use lockgate_core::job::JobState;
use lockgate_core::lane::{Priority, Shape};
use lockgate_core::pools::{Route, Routing};

use super::sessions::{EdgeSession, EdgeState, HeldAttempt};
use super::{Edge, ToWorker};

impl Edge {
    /// The pool of a session that is attached here.
    pub(super) fn pool_of(&self, session: &SessionId) -> Option<PoolName> {
        self.state.lock().sessions.get(session).map(|session| session.profile.pool.clone())
    }

    /// Frees places on one worker that fits the shape, from jobs less urgent than `urgency` that have not begun. One worker
    /// at a time: the next round asks the next one if that was not enough. A worker that has begun one meanwhile keeps it
    /// and says nothing.
    pub(super) fn ask_back(&self, shape: &Shape, route: &Route, routing: &Routing, urgency: Priority) {
        let mut state = self.state.lock();
        let EdgeState { ahead, sessions, .. } = &mut *state;
        for id in ahead.iter() {
            let Some(session) = sessions.get_mut(id).filter(|session| !session.draining) else { continue };
            let name = &session.profile.pool;
            let open = route.contains(name) && routing.closed(name).is_none();
            let fits = open && session.profile.lacks(shape, routing.pools.pool(name)).next().is_none();
            if fits && session.ask_back(urgency) {
                return;
            }
        }
    }
}

impl EdgeSession {
    /// Whether anything is asked back. Everything less urgent that waits is: the urgent job must not queue behind it.
    fn ask_back(&mut self, urgency: Priority) -> bool {
        if !self.is_attached() {
            return false;
        }
        // A worker cannot give back an attempt that has not arrived.
        let waits =
            |held: &&mut HeldAttempt| held.told && held.job.state() == JobState::Dispatched && held.started.is_none();
        let mut asked = false;
        for held in self.held.values_mut().filter(waits).filter(|held| held.job.request.priority() > urgency) {
            asked = true;
            if !held.asked_back {
                held.asked_back = true;
                let (job_id, token) = (held.job.request.job_id.clone(), held.job.life.attempt.token.clone());
                self.outbound.tell(ToWorker::Revoke { job_id, token });
            }
        }
        asked
    }
}
