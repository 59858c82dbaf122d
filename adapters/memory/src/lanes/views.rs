//! Reads of the lanes' state, for people and metrics.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::lane::LaneKey;
use lockgate_core::time::Timestamp;

use super::state::{Lane, LaneStanding, LanesState};
use lockgate_ports::lanes::{Demand, LaneDepth, LimitView, TenantShare};

impl LanesState {
    pub(super) fn demand(&self) -> Vec<Demand> {
        let demand = |(fit, waiting): (&u32, &usize)| {
            let (shape, queue) = self.catalog.fit(*fit)?;
            let queue = &self.queues[queue];
            let (pool, urgency) = (queue.pool.clone(), queue.urgency(*fit)?);
            Some(Demand { pool, shape: Arc::clone(shape), urgency, waiting: *waiting })
        };
        self.demand.iter().filter_map(demand).collect()
    }

    pub(super) fn limits(&self, lane: &LaneKey) -> Vec<LimitView> {
        self.pools.limits(lane).iter().map(|limit| self.gates.view(limit, self.now)).collect()
    }

    pub(super) fn depths(&self, limit: usize) -> Vec<LaneDepth> {
        let lanes = self.lanes.values().map(|lane| (lane.window.depth(), lane));
        let mut lanes: Vec<_> = lanes.filter(|(waiting, _)| *waiting > 0).collect();
        lanes.sort_by_key(|(waiting, lane)| (Reverse(*waiting), &lane.key));
        let depth = |(waiting, lane): (u64, &Lane)| LaneDepth {
            pool: self.queues[lane.queue].pool.clone(),
            lane: lane.key.clone(),
            waiting,
            unclaimed: lane.window.unclaimed(),
            limited: matches!(lane.standing, LaneStanding::Waiting(_)),
            oldest: lane.window.head(),
        };
        lanes.into_iter().take(limit).map(depth).collect()
    }

    pub(super) fn tenant_shares(&self, limit: usize) -> Vec<TenantShare> {
        let mut shares: Vec<_> = self.shares.iter().collect();
        shares.sort_by_key(|(tenant, claims, _)| (Reverse(*claims), self.catalog.tenant(*tenant)));
        shares.truncate(limit);
        let oldest = self.oldest();
        let named = shares.into_iter().filter_map(|(id, claims, entitled)| {
            let tenant = self.catalog.tenant(id)?.clone();
            Some(TenantShare { tenant, claims, entitled, oldest: oldest.get(&id).copied() })
        });
        named.collect()
    }

    /// The oldest ready time in memory, by tenant.
    fn oldest(&self) -> BTreeMap<u32, Timestamp> {
        let mut oldest = BTreeMap::new();
        for (at, lane) in &self.lanes {
            if let Some(head) = lane.window.head() {
                let known = oldest.entry(at.tenant).or_insert(head.due_at);
                *known = head.due_at.min(*known);
            }
        }
        oldest
    }
}
