//! Remembers the routes and indexes of shapes that were planned lately.

use std::sync::Arc;

use super::Roster;
use super::candidate_index::{IndexId, Requirements};
use super::gate::{PoolGate, gates};
use crate::ids::PoolName;
use crate::lane::Shape;
use crate::pools::{Closed, DispatchMode, Pool, Unrouted};
use crate::worker::serves;

/// Bounds of the memory. Beyond them the least recently used shapes are forgotten and computed anew when they come back.
/// Lower: more of these computations. Higher: more memory, and more indexes to update at every change of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) shapes: usize,
    /// Entries of workers in indexes, about 100 bytes each.
    pub(super) seats: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { shapes: 4_096, seats: 1 << 21 }
    }
}

/// The remembered route of a shape.
#[derive(Debug)]
pub(super) struct Outlook {
    asked: u64,
    pub(super) way: Result<Way, Unrouted>,
}

#[derive(Debug)]
pub(super) struct Way {
    /// The open pools, the first choice first.
    pub(super) stops: Vec<Stop>,
    /// The route ends at a paused pool: the shape's jobs may wait for it.
    pub(super) paused: bool,
}

#[derive(Debug)]
pub(super) struct Stop {
    pub(super) pool: PoolName,
    pub(super) dispatch: DispatchMode,
    pub(super) bench: IndexId,
}

impl<K: Ord + Clone> Roster<K> {
    /// Reads the remembered route of a shape, computing it if necessary.
    pub(super) fn ask<R>(&mut self, shape: &Arc<Shape>, read: impl FnOnce(&Outlook) -> R) -> R {
        self.asked += 1;
        if let Some(outlook) = self.shapes.get_mut(shape) {
            outlook.asked = self.asked;
            return read(outlook);
        }
        let outlook = Outlook { asked: self.asked, way: self.look(shape) };
        let answer = read(&outlook);
        self.shapes.insert(shape.clone(), outlook);
        self.forget_excess();
        answer
    }

    fn look(&mut self, shape: &Shape) -> Result<Way, Unrouted> {
        let routing = self.routing.clone();
        let route = routing.pools.route(shape)?;
        let mut way = Way { stops: Vec::new(), paused: false };
        for (pool, gate) in gates(&routing, &route) {
            way.paused |= gate == PoolGate::Closed(Closed::Paused);
            if gate == PoolGate::Open {
                let bench = self.bench(shape, pool);
                way.stops.push(Stop { pool: pool.name.clone(), dispatch: pool.dispatch, bench });
            }
        }
        Ok(way)
    }

    /// The index for the shape in a pool. A new index is filled from the workers that serve the topic; no other worker is
    /// looked at.
    fn bench(&mut self, shape: &Shape, pool: &Pool) -> IndexId {
        let crew = self.crews.get(&pool.name);
        let offers = crew.map(|crew| crew.offers_of(&shape.topic)).unwrap_or_default();
        let need = Requirements::of(shape, pool, offers);
        if let Some(bench) = self.benches.share(&need) {
            return bench;
        }
        let (id, mut stands) = (self.benches.next_id(), Vec::new());
        for slot in crew.into_iter().flat_map(|crew| crew.members_of(&need.offers)) {
            let Some(worker) = self.workers.get_mut(slot) else { continue };
            if need.is_met(&worker.candidate.profile, Some(pool)) {
                worker.benches.push(id);
                stands.push(worker.stand.clone());
            }
        }
        self.benches.open(need, &stands)
    }

    /// Forgets the shapes that workers with these topics would serve in the pool. A list of topics that no worker had before
    /// distinguishes topics whose shapes shared an index.
    pub(super) fn forget_served(&mut self, pool: &PoolName, topics: &[Arc<str>]) {
        let benches = &mut self.benches;
        self.shapes.retain(|shape, outlook| {
            let stops = outlook.way.as_ref().map_or(&[][..], |way| &way.stops);
            let concerned = stops.iter().any(|stop| stop.pool == *pool) && serves(topics, &shape.topic);
            if concerned {
                stops.iter().for_each(|stop| benches.release(stop.bench));
            }
            !concerned
        });
    }

    /// Forgets a quarter of the shapes at once, so that many new shapes share the cost of sorting. The shape used last
    /// stays, because the caller is about to use the answer.
    pub(super) fn forget_excess(&mut self) {
        let Bounds { shapes, seats } = self.bounds;
        if self.shapes.len() <= shapes && self.benches.seats() <= seats {
            return;
        }
        let mut oldest: Vec<_> = self.shapes.iter().map(|(shape, outlook)| (outlook.asked, shape.clone())).collect();
        oldest.sort_unstable_by_key(|(asked, _)| *asked);
        oldest.pop();
        for (_, shape) in oldest {
            if self.shapes.len() <= shapes / 4 * 3 && self.benches.seats() <= seats / 4 * 3 {
                break;
            }
            if let Some(Outlook { way: Ok(way), .. }) = self.shapes.remove(&shape) {
                way.stops.iter().for_each(|stop| self.benches.release(stop.bench));
            }
        }
    }
}
