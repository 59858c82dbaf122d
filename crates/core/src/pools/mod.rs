//! Pools: which workers serve which topics, and under which limits.
//!
//! A route is a function of the configuration and a job's shape alone. So no row stores it, and a new configuration applies
//! to waiting jobs without a rewrite of their rows.

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

/// The pool that takes every topic if no pools are configured.
pub const DEFAULT_POOL: &str = "default";

/// More parallel work than any installation runs; a larger number is a typing error.
const CONCURRENT_MAX: u32 = 1_000_000;
/// The largest weight of a priority. The other priorities wait for that many claims; for more, use `strict`.
const WEIGHT_MAX: u32 = 1_000;

/// The JSON Schema of `pools.yaml`, for editors.
pub const SCHEMA: &str = include_str!("../../pools.schema.json");

/// A checked `pools.yaml`.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Identifies the text that it was loaded from.
    snapshot: Arc<str>,
    pools: BTreeMap<PoolName, Pool>,
    /// The pools of each topic, first choice first.
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
    /// Capabilities that every worker of the pool has besides its own.
    pub capabilities: BTreeSet<Arc<str>>,
    /// Labels that every worker of the pool has unless it sets its own value.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The most jobs that run in the pool at once.
    pub max_concurrent: Option<u32>,
    /// The most jobs of one tenant that run at once, counted over jobs with this pool as their first choice, wherever they
    /// run.
    pub tenant_max_concurrent: Option<u32>,
    /// Overrides `tenant_max_concurrent` for the tenants named here.
    pub tenants: BTreeMap<TenantId, u32>,
    pub overload: Overload,
}

/// How jobs of a pool get to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchMode {
    /// Workers claim the next job whenever they have a free slot.
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

/// Limits at or above which a worker is overloaded. An absent limit is not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overload {
    /// Whether an overloaded worker gets jobs that no other worker has room for. If false, it gets none.
    pub claims_last: bool,
    /// Jobs held, in percent of its slots.
    pub active_percent: Option<u32>,
    pub cpu_percent: Option<u32>,
    pub gpu_percent: Option<u32>,
}

/// How turns are shared between priorities and tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fairness {
    pub priorities: PriorityShares,
    /// A tenant's turns in one round; 1 if it is not named.
    pub tenants: BTreeMap<TenantId, u32>,
}

/// How often each priority is served when all have work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityShares {
    /// Turns in one round, critical first.
    Weights([u32; 4]),
    /// A priority is served only while no higher one has work.
    Strict,
}

impl Pools {
    pub fn snapshot(&self) -> &Arc<str> {
        &self.snapshot
    }

    pub fn pool(&self, name: &PoolName) -> Option<&Pool> {
        self.pools.get(name)
    }

    /// All pools, in the order of their names.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.pools.values()
    }

    /// The topics that lead to a pool, as written in the file: exact names first, then globs in the order in which they are
    /// tried.
    pub fn patterns(&self, pool: &PoolName) -> impl Iterator<Item = &str> {
        self.topics.iter().filter(move |(_, pools)| pools.contains(pool)).map(|(pattern, _)| pattern)
    }

    pub fn fairness(&self) -> &Fairness {
        &self.fairness
    }
}
