//! Asks jobs back that were sent ahead of a free slot, when something more urgent has no place.

use lockgate_core::job::JobState;
use lockgate_core::lane::{Priority, Shape};
use lockgate_core::pools::{Route, Routing};

use super::sessions::{Held, Session};
use super::{Edge, ToWorker};

impl Edge {
    /// Frees up to `jobs` places on workers that fit the shape, from jobs less urgent than `urgency` that have not begun.
    /// A worker that has begun one meanwhile keeps it and says nothing.
    pub(super) fn ask_back(&self, shape: &Shape, route: &Route, routing: &Routing, urgency: Priority, mut jobs: usize) {
        let mut state = self.state.lock();
        let ahead: Vec<_> = state.ahead.iter().cloned().collect();
        for id in ahead {
            let Some(session) = state.sessions.get_mut(&id).filter(|session| jobs > 0 && !session.draining) else {
                continue;
            };
            let pool = routing.pools.pool(&session.profile.pool);
            if route.contains(&session.profile.pool) && session.profile.lacks(shape, pool).next().is_none() {
                jobs -= session.ask_back(urgency, jobs);
            }
        }
    }
}

impl Session {
    /// How many were asked back, or had been. Everything less urgent that waits is: the urgent job must not queue behind it.
    fn ask_back(&mut self, urgency: Priority, wanted: usize) -> usize {
        let Some(outbound) = &self.outbound else { return 0 };
        let waits = |held: &&mut Held| held.job.state() == JobState::Dispatched && held.started.is_none();
        let mut asked = 0;
        for held in self.held.values_mut().filter(waits).filter(|held| held.job.request.priority() > urgency) {
            asked += 1;
            if !held.asked_back {
                held.asked_back = true;
                let (job_id, token) = (held.job.request.job_id.clone(), held.job.life.attempt.token.clone());
                // A closed stream means that the worker attaches anew, and what it holds is compared then.
                let _ = outbound.send(ToWorker::Revoke { job_id, token });
            }
        }
        asked.min(wanted)
    }
}
