//! Lanes in memory: bounded windows over the Store's ready jobs.
//!
//! Each lane has its own window, so that one tenant's backlog, or a shape that fits no worker, fills only its own window.
//! The cost of a claim depends neither on the number of waiting jobs nor on the number of lanes that wait for a limit.

mod bounds;
mod catalog;
mod claim;
mod gates;
mod holding;
mod holds;
mod interned;
mod queue;
mod seats;
mod shares;
mod standing;
mod state;
mod views;
mod window;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::job::Job;
use lockgate_core::lane::LaneKey;
use parking_lot::Mutex;

pub use bounds::WindowBounds;
use state::LanesState;

use lockgate_ports::lanes::{
    Adopted, ClaimRequest, Claimed, Demand, Hold, LaneDepth, LaneLayout, Lanes, LanesAway, LimitView, Refill, RefillRequest,
    Settlement, TenantShare,
};

/// Until [`adopt`](Lanes::adopt) is called, one pool takes every topic.
#[derive(Debug)]
pub struct MemoryLanes {
    state: Mutex<LanesState>,
}

impl Default for MemoryLanes {
    fn default() -> Self {
        Self::new(WindowBounds::default())
    }
}

impl MemoryLanes {
    pub fn new(bounds: WindowBounds) -> Self {
        Self { state: Mutex::new(LanesState::new(bounds, Arc::default())) }
    }
}

#[async_trait]
impl Lanes for MemoryLanes {
    async fn adopt(&self, layout: LaneLayout, held: Vec<Hold>) -> Adopted {
        let mut state = self.state.lock();
        state.adopt(layout.pools);
        held.into_iter().for_each(|hold| state.hold(hold));
        Adopted::Anew
    }

    async fn offer(&self, jobs: Vec<Arc<Job>>) {
        let mut state = self.state.lock();
        for job in jobs {
            state.change(&job.lane(), |window, room| window.offer(job, room));
        }
    }

    async fn refill(&self, page: Refill) {
        self.state.lock().refill(page);
    }

    async fn claim(&self, request: ClaimRequest) -> Claimed {
        self.state.lock().claim(&request)
    }

    async fn settle(&self, settlements: Vec<Settlement>) {
        let mut state = self.state.lock();
        for settlement in settlements {
            state.settle(settlement);
        }
    }

    async fn demand(&self) -> Result<Vec<Demand>, LanesAway> {
        Ok(self.state.lock().demand())
    }

    async fn hold(&self, attempts: Vec<Hold>) {
        let mut state = self.state.lock();
        for hold in attempts {
            state.hold(hold);
        }
    }

    async fn release(&self, attempts: Vec<AttemptToken>) -> bool {
        self.state.lock().release(&attempts)
    }

    async fn holding(&self) -> Result<Vec<AttemptToken>, LanesAway> {
        Ok(self.state.lock().holds.tokens().cloned().collect())
    }

    async fn limits(&self, lane: &LaneKey) -> Vec<LimitView> {
        self.state.lock().limits(lane)
    }

    async fn shares(&self, limit: usize) -> Result<Vec<TenantShare>, LanesAway> {
        Ok(self.state.lock().tenant_shares(limit))
    }

    async fn claimed_total(&self) -> Result<Vec<(PoolName, u64)>, LanesAway> {
        Ok(self.state.lock().taken.iter().map(|(pool, jobs)| (pool.clone(), *jobs)).collect())
    }

    async fn refill_requests(&self) -> Vec<RefillRequest> {
        self.state.lock().refill_requests()
    }

    async fn depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LanesAway> {
        Ok(self.state.lock().depths(limit))
    }

    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>) {
        let mut state = self.state.lock();
        for (lane, count) in lanes {
            state.change(&lane, |window, _| window.restart(count));
        }
    }
}
