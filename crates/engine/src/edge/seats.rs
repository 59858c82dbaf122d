//! Free places for what waits, chosen by the roster.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::ids::{PoolName, SessionId, WorkerId};
use lockgate_core::lane::{Priority, Shape};
use lockgate_core::placement::{Placement, Refusal, WaitsFor};
use lockgate_core::pools::{Routing, RoutingId};
use lockgate_ports::Seat;

use super::Edge;
use super::sessions::EdgeState;

/// Jobs of one shape that could be claimed.
pub(super) struct Want {
    pub(super) shape: Arc<Shape>,
    /// The most urgent of them.
    pub(super) urgency: Priority,
    pub(super) jobs: usize,
}

/// A free place with what is needed to dispatch to it.
pub(super) struct FreeSeat {
    pub(super) session: SessionId,
    /// Who comes back may have other topics, fewer slots, or more in its hands.
    pub(super) epoch: u64,
    pub(super) seat: Seat,
}

/// Places for jobs that want one.
pub(super) struct SeatPlan {
    /// What the choice was made under.
    pub(super) routing: RoutingId,
    pub(super) seats: Vec<FreeSeat>,
    /// Of each want, how many jobs found no place.
    pub(super) short: Vec<usize>,
}

impl Edge {
    /// Choices from now on are made under this routing.
    pub(crate) fn adopt(&self, routing: Arc<Routing>) {
        self.state.lock().roster.adopt(routing);
    }

    /// Places of one pool's workers, the least loaded first. Never more than a worker has.
    pub(super) fn plan(&self, serving: &PoolName, wants: &[Want]) -> SeatPlan {
        let mut state = self.state.lock();
        state.doubt_the_silent();
        // What is sent ahead of a free slot keeps it from what is not: only while everything that waits for it is quick.
        let EdgeState { roster, pace, .. } = &mut *state;
        let mut slow = wants.iter().filter(|want| !pace.is_quick(&want.shape.topic));
        let ahead = !slow.any(|want| roster.anyone_fits(&want.shape, serving));
        // Each want may use all of the room: whose turn it is is the claim's to say, and it keeps to the limit.
        let room = state.room_in(serving);
        let mut chosen: BTreeMap<SessionId, (Vec<usize>, u32)> = BTreeMap::new();
        let mut short = Vec::with_capacity(wants.len());
        for (at, want) in wants.iter().enumerate() {
            let mut placed = 0;
            let shape = state.preferring(&want.shape, serving);
            for (session, places) in state.roster.plan(&shape, serving, want.jobs.min(room), ahead) {
                placed += places as usize;
                if !state.sessions.contains_key(&session) {
                    state.leave_to(session);
                    continue;
                }
                let entry = chosen.entry(session).or_default();
                entry.0.push(at);
                entry.1 = entry.1.saturating_add(places);
            }
            short.push(want.jobs.saturating_sub(placed));
        }
        // Workers that were chosen for the same shapes share one list of them.
        let mut lists: BTreeMap<Vec<usize>, Arc<[Arc<Shape>]>> = BTreeMap::new();
        let mut seats = Vec::with_capacity(chosen.len());
        for (session, (fits, places)) in chosen {
            let Some(epoch) = state.sessions.get(&session).map(|session| session.epoch) else { continue };
            let free = state.roster.room(&session, ahead).min(places);
            let list = |fits: &Vec<usize>| fits.iter().map(|at| wants[*at].shape.clone()).collect();
            let shapes = lists.entry(fits).or_insert_with_key(list).clone();
            seats.push(FreeSeat { session, epoch, seat: Seat { shapes, free: free as usize } });
        }
        SeatPlan { routing: state.roster.routing().id().clone(), seats, short }
    }

    /// The pool in which a worker has a free slot.
    pub(super) fn ready_in(&self, worker: &WorkerId) -> Option<PoolName> {
        self.state.lock().roster.ready_in(worker).cloned()
    }

    /// Why a shape is placed nowhere, or where it would be.
    pub(crate) fn explain(&self, shape: &Shape) -> Placement {
        self.state.lock().roster.explain(shape)
    }

    /// Why no worker can ever take a shape as things are; none if waiting may help.
    pub(crate) fn hopeless(&self, shape: &Arc<Shape>) -> Option<Refusal> {
        self.state.lock().roster.is_hopeless(shape)
    }

    /// What the claimable jobs of each shape wait for, so many of them.
    pub(crate) fn look_over(&self, waiting: &[(Arc<Shape>, u64)]) -> Vec<WaitsFor> {
        self.state.lock().roster.look_over(waiting)
    }

    /// Whether more than `taken` slots are free for a shape and no job waited for them at the latest look, wherever their
    /// workers are attached.
    pub(crate) fn has_slot(&self, shape: &Arc<Shape>, taken: u64) -> bool {
        self.state.lock().roster.has_slot(shape, taken)
    }
}

impl EdgeState {
    /// The shape as one pool is asked for it: the worker it prefers may be in another, which is asked by itself.
    fn preferring(&self, shape: &Arc<Shape>, pool: &PoolName) -> Arc<Shape> {
        let elsewhere = |worker: &WorkerId| self.roster.ready_in(worker).is_some_and(|ready_in| ready_in != pool);
        match &shape.preferred_worker {
            Some(worker) if elsewhere(worker) => Arc::new(Shape { preferred_worker: None, ..(**shape).clone() }),
            _ => shape.clone(),
        }
    }

    /// Jobs that a pool's workers may take before its own limit is reached. Without one, as many as they have places for.
    fn room_in(&self, pool: &PoolName) -> usize {
        let max = self.roster.routing().pools.pool(pool).and_then(|pool| pool.max_concurrent);
        let Some(max) = max else { return usize::MAX };
        let own = self.sessions.values().filter(|session| session.profile.pool == *pool);
        (max as usize).saturating_sub(own.map(|session| session.taken()).sum())
    }
}
