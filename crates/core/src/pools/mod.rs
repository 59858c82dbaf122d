//! Which pools serve which topics, and under which limits.
//!
//! A route is a function of the configuration and a job's shape, and of nothing else. So nothing about it is stored with a
//! job: a new configuration needs no rewrite of what waits, only a new look at it.

mod builtin;
mod keys;
mod limit;
mod load;
mod route;
mod states;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use builtin::BUILTIN_DEFAULT;
pub use limit::{Limit, LimitRule, Per};
pub use route::{Route, Unrouted};
pub use states::{ALL_OPEN, Closed, PoolStates, Routing, RoutingId};

use crate::config::TopicMap;
use crate::ids::{PoolName, TenantId};

/// The pool that takes every topic when no pools are configured.
pub const DEFAULT_POOL: &str = "default";

/// More at once than any installation runs; a number above it is a typing error.
const CONCURRENT_MAX: u32 = 1_000_000;
/// Most turns in a round. The others wait for so many claims, so a larger weight is better said with `strict`.
const WEIGHT_MAX: u32 = 1_000;

/// The JSON Schema of `pools.yaml`, for editors.
pub const SCHEMA: &str = include_str!("../../pools.schema.json");

/// `pools.yaml`, checked and ready to be asked.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Names the text it came from.
    snapshot: Arc<str>,
    pools: BTreeMap<PoolName, Pool>,
    /// The pools a topic leads to, first choice first.
    topics: TopicMap<Arc<[PoolName]>>,
    limits: Vec<LimitRule>,
    fairness: Fairness,
}

/// A named group of workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub name: PoolName,
    /// For people who read a list of pools.
    pub description: Option<Arc<str>>,
    pub dispatch: DispatchMode,
    /// Every worker of the pool has these besides its own.
    pub capabilities: BTreeSet<Arc<str>>,
    /// Every worker of the pool has these unless it says otherwise.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Jobs that run in the pool at once.
    pub max_concurrent: Option<u32>,
    /// Jobs of one tenant, of those that have this pool as their first choice, that run at once.
    pub tenant_max_concurrent: Option<u32>,
    /// The same for the tenants named here.
    pub tenants: BTreeMap<TenantId, u32>,
    pub overload: Overload,
}

/// How a job of a pool gets to a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchMode {
    /// Workers take the next job whenever they have a free slot.
    #[default]
    Queue,
    /// The scheduler picks the least loaded worker. A job that no worker can ever take is given up after some tries.
    Direct,
}

impl DispatchMode {
    pub const ALL: [Self; 2] = [Self::Queue, Self::Direct];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Direct => "direct",
        }
    }
}

/// At or above any of these a worker is overloaded. Absent: not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overload {
    /// An overloaded worker gets what no other has a place for. If not, it gets nothing.
    pub claims_last: bool,
    /// Jobs held, in percent of its slots.
    pub active_percent: Option<u32>,
    pub cpu_percent: Option<u32>,
    pub gpu_percent: Option<u32>,
}

/// How turns are shared out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fairness {
    pub priorities: PriorityShares,
    /// Turns a tenant gets in one round; one if it is not named.
    pub tenants: BTreeMap<TenantId, u32>,
}

/// How often each priority is served when all of them have work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityShares {
    /// Turns in one round, critical first.
    Weights([u32; 4]),
    /// A lower priority is served only when no higher one has work.
    Strict,
}

impl Pools {
    pub fn snapshot(&self) -> &Arc<str> {
        &self.snapshot
    }

    pub fn pool(&self, name: &PoolName) -> Option<&Pool> {
        self.pools.get(name)
    }

    /// In the order of their names.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.pools.values()
    }

    /// The topics that lead to a pool, as they are written in the file: exact names first, then globs in the order in which
    /// they are tried.
    pub fn patterns(&self, pool: &PoolName) -> impl Iterator<Item = &str> {
        self.topics.iter().filter(move |(_, pools)| pools.contains(pool)).map(|(pattern, _)| pattern)
    }

    pub fn fairness(&self) -> &Fairness {
        &self.fairness
    }
}
