//! Routes: the pools that may take a shape.

use std::sync::Arc;

use super::Pools;
use crate::ids::PoolName;
use crate::lane::Shape;

/// The pools that a shape may run in, first choice first. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route(Arc<[PoolName]>);

/// Why no pool may take a shape. The texts are reason codes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrouted {
    /// No pattern matches the topic.
    #[error("no_pool_mapping")]
    NoMapping,
    /// The topic's pools do not include the one that the job requires.
    #[error("preferred_pool_not_mapped")]
    PreferredPool,
    /// Policy allows none of the topic's pools.
    #[error("no_allowed_pool")]
    AllowedPools,
}

impl Route {
    pub fn pools(&self) -> &[PoolName] {
        &self.0
    }

    /// The pool in whose lane the job waits.
    pub fn first(&self) -> &PoolName {
        &self.0[0]
    }

    pub fn contains(&self, pool: &PoolName) -> bool {
        self.0.contains(pool)
    }
}

impl Pools {
    pub fn route(&self, shape: &Shape) -> Result<Route, Unrouted> {
        let mapped = self.mapped(shape).ok_or(Unrouted::NoMapping)?;
        if shape.preferred_pool.is_none() && shape.allowed_pools.is_none() {
            return Ok(Route(mapped.clone()));
        }
        let preferred = |pool: &&PoolName| shape.preferred_pool.as_ref().is_none_or(|only| *pool == only);
        let allowed = |pool: &&PoolName| shape.allowed_pools.as_ref().is_none_or(|pools| pools.contains(pool.as_str()));
        if !mapped.iter().any(|pool| preferred(&pool)) {
            return Err(Unrouted::PreferredPool);
        }
        let pools: Arc<[PoolName]> = mapped.iter().filter(preferred).filter(allowed).cloned().collect();
        if pools.is_empty() { Err(Unrouted::AllowedPools) } else { Ok(Route(pools)) }
    }

    /// The pools that the configuration maps the topic to, before the job and policy narrow them.
    pub fn mapped(&self, shape: &Shape) -> Option<&Arc<[PoolName]>> {
        self.topics.get(shape.topic.as_str())
    }
}
