//! All lanes, and the data that changes with a lane: its position in the queue, its limits, the totals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::ids::PoolName;
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::pools::Pools;
use lockgate_core::time::Timestamp;

use super::bounds::{WindowBounds, WindowRoom, WindowTotals};
use super::catalog::{Catalog, LaneAddress};
use super::gates::{GateId, GatePassage, Gates, LineGroup};
use super::holds::Holds;
use super::queue::PoolQueue;
use super::shares::TierShares;
use super::window::LaneWindow;
use lockgate_ports::lanes::{Refill, RefillRequest};

/// Empty lanes kept for the next job of their kind; above this number all of them are dropped.
const IDLE_LANES_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct LanesState {
    pub(super) pools: Arc<Pools>,
    pub(super) catalog: Catalog,
    pub(super) lanes: BTreeMap<LaneAddress, Lane>,
    pub(super) queues: Vec<PoolQueue>,
    queue_of: BTreeMap<PoolName, usize>,
    pub(super) gates: Gates,
    pub(super) holds: Holds,
    pub(super) shares: TierShares,
    /// Jobs claimed from each pool's lanes.
    pub(super) taken: BTreeMap<PoolName, u64>,
    /// Claimable jobs in memory, by requirements. Contains no zero.
    pub(super) demand: BTreeMap<u32, usize>,
    pub(super) ledger: WindowBudget,
    /// Lanes whose window ran low when last changed.
    hungry: BTreeSet<LaneAddress>,
    idle: usize,
    /// Numbers refill requests and claims.
    tickets: u64,
    /// The time of the latest claim.
    pub(super) now: Timestamp,
    /// Limits whose room or line changed since they were last settled.
    pub(super) stirred: BTreeSet<GateId>,
    /// How often a lane became claimable.
    pub(super) openings: u64,
    /// Counts arrivals and turns of lanes, for their order.
    pub(super) arrivals: u64,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) key: LaneKey,
    pub(super) window: LaneWindow,
    pub(super) fit: u32,
    pub(super) queue: usize,
    /// The tenant's weight.
    pub(super) weight: u32,
    /// The limits its jobs pass.
    pub(super) passages: Vec<GatePassage>,
    pub(super) standing: LaneStanding,
    /// Its position among its tenant's lanes in a line: when it was last served, or got jobs after it had none.
    pub(super) since: u64,
    /// How many of its jobs are counted in the demand.
    pub(super) demanded: usize,
}

/// Where a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneStanding {
    /// It has no job in memory.
    Empty,
    /// In its queue, with this head.
    Open(ReadyKey),
    /// In the line of this limit.
    Waiting(GateId),
}

/// What all windows hold, and may hold.
#[derive(Debug, Default)]
pub(super) struct WindowBudget {
    pub(super) bounds: WindowBounds,
    pub(super) total: WindowTotals,
}

impl WindowBudget {
    fn room(&self, own: WindowTotals) -> WindowRoom {
        self.bounds.room(self.total, own)
    }
}

impl Lane {
    pub(super) fn group(&self, passage: GatePassage) -> LineGroup {
        LineGroup { max: passage.max, priority: self.key.priority, fit: self.fit }
    }
}

impl LanesState {
    pub(super) fn new(bounds: WindowBounds, pools: Arc<Pools>) -> Self {
        let shares = pools.fairness().priorities;
        let names: Vec<PoolName> = pools.pools().map(|pool| pool.name.clone()).collect();
        let mut queues: Vec<PoolQueue> = names.iter().map(|name| PoolQueue::new(Some(name.clone()), shares)).collect();
        queues.push(PoolQueue::new(None, shares));
        Self {
            pools,
            catalog: Catalog::default(),
            lanes: BTreeMap::new(),
            queues,
            queue_of: names.into_iter().zip(0..).collect(),
            gates: Gates::default(),
            holds: Holds::default(),
            shares: TierShares::default(),
            taken: BTreeMap::new(),
            demand: BTreeMap::new(),
            ledger: WindowBudget { bounds, total: WindowTotals::default() },
            hungry: BTreeSet::new(),
            idle: 0,
            tickets: 0,
            now: Timestamp::ZERO,
            stirred: BTreeSet::new(),
            openings: 0,
            arrivals: 0,
        }
    }

    /// Forgets all waiting jobs, and counts holds under the new limits.
    pub(super) fn adopt(&mut self, pools: Arc<Pools>) {
        let fresh = Self::new(self.ledger.bounds, pools);
        let before = std::mem::replace(self, fresh);
        // Neither a late answer to an ask of before nor the end of a claim of before must pass for one of now.
        self.tickets = before.tickets;
        self.now = before.now;
        self.gates = before.gates.rates_only(before.now);
        self.count_again(before.holds);
        self.settle_gates();
    }

    pub(super) fn queue_of(&self, pool: &PoolName) -> Option<usize> {
        self.queue_of.get(pool).copied()
    }

    /// Changes the window of a lane, creating the lane if necessary.
    pub(super) fn change(&mut self, key: &LaneKey, op: impl FnOnce(&mut LaneWindow, WindowRoom)) {
        let at = self.place(key);
        self.change_at(at, op);
        self.settle_gates();
    }

    /// Changes the window of a lane, if the lane exists.
    pub(super) fn change_known(&mut self, key: &LaneKey, op: impl FnOnce(&mut LaneWindow, WindowRoom)) {
        if let Some(at) = self.find(key) {
            self.change_at(at, op);
            self.settle_gates();
        }
    }

    pub(super) fn refill(&mut self, page: Refill) {
        let Refill { asked, jobs } = page;
        self.change_known(&asked.lane, |window, room| window.refill(asked.ticket, asked.limit, jobs, room));
    }

    pub(super) fn refill_requests(&mut self) -> Vec<RefillRequest> {
        let mut asks = Vec::with_capacity(self.hungry.len());
        for at in &self.hungry {
            let Some(lane) = self.lanes.get_mut(at) else { continue };
            let room = self.ledger.room(lane.window.held());
            if !lane.window.is_hungry(room) {
                continue;
            }
            self.tickets += 1;
            if let Some((after, limit)) = lane.window.ask(self.tickets, room) {
                asks.push(RefillRequest { lane: lane.key.clone(), after, limit, ticket: self.tickets });
            }
        }
        asks
    }

    /// A number that was not used before.
    pub(super) fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    pub(super) fn find(&self, key: &LaneKey) -> Option<LaneAddress> {
        self.catalog.find(key).filter(|at| self.lanes.contains_key(at))
    }

    fn place(&mut self, key: &LaneKey) -> LaneAddress {
        let Self { pools, queue_of, queues, .. } = self;
        let nowhere = queues.len() - 1;
        let queue = |shape: &_| {
            let route = pools.route(shape).ok();
            route.and_then(|route| queue_of.get(route.first()).copied()).unwrap_or(nowhere)
        };
        let at = self.catalog.place(key, queue);
        if !self.lanes.contains_key(&at) {
            let lane = self.lane(key, at);
            self.lanes.insert(at, lane);
            self.idle += 1;
        }
        at
    }

    fn lane(&mut self, key: &LaneKey, at: LaneAddress) -> Lane {
        let (fit, queue) = self.catalog.kind(at);
        // Jobs that no pool takes are never claimed, so their lane needs no limits.
        let limits = if self.queues[queue].pool.is_some() { self.pools.limits(key) } else { Vec::new() };
        Lane {
            key: key.clone(),
            window: LaneWindow::default(),
            fit,
            queue,
            weight: self.pools.fairness().tenants.get(&key.tenant).copied().unwrap_or(1),
            passages: limits.iter().map(|limit| self.gates.join(limit)).collect(),
            standing: LaneStanding::Empty,
            since: 0,
            demanded: 0,
        }
    }

    pub(super) fn change_at(&mut self, at: LaneAddress, op: impl FnOnce(&mut LaneWindow, WindowRoom)) {
        let Some(lane) = self.lanes.get_mut(&at) else { return };
        let window = &mut lane.window;
        let (held, was_idle) = (window.held(), window.is_idle());
        op(window, self.ledger.room(held));
        let now_held = window.held();
        self.ledger.total.adjust(held, now_held);
        let is_idle = window.is_idle();
        if window.is_hungry(self.ledger.room(now_held)) {
            self.hungry.insert(at);
        } else if !self.hungry.is_empty() {
            self.hungry.remove(&at);
        }
        self.follow(at);
        if was_idle != is_idle {
            self.idle = if is_idle { self.idle + 1 } else { self.idle - 1 };
            if self.idle > IDLE_LANES_MAX.max(self.lanes.len() / 2) {
                self.sweep();
            }
        }
    }

    /// Drops idle lanes, and the names and limits that only they had.
    fn sweep(&mut self) {
        let (gates, now) = (&mut self.gates, self.now);
        self.lanes.retain(|_, lane| {
            let keep = !lane.window.is_idle();
            if !keep {
                lane.passages.iter().for_each(|passage| gates.part(passage.gate, now));
            }
            keep
        });
        self.idle = 0;
        let tenants = self.catalog.retain(self.lanes.keys());
        self.shares.retain(&tenants);
    }
}
