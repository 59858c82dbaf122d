//! Ready queues in memory: bounded windows over the Store.
//!
//! Pool, then priority, tenant and shape, each with its own window, so one tenant's backlog or a shape that fits nobody
//! fills no window but its own. The cost of a claim does not depend on how much waits.

mod bounds;
mod interned;
mod pool;
mod seats;
mod window;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::PoolName;
use lockgate_core::job::Job;
use lockgate_core::lane::LaneKey;
use parking_lot::Mutex;

pub use bounds::Bounds;
use pool::{Ledger, Pool};

use crate::lanes::{Claim, ClaimRequest, Hungry, LaneDepth, Lanes, Page, Settlement, ShapeSet};

#[derive(Debug, Default)]
pub struct MemoryLanes {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pools: BTreeMap<PoolName, Pool>,
    ledger: Ledger,
    tickets: u64,
}

impl MemoryLanes {
    pub fn new(bounds: Bounds) -> Self {
        let ledger = Ledger { bounds, ..Ledger::default() };
        Self { state: Mutex::new(State { ledger, ..State::default() }) }
    }
}

impl State {
    /// The pool that a lane belongs to, made if need be.
    fn pool(&mut self, name: &PoolName) -> (&mut Pool, &mut Ledger) {
        (self.pools.entry(name.clone()).or_default(), &mut self.ledger)
    }

    fn settle(&mut self, settlement: Settlement) {
        match settlement {
            Settlement::Gone { lane, key } => {
                if let Some(pool) = self.pools.get_mut(&lane.pool) {
                    pool.change_known(&lane, &mut self.ledger, |window, _| window.gone(key));
                }
            }
            Settlement::Returned { lane, key, job } => {
                let (pool, ledger) = self.pool(&lane.pool);
                pool.change(&lane, ledger, |window, room| window.give_back(key, job, room));
            }
        }
    }
}

#[async_trait]
impl Lanes for MemoryLanes {
    async fn offer(&self, jobs: Vec<Arc<Job>>) {
        let mut state = self.state.lock();
        for job in jobs {
            let lane = job.lane();
            let (pool, ledger) = state.pool(&lane.pool);
            pool.change(&lane, ledger, |window, room| window.offer(job, room));
        }
    }

    async fn feed(&self, page: Page) {
        let mut state = self.state.lock();
        let state = &mut *state;
        if let Some(pool) = state.pools.get_mut(&page.asked.lane.pool) {
            pool.feed(page, &mut state.ledger);
        }
    }

    async fn claim(&self, request: ClaimRequest) -> Vec<Claim> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let pool = state.pools.get_mut(&request.pool);
        pool.map_or_else(Vec::new, |pool| pool.claim(&request.seats, request.limit, &mut state.ledger))
    }

    async fn settle(&self, settlements: Vec<Settlement>) {
        let mut state = self.state.lock();
        for settlement in settlements {
            state.settle(settlement);
        }
    }

    async fn shapes(&self, pool: &PoolName) -> ShapeSet {
        self.state.lock().pools.get_mut(pool).map_or_else(ShapeSet::default, Pool::shapes)
    }

    async fn hungry(&self) -> Vec<Hungry> {
        let mut state = self.state.lock();
        let State { pools, ledger, tickets } = &mut *state;
        pools.values_mut().flat_map(|pool| pool.hungry(tickets, ledger)).collect()
    }

    async fn depths(&self, limit: usize) -> Vec<LaneDepth> {
        let state = self.state.lock();
        let mut depths: Vec<_> = state.pools.values().flat_map(Pool::depths).filter(|depth| depth.waiting > 0).collect();
        depths.sort_by_key(|depth| (Reverse(depth.waiting), depth.lane));
        depths.iter().take(limit).map(pool::LaneDepthRef::to_owned).collect()
    }

    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>) {
        let mut state = self.state.lock();
        for (lane, count) in lanes {
            let (pool, ledger) = state.pool(&lane.pool);
            pool.change(&lane, ledger, |window, _| window.restart(count));
        }
    }
}
