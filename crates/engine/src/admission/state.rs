//! How much there is, as this process knows it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{PoolName, TenantId};
use lockgate_core::lane::{Priority, Shape};
use lockgate_core::pools::PriorityShares;
use lockgate_core::quotas::{Limited, Meter, QueueSample, Quotas, Room};
use lockgate_core::time::Timestamp;
use lockgate_ports::{LaneDepth, Usage};

use super::crowds::{LimitedLanes, PoolBacklog};
use crate::edge::Edge;

/// How long what the Store says of a tenant is good for.
const FRESH: Duration = Duration::from_secs(1);
/// Tenants remembered; above it those that were not asked for lately are forgotten.
const TENANTS_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct AdmissionState {
    /// Jobs that have not ended.
    live: u64,
    /// Of all pools together.
    all: Meter,
    pools: BTreeMap<PoolName, Meter>,
    held: LimitedLanes,
    tenants: BTreeMap<TenantId, TenantUsage>,
    /// Jobs let in whose commit has not answered: whether a look at the Store has them in it, nobody knows, so they count.
    under_way: u64,
    /// By priority.
    under_way_to: BTreeMap<PoolName, [u64; 4]>,
}

#[derive(Default)]
struct TenantUsage {
    /// With what was let in since.
    has: Room,
    asked_at: Timestamp,
    under_way: Room,
}

/// What a look at the lanes found.
pub(super) struct LanesSeen {
    pub(super) served: Vec<(PoolName, u64)>,
    /// Nothing where it does not matter.
    pub(super) depths: Vec<LaneDepth>,
    pub(super) shares: PriorityShares,
}

/// What somebody wants room for.
pub(super) struct RoomRequest<'a> {
    pub(super) tenant: &'a TenantId,
    pub(super) priority: Priority,
    /// Where it will wait, if that matters; each pool once.
    pub(super) spots: Vec<Spot>,
    pub(super) more: Room,
}

/// Where a job will wait.
pub(super) struct Spot {
    pub(super) pool: PoolName,
    /// What it asks of a worker.
    pub(super) shape: Arc<Shape>,
}

/// What was let in by one call, until its commit has answered.
#[derive(Debug, Default)]
pub(super) struct LetIn {
    room: Room,
    pools: BTreeMap<PoolName, [u64; 4]>,
}

impl AdmissionState {
    pub(super) fn is_fresh(&self, tenant: &TenantId, now: Timestamp) -> bool {
        self.tenants.get(tenant).is_some_and(|known| known.asked_at <= now && now.since(known.asked_at) < FRESH)
    }

    pub(super) fn learn(&mut self, tenant: &TenantId, usage: Usage, now: Timestamp) {
        if self.tenants.len() >= TENANTS_MAX {
            self.tenants.retain(|_, known| known.under_way != Room::default() || now.since(known.asked_at) < FRESH);
        }
        let Usage { live: jobs, runs, stored_bytes, .. } = usage;
        let known = self.tenants.entry(tenant.clone()).or_default();
        known.asked_at = now;
        known.has = Room { jobs, runs, stored_bytes };
        add(&mut known.has, known.under_way);
    }

    pub(super) fn observe(&mut self, live: [u64; 4], lanes: &LanesSeen, edge: &Edge, now: Timestamp) {
        let LanesSeen { served, depths, shares } = lanes;
        self.live = live.iter().sum::<u64>() + self.under_way;
        let blank = QueueSample { shares: *shares, ..QueueSample::default() };
        self.all.observe(now, &QueueSample { waiting: live, served: served.iter().map(|(_, jobs)| jobs).sum(), ..blank });
        let look =
            |PoolBacklog { waiting, blocked, stalled }: PoolBacklog| QueueSample { waiting, blocked, stalled, ..blank };
        let queues = self.held.sort_out(depths, edge, now);
        let mut looks: BTreeMap<PoolName, QueueSample> =
            queues.into_iter().map(|(pool, queue)| (pool, look(queue))).collect();
        for (pool, jobs) in served {
            looks.entry(pool.clone()).or_insert(blank).served = *jobs;
        }
        for pool in self.under_way_to.keys() {
            looks.entry(pool.clone()).or_insert(blank);
        }
        self.pools.retain(|pool, _| looks.contains_key(pool));
        for (pool, look) in looks {
            let under_way = self.under_way_to.get(&pool).copied().unwrap_or_default();
            let meter = self.pools.entry(pool).or_default();
            meter.observe(now, &look);
            for (priority, jobs) in Priority::ALL.into_iter().zip(under_way) {
                meter.admit(now, priority, jobs);
            }
        }
    }

    /// The lanes could not be looked at: as long as nothing can be claimed, nothing that waits is on its way.
    pub(super) fn stand_still(&mut self, live: [u64; 4], now: Timestamp) {
        self.live = live.iter().sum::<u64>() + self.under_way;
        for meter in self.pools.values_mut().chain([&mut self.all]) {
            meter.stand_still(now);
        }
    }

    pub(super) fn admit(
        &mut self,
        quotas: &Quotas,
        asked: &RoomRequest<'_>,
        edge: &Edge,
        now: Timestamp,
        let_in: &mut LetIn,
    ) -> Result<(), Limited> {
        let RoomRequest { tenant, priority, ref spots, more } = *asked;
        let quota = quotas.of(tenant);
        if let Some(known) = self.tenants.get(tenant).filter(|_| quota.counts()) {
            match more.runs {
                0 => quota.admit_job(tenant, &known.has, more.stored_bytes)?,
                _ => quota.admit_run(tenant, &known.has)?,
            }
        }
        quotas.ceilings.admit(priority, self.live, &mut self.all, now)?;
        for Spot { pool, shape } in spots {
            // Those may take the slots that are free now.
            let under_way: u64 = self.under_way_to.get(pool).map_or(0, |jobs| jobs.iter().sum());
            let meter = self.pools.entry(pool.clone()).or_default();
            quotas.ceilings.admit_to(pool, priority, meter, now, || edge.ask(|edge, _| edge.has_slot(shape, under_way)))?;
        }
        for Spot { pool, .. } in spots {
            self.pools.entry(pool.clone()).or_default().admit(now, priority, 1);
            self.under_way_to.entry(pool.clone()).or_default()[priority as usize] += 1;
            let_in.pools.entry(pool.clone()).or_default()[priority as usize] += 1;
        }
        (self.live, self.under_way) = (self.live + more.jobs, self.under_way + more.jobs);
        self.count(tenant, more, let_in);
        Ok(())
    }

    fn count(&mut self, tenant: &TenantId, more: Room, let_in: &mut LetIn) {
        add(&mut let_in.room, more);
        if let Some(known) = self.tenants.get_mut(tenant) {
            add(&mut known.has, more);
            add(&mut known.under_way, more);
        }
    }

    /// The commit has answered: the next look at the Store has it, or it did not happen.
    pub(super) fn settle(&mut self, tenant: &TenantId, let_in: &LetIn) {
        self.under_way = self.under_way.saturating_sub(let_in.room.jobs);
        for (pool, jobs) in &let_in.pools {
            if let Some(under_way) = self.under_way_to.get_mut(pool) {
                for (under_way, jobs) in under_way.iter_mut().zip(jobs) {
                    *under_way = under_way.saturating_sub(*jobs);
                }
            }
        }
        self.under_way_to.retain(|_, jobs| jobs.iter().any(|jobs| *jobs > 0));
        if let Some(known) = self.tenants.get_mut(tenant) {
            let Room { jobs, runs, stored_bytes } = let_in.room;
            known.under_way.jobs = known.under_way.jobs.saturating_sub(jobs);
            known.under_way.runs = known.under_way.runs.saturating_sub(runs);
            known.under_way.stored_bytes = known.under_way.stored_bytes.saturating_sub(stored_bytes);
        }
    }
}

fn add(room: &mut Room, more: Room) {
    room.jobs += more.jobs;
    room.runs += more.runs;
    room.stored_bytes += more.stored_bytes;
}
