//! The configuration without a `pools.yaml`: one pool that takes every topic.

use std::collections::{BTreeMap, BTreeSet};

use super::{DEFAULT_POOL, DispatchMode, Fairness, Overload, Pool, Pools, PriorityShares};
use crate::glob::Glob;
use crate::ids::PoolName;
use crate::lane::Priority;

/// The snapshot of [`Pools::default`].
pub const BUILTIN_DEFAULT: &str = "builtin:default";

impl Default for Pools {
    fn default() -> Self {
        let pool = PoolName::from(DEFAULT_POOL);
        Self {
            snapshot: BUILTIN_DEFAULT.into(),
            pools: BTreeMap::from([(pool.clone(), Pool::named(pool.clone()))]),
            topics: [(Glob::everything(), [pool].into())].into_iter().collect(),
            limits: Vec::new(),
            fairness: Fairness::default(),
        }
    }
}

impl Pool {
    pub(super) fn named(name: PoolName) -> Self {
        Self {
            name,
            description: None,
            dispatch: DispatchMode::Queue,
            capabilities: BTreeSet::new(),
            labels: BTreeMap::new(),
            max_concurrent: None,
            tenant_max_concurrent: None,
            tenants: BTreeMap::new(),
            overload: Overload::QUEUE,
        }
    }
}

impl Overload {
    /// The defaults of pools in which the scheduler picks the worker.
    pub const DIRECT: Self =
        Self { claims_last: false, active_percent: Some(90), cpu_percent: Some(90), gpu_percent: Some(90) };

    /// The defaults of pools whose workers claim jobs themselves: no limit.
    pub const QUEUE: Self = Self { claims_last: true, active_percent: None, cpu_percent: None, gpu_percent: None };

    /// Whether any limit is set.
    pub fn is_set(&self) -> bool {
        [self.active_percent, self.cpu_percent, self.gpu_percent].iter().any(Option::is_some)
    }
}

impl Default for PriorityShares {
    fn default() -> Self {
        Self::Weights(Priority::ALL.map(Priority::weight))
    }
}
