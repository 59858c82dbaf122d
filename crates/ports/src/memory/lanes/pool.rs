//! The lanes of one pool, and whose turn it is among them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::ids::TenantId;
use lockgate_core::lane::{LaneKey, Priority, Shape};
use lockgate_core::turns::{PriorityTurns, Ring};

use super::bounds::{Bounds, Held, Room};
use super::interned::Interned;
use super::seats::Seats;
use super::window::Window;
use crate::lanes::{Claim, Hungry, LaneDepth, Page, Seat, ShapeSet};

/// Empty lanes kept for the next job of their kind; above it all of them are dropped.
const IDLE_LANES_MAX: usize = 1024;

/// A lane's place in its pool: priority, tenant, shape.
type Address = (Priority, u32, u32);

#[derive(Debug, Default)]
pub(super) struct Pool {
    tenants: Interned<TenantId>,
    shapes: Interned<Arc<Shape>>,
    lanes: BTreeMap<Address, Lane>,
    turns: PriorityTurns,
    /// Tenants with claimable jobs, by priority; the kinds are shapes.
    rings: [Ring<u32, u32>; 4],
    /// Lanes that were hungry when they were last touched.
    hungry: BTreeSet<Address>,
    idle: usize,
    generation: u64,
    /// The answer to `shapes`, until it changes.
    shape_set: Option<ShapeSet>,
}

#[derive(Debug)]
struct Lane {
    key: LaneKey,
    window: Window,
}

/// What all windows of all pools hold, and may hold.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) bounds: Bounds,
    pub(super) total: Held,
}

impl Ledger {
    fn room(&self, own: Held) -> Room {
        self.bounds.room(self.total, own)
    }
}

impl Pool {
    /// Changes the window of a lane, which is made if need be.
    pub(super) fn change(&mut self, key: &LaneKey, ledger: &mut Ledger, op: impl FnOnce(&mut Window, Room)) {
        let at = self.place(key);
        self.change_at(at, ledger, op);
    }

    /// Changes the window of a lane, if there is one.
    pub(super) fn change_known(&mut self, key: &LaneKey, ledger: &mut Ledger, op: impl FnOnce(&mut Window, Room)) {
        if let Some(at) = self.find(key) {
            self.change_at(at, ledger, op);
        }
    }

    pub(super) fn feed(&mut self, page: Page, ledger: &mut Ledger) {
        let Page { asked, jobs } = page;
        self.change_known(&asked.lane, ledger, |window, room| window.feed(asked.ticket, asked.limit, jobs, room));
    }

    /// Turns go to priorities first, then to tenants; a tenant's turn takes its oldest job that some seat fits.
    pub(super) fn claim(&mut self, seats: &[Seat], limit: usize, ledger: &mut Ledger) -> Vec<Claim> {
        let mut seats = Seats::new(seats, &self.shapes);
        let mut claims = Vec::with_capacity(seats.free().min(ledger.total.jobs).min(limit));
        let mut wanted = Priority::ALL.map(|p| self.wanted(p, &seats));
        let mut heads = Priority::ALL.map(|p| self.head(p, &wanted));
        while claims.len() < limit
            && let Some(priority) = self.turns.take(|p| heads[p as usize].is_some())
        {
            let Some(tenant) = heads[priority as usize] else { break };
            let Some((claim, closed)) = self.claim_of(priority, tenant, &mut seats, ledger) else { break };
            claims.push(claim);
            if closed {
                wanted = Priority::ALL.map(|p| self.wanted(p, &seats));
                heads = Priority::ALL.map(|p| self.head(p, &wanted));
            } else {
                heads[priority as usize] = self.head(priority, &wanted);
            }
        }
        claims
    }

    pub(super) fn shapes(&mut self) -> ShapeSet {
        let generation = self.generation;
        let shapes = &self.shapes;
        self.shape_set.get_or_insert_with(|| ShapeSet { generation, shapes: shapes.iter().cloned().collect() }).clone()
    }

    pub(super) fn hungry(&mut self, tickets: &mut u64, ledger: &Ledger) -> Vec<Hungry> {
        let mut asks = Vec::with_capacity(self.hungry.len());
        for at in &self.hungry {
            let Some(lane) = self.lanes.get_mut(at) else { continue };
            let room = ledger.room(lane.window.held());
            if !lane.window.is_hungry(room) {
                continue;
            }
            *tickets += 1;
            if let Some((after, limit)) = lane.window.ask(*tickets, room) {
                asks.push(Hungry { lane: lane.key.clone(), after, limit, ticket: *tickets });
            }
        }
        asks
    }

    pub(super) fn depths(&self) -> impl Iterator<Item = LaneDepthRef<'_>> {
        self.lanes.values().filter(|lane| !lane.window.is_idle()).map(|lane| LaneDepthRef {
            waiting: lane.window.depth(),
            lane: &lane.key,
            window: &lane.window,
        })
    }

    fn find(&self, key: &LaneKey) -> Option<Address> {
        let at = (key.priority, self.tenants.find(&key.tenant)?, self.shapes.find(&key.shape)?);
        self.lanes.contains_key(&at).then_some(at)
    }

    fn place(&mut self, key: &LaneKey) -> Address {
        let (tenant, _) = self.tenants.intern(&key.tenant);
        let (shape, new_shape) = self.shapes.intern(&key.shape);
        if new_shape {
            self.shapes_changed();
        }
        let at = (key.priority, tenant, shape);
        self.lanes.entry(at).or_insert_with(|| {
            self.idle += 1;
            Lane { key: key.clone(), window: Window::default() }
        });
        at
    }

    fn change_at(&mut self, at: Address, ledger: &mut Ledger, op: impl FnOnce(&mut Window, Room)) {
        let Some(lane) = self.lanes.get_mut(&at) else { return };
        let window = &mut lane.window;
        let (held, was_idle, had_head) = (window.held(), window.is_idle(), window.head().is_some());
        op(window, ledger.room(held));
        let now_held = window.held();
        ledger.total.adjust(held, now_held);
        let (is_idle, has_head) = (window.is_idle(), window.head().is_some());
        let is_hungry = window.is_hungry(ledger.room(now_held));
        let (priority, tenant, shape) = at;
        let ring = &mut self.rings[priority as usize];
        match (had_head, has_head) {
            (false, true) => ring.join(tenant, shape),
            (true, false) => ring.leave(tenant, shape),
            _ => {}
        }
        if is_hungry {
            self.hungry.insert(at);
        } else if !self.hungry.is_empty() {
            self.hungry.remove(&at);
        }
        if was_idle != is_idle {
            self.idle = if is_idle { self.idle + 1 } else { self.idle - 1 };
            if self.idle > IDLE_LANES_MAX.max(self.lanes.len() / 2) {
                self.sweep();
            }
        }
    }

    /// Drops idle lanes, and the tenants and shapes that only they had.
    fn sweep(&mut self) {
        self.lanes.retain(|_, lane| !lane.window.is_idle());
        self.idle = 0;
        let tenants: BTreeSet<u32> = self.lanes.keys().map(|(_, tenant, _)| *tenant).collect();
        let shapes: BTreeSet<u32> = self.lanes.keys().map(|(_, _, shape)| *shape).collect();
        self.tenants.retain(|id| tenants.contains(&id));
        if self.shapes.retain(|id| shapes.contains(&id)) > 0 {
            self.shapes_changed();
        }
    }

    fn shapes_changed(&mut self) {
        self.generation += 1;
        self.shape_set = None;
    }

    /// Shapes that some seat has a place for and some tenant has jobs of.
    fn wanted(&self, priority: Priority, seats: &Seats) -> Vec<u32> {
        seats.shapes().filter(|shape| self.rings[priority as usize].has(*shape)).collect()
    }

    fn head(&self, priority: Priority, wanted: &[Vec<u32>; 4]) -> Option<u32> {
        self.rings[priority as usize].first(wanted[priority as usize].iter().copied())
    }

    /// The tenant's oldest job that some seat fits, and whether a shape has no seat left now.
    fn claim_of(
        &mut self,
        priority: Priority,
        tenant: u32,
        seats: &mut Seats,
        ledger: &mut Ledger,
    ) -> Option<(Claim, bool)> {
        let shapes = self.rings[priority as usize].kinds_of(tenant).iter().filter(|shape| seats.fits(**shape));
        let heads = shapes.filter_map(|shape| {
            let at = (priority, tenant, *shape);
            Some((self.lanes.get(&at)?.window.head()?, at))
        });
        let (_, at) = heads.min()?;
        let (seat, closed) = seats.take(at.2)?;
        let lane = self.lanes.get(&at)?.key.clone();
        let mut taken = None;
        self.change_at(at, ledger, |window, _| taken = window.take());
        self.rings[priority as usize].served(tenant);
        let taken = taken?;
        Some((Claim { seat, job_id: taken.job_id, lane, key: taken.key, job: taken.job }, closed))
    }
}

/// A lane's depth before it is known whether anybody wants to see it.
pub(super) struct LaneDepthRef<'a> {
    pub(super) waiting: u64,
    pub(super) lane: &'a LaneKey,
    window: &'a Window,
}

impl LaneDepthRef<'_> {
    pub(super) fn to_owned(&self) -> LaneDepth {
        LaneDepth { lane: self.lane.clone(), waiting: self.waiting, oldest: self.window.head() }
    }
}
