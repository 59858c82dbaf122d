//! A claimed job takes a place, its dispatch is committed, and it is sent.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::attempt::{HeldAttempt, HeldPhase, HeldSince};
use super::{EdgeEffect, EdgeState, Moment};
use crate::ids::{AttemptToken, SessionId};
use crate::job::{Dispatch, Env, Input, Job, Transition};
use crate::pools::RoutingId;
use crate::trace::TraceParent;

/// A job, and what the spans of its worker stand below.
pub type TracedJob = (Arc<Job>, Option<TraceParent>);

/// Why a claimed job took no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplaced {
    /// The session is leaving or gone, or attached anew.
    Closed,
    /// It is not due by the clock of this process.
    Early,
    /// The session has this very attempt already: the claim was old news.
    Known,
}

impl EdgeState {
    /// Numbers the next assignment of a session and takes a place for it. The place is taken before the commit and given up if that
    /// fails ([`EdgeState::on_undispatched`]), so that whatever happens to the job in between finds the place and frees it.
    ///
    /// A leaving session gives none: once it holds nothing it is dismissed, and nothing may follow that.
    pub fn reserve(
        &mut self,
        (id, epoch): (&SessionId, u64),
        routing: &RoutingId,
        job: &Job,
        env: &Env<'_>,
        now: Moment,
    ) -> Result<(Transition, Vec<EdgeEffect>), Unplaced> {
        let session = self.sessions.get_mut(id).filter(|session| session.epoch == epoch).ok_or(Unplaced::Closed)?;
        // A number that leads to nothing is no harm; other processes take it as a sign that something was claimed.
        session.last_assignment += 1;
        let dispatch = Dispatch {
            session: id.clone(),
            epoch,
            worker: session.profile.worker.clone(),
            assignment: session.last_assignment,
            routing: routing.clone(),
        };
        let transition = job.next(Input::Dispatch(dispatch), env).map_err(|_| Unplaced::Early)?;
        if session.is_leaving() {
            return Err(Unplaced::Closed);
        }
        let held = HeldAttempt::new(Arc::new(transition.job.clone()), HeldSince::Dispatched(now), HeldPhase::Reserved);
        match session.held.entry(held.job.life.attempt.token.clone()) {
            Entry::Occupied(_) => return Err(Unplaced::Known),
            Entry::Vacant(_) => session.hold(held),
        }
        let mut out = Vec::new();
        self.touch(id, &mut out);
        Ok((transition, out))
    }

    /// Others chose this worker for a job that it was preferred for; it took a place, and they should hear of it.
    pub fn on_preferred(&mut self, id: &SessionId) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        self.tell_of(id, &mut out);
        out
    }

    /// A dispatch was not committed: gives up its place. A place that was taken since the session attached anew is not that one,
    /// though it may be for the same attempt.
    pub fn on_undispatched(&mut self, id: &SessionId, epoch: u64, token: &AttemptToken) -> Vec<EdgeEffect> {
        self.change(id, Some(epoch), |session, out| {
            if session.held.get(token).is_some_and(|held| !held.is_stored()) {
                session.release(token, out);
            }
            session.dismiss_if_done(out);
        })
    }

    /// Dispatches were committed. They are sent to their workers in the order of their numbers, unless their place was freed meanwhile:
    /// by a cancel, for instance. A session that attached anew meanwhile has the job by its inventory.
    pub fn on_dispatched(&mut self, jobs: Vec<TracedJob>) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        let mut sessions: Vec<SessionId> = Vec::new();
        for (job, trace) in jobs {
            let Some(binding) = &job.life.attempt.binding else { continue };
            let Some(session) = self.sessions.get_mut(&binding.session) else { continue };
            let Some(held) = session.held.get_mut(&job.life.attempt.token) else { continue };
            if matches!(held.phase, HeldPhase::Reserved) {
                held.phase = HeldPhase::Ready { trace };
                sessions.push(binding.session.clone());
            }
        }
        sessions.sort_unstable();
        sessions.dedup();
        for id in sessions {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.send_ready(&mut out);
            }
        }
        out
    }
}
