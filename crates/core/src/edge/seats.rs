//! Free places for what waits, chosen by the roster.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{EdgeState, Moment};
use crate::ids::{PoolName, SessionId, WorkerId};
use crate::lane::{Priority, Shape};
use crate::placement::{Placement, Refusal, WaitsFor};
use crate::pools::RoutingId;

/// Jobs of one shape that could be claimed.
pub struct Want {
    pub shape: Arc<Shape>,
    /// The most urgent of them.
    pub urgency: Priority,
    pub jobs: usize,
}

/// A free place with what is needed to dispatch to it.
pub struct FreeSeat {
    pub session: SessionId,
    /// A worker that comes back may have other topics, fewer slots, or more in its hands.
    pub epoch: u64,
    /// The shapes that it was chosen for.
    pub shapes: Arc<[Arc<Shape>]>,
    pub free: usize,
}

/// Places for jobs that want one.
pub struct SeatPlan {
    /// What the choice was made under.
    pub routing: RoutingId,
    pub seats: Vec<FreeSeat>,
    /// Of each want, how many jobs found no place.
    pub short: Vec<usize>,
}

impl EdgeState {
    /// Places of one pool's workers, the least loaded first. Never more than a worker has.
    pub fn plan(&mut self, serving: &PoolName, wants: &[Want], now: Moment) -> SeatPlan {
        self.doubt_the_silent(now);
        // What is sent ahead of a free slot keeps it from what is not: only while everything that waits for it is quick.
        let Self { roster, pace, .. } = self;
        let mut slow = wants.iter().filter(|want| !pace.is_quick(&want.shape.topic));
        let ahead = !slow.any(|want| roster.anyone_fits(&want.shape, serving));
        // Each want may use all of the room: whose turn it is is the claim's to say, and it keeps to the limit.
        let room = self.room_in(serving);
        let mut chosen: BTreeMap<SessionId, (Vec<usize>, u32)> = BTreeMap::new();
        let mut short = Vec::with_capacity(wants.len());
        for (at, want) in wants.iter().enumerate() {
            let mut placed = 0;
            let shape = self.preferring(&want.shape, serving);
            for (session, places) in self.roster.plan(&shape, serving, want.jobs.min(room), ahead) {
                placed += places as usize;
                if !self.sessions.contains_key(&session) {
                    self.leave_to(session, now);
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
            let Some(epoch) = self.sessions.get(&session).map(|session| session.epoch) else { continue };
            let free = self.roster.room(&session, ahead).min(places);
            let list = |fits: &Vec<usize>| fits.iter().map(|at| wants[*at].shape.clone()).collect();
            let shapes = lists.entry(fits).or_insert_with_key(list).clone();
            seats.push(FreeSeat { session, epoch, shapes, free: free as usize });
        }
        SeatPlan { routing: self.roster.routing().id().clone(), seats, short }
    }

    /// The pool in which a worker has a free slot.
    pub fn ready_in(&self, worker: &WorkerId) -> Option<PoolName> {
        self.roster.ready_in(worker).cloned()
    }

    /// Why a shape is placed nowhere, or where it would be.
    pub fn explain(&self, shape: &Shape) -> Placement {
        self.roster.explain(shape)
    }

    /// Why no worker can ever take a shape as things are; none if waiting may help.
    pub fn hopeless(&mut self, shape: &Arc<Shape>) -> Option<Refusal> {
        self.roster.is_hopeless(shape)
    }

    /// What the claimable jobs of each shape wait for, so many of them.
    pub fn look_over(&mut self, waiting: &[(Arc<Shape>, u64)]) -> Vec<WaitsFor> {
        self.roster.look_over(waiting)
    }

    /// Whether more than `taken` slots are free for a shape and no job waited for them at the latest look, wherever their
    /// workers are attached.
    pub fn has_slot(&mut self, shape: &Arc<Shape>, taken: u64) -> bool {
        self.roster.has_slot(shape, taken)
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
