//! Lanes with a bug, if one is planted.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::job::Job;
use lockgate_core::lane::LaneKey;
use lockgate_core::pools::Pools;
use lockgate_ports::{
    Adopted, ClaimRequest, Claimed, Condition, Demand, Hold, LaneDepth, LaneLayout, Lanes, LanesAway, LimitView, Refill,
    RefillRequest, Settlement, TenantShare,
};

use super::{Bug, Planted};

pub(crate) struct PlantedLanes {
    pub(crate) lanes: Arc<dyn Lanes>,
    pub(crate) planted: Arc<Planted>,
}

impl PlantedLanes {
    fn noticed(&self, jobs: Vec<Arc<Job>>) -> Vec<Arc<Job>> {
        jobs.into_iter().filter(|job| !self.planted.overlooks(job)).collect()
    }
}

#[async_trait]
impl Lanes for PlantedLanes {
    async fn adopt(&self, mut layout: LaneLayout, held: Vec<Hold>) -> Adopted {
        if self.planted.is(Bug::LimitsIgnored) {
            layout.pools = Arc::new(Pools::default());
        }
        self.lanes.adopt(layout, held).await
    }

    async fn condition(&self) -> Condition {
        self.lanes.condition().await
    }

    async fn offer(&self, jobs: Vec<Arc<Job>>) {
        self.lanes.offer(self.noticed(jobs)).await;
    }

    async fn refill(&self, page: Refill) {
        let Refill { asked, jobs } = page;
        self.lanes.refill(Refill { asked, jobs: self.noticed(jobs) }).await;
    }

    async fn claim(&self, request: ClaimRequest) -> Claimed {
        let seats: Vec<usize> = request.seats.iter().map(|seat| seat.free).collect();
        self.planted.claims(&seats, self.lanes.claim(request).await)
    }

    async fn settle(&self, settlements: Vec<Settlement>) {
        self.lanes.settle(settlements).await;
    }

    async fn demand(&self) -> Result<Vec<Demand>, LanesAway> {
        self.lanes.demand().await
    }

    async fn hold(&self, attempts: Vec<Hold>) {
        self.lanes.hold(attempts).await;
    }

    async fn release(&self, attempts: Vec<AttemptToken>) -> bool {
        !self.planted.is(Bug::LimitsNeverFreed) && self.lanes.release(attempts).await
    }

    async fn holding(&self) -> Result<Vec<AttemptToken>, LanesAway> {
        self.lanes.holding().await
    }

    async fn limits(&self, lane: &LaneKey) -> Vec<LimitView> {
        self.lanes.limits(lane).await
    }

    async fn shares(&self, limit: usize) -> Result<Vec<TenantShare>, LanesAway> {
        self.lanes.shares(limit).await
    }

    async fn claimed_total(&self) -> Result<Vec<(PoolName, u64)>, LanesAway> {
        self.lanes.claimed_total().await
    }

    async fn refill_requests(&self) -> Vec<RefillRequest> {
        self.lanes.refill_requests().await
    }

    async fn depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LanesAway> {
        self.lanes.depths(limit).await
    }

    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>) {
        self.lanes.rebuild(lanes).await;
    }
}
