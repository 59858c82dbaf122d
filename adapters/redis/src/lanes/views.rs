//! Reads of the lanes' state, for people and metrics.

use std::cmp::Reverse;

use lockgate_core::ids::{PoolName, TenantId};
use lockgate_core::lane::{LaneKey, Priority};
use lockgate_core::time::Timestamp;
use lockgate_ports::{Demand, LaneDepth, LimitView, TenantShare};
use serde_json::json;

use super::RedisLanes;
use super::card::LimitArg;
use super::lane_catalog::LaneCatalog;
use crate::answer::{ScriptAnswer, sense};
use crate::error::LaneRefusal;
use crate::names;
use crate::scripts::SCRIPTS;

/// Lanes or tenants in one answer.
const PAGE: usize = 2_000;

impl RedisLanes {
    pub(super) async fn demanded(&self) -> Result<Vec<Demand>, LaneRefusal> {
        let catalog = self.catalog();
        let mut answer = self.say(&catalog, &SCRIPTS.demand, "{}".to_owned(), Vec::new()).await?;
        let mut demand = sense(answer.records(|fit| {
            let (pool, shape, urgency, waiting) = (fit.text()?, fit.text()?, fit.number()?, fit.number()?);
            let urgency = *Priority::ALL.get(usize::try_from(urgency).ok()?)?;
            let waiting = usize::try_from(waiting).ok()?;
            Some(Demand { pool: pool_of(&pool), shape: catalog.shape(shape)?, urgency, waiting })
        }))?;
        demand.sort_by(|a, b| (&a.pool, &a.shape).cmp(&(&b.pool, &b.shape)));
        Ok(demand)
    }

    pub(super) async fn limits_of(&self, lane: &LaneKey) -> Result<Vec<LimitView>, LaneRefusal> {
        let catalog = self.catalog();
        let limits = catalog.pools.limits(lane);
        if limits.is_empty() {
            return Ok(Vec::new());
        }
        let body = json!({ "limits": limits.iter().map(LimitArg::new).collect::<Vec<_>>() }).to_string();
        let mut answer = self.say(&catalog, &SCRIPTS.limits, body, Vec::new()).await?;
        let mut limits = limits.into_iter();
        sense(answer.records(|view| {
            let (limit, held, again_at, full) = (limits.next()?, view.number()?, view.number()?, view.number()?);
            Some(LimitView {
                key: limit.key,
                max: limit.max,
                held: u32::try_from(held).ok()?,
                again_at: (again_at >= 0).then(|| Timestamp::from_millis(again_at)),
                full: full == 1,
            })
        }))
    }

    pub(super) async fn tenant_shares(&self, limit: usize) -> Result<Vec<TenantShare>, LaneRefusal> {
        let body = json!({ "limit": limit.min(PAGE) }).to_string();
        let mut answer = self.say(&self.catalog(), &SCRIPTS.shared, body, Vec::new()).await?;
        let mut shares = sense(answer.records(|share| {
            let (tenant, claims, entitled, oldest) = (share.text()?, share.number()?, share.text()?, share.text()?);
            Some(TenantShare {
                tenant: TenantId::from(tenant),
                claims: u64::try_from(claims).ok()?,
                entitled: entitled.parse().ok()?,
                oldest: names::read_place(&oldest).map(|key| key.due_at),
            })
        }))?;
        shares.sort_by(|a, b| (Reverse(a.claims), &a.tenant).cmp(&(Reverse(b.claims), &b.tenant)));
        Ok(shares)
    }

    pub(super) async fn claimed_by_pool(&self) -> Result<Vec<(PoolName, u64)>, LaneRefusal> {
        let mut answer = self.say(&self.catalog(), &SCRIPTS.taken, "{}".to_owned(), Vec::new()).await?;
        let mut taken = sense(answer.records(|count| {
            let (pool, jobs) = (count.text()?, count.number()?);
            Some((PoolName::from(pool), u64::try_from(jobs).ok()?))
        }))?;
        taken.sort();
        Ok(taken)
    }

    /// Page by page, so that no answer blocks the server for long.
    pub(super) async fn lane_depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LaneRefusal> {
        let catalog = self.catalog();
        let mut depths: Vec<LaneDepth> = Vec::new();
        let mut from = 0;
        while from < limit {
            let count = PAGE.min(limit - from);
            let body = json!({ "from": from, "count": count }).to_string();
            let mut answer = self.say(&catalog, &SCRIPTS.depths, body, Vec::new()).await?;
            let page = sense(answer.records(|depth| depth_of(&catalog, depth)))?;
            let full = page.len() == count;
            depths.extend(page);
            if !full {
                break;
            }
            from += count;
        }
        depths.sort_by(|a, b| (Reverse(a.waiting), &a.lane).cmp(&(Reverse(b.waiting), &b.lane)));
        Ok(depths)
    }
}

fn depth_of(catalog: &LaneCatalog, depth: &mut ScriptAnswer) -> Option<LaneDepth> {
    let (id, json, pool) = (depth.text()?, depth.text()?, depth.text()?);
    let (waiting, unclaimed, limited, head) = (depth.number()?, depth.number()?, depth.number()?, depth.text()?);
    Some(LaneDepth {
        pool: pool_of(&pool),
        lane: catalog.named(&id, &json)?.key.clone(),
        waiting: u64::try_from(waiting).ok()?,
        unclaimed: u64::try_from(unclaimed).ok()?,
        limited: limited == 1,
        oldest: names::read_place(&head),
    })
}

fn pool_of(name: &str) -> Option<PoolName> {
    (!name.is_empty()).then(|| PoolName::from(name))
}
