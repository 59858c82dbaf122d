//! Where a ready job waits: sub-queues per priority, shape and tenant. Which pool serves a lane follows from its shape.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{JobSeq, PoolName, TenantId, Topic, WorkerId};
use crate::time::Timestamp;

pub use lockgate_contract::{Priority, UnknownPriority};

/// What a job asks of a worker, and what it may take. Jobs of one shape are interchangeable for placement and limits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shape {
    pub topic: Topic,
    /// Capabilities the worker must have.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub requires: BTreeSet<Arc<str>>,
    /// The job's labels `placement.*`, `constraint.*` and `node.*`, which the worker must match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placement: BTreeMap<Arc<str>, Arc<str>>,
    /// Only this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_pool: Option<PoolName>,
    /// This worker first, while it is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_worker: Option<WorkerId>,
    /// Policy lets it run only in these pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_pools: Option<BTreeSet<Arc<str>>>,
    /// Policy lets only so many jobs of its tenant and topic run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// Jobs with the same key share the limits that are set per key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<Arc<str>>,
}

impl Shape {
    /// What it asks of a worker, without what only limits look at. Shapes with the same are the same to every worker.
    pub fn fit(self: &Arc<Self>) -> Cow<'_, Arc<Self>> {
        if self.concurrency_key.is_none() && self.max_concurrent.is_none() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Arc::new(Self { concurrency_key: None, max_concurrent: None, ..(**self).clone() }))
    }

    /// Asks for nothing but somebody who serves the topic.
    pub fn of(topic: impl Into<Topic>) -> Self {
        Self {
            topic: topic.into(),
            requires: BTreeSet::new(),
            placement: BTreeMap::new(),
            preferred_pool: None,
            preferred_worker: None,
            allowed_pools: None,
            max_concurrent: None,
            concurrency_key: None,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.topic)?;
        for (i, capability) in self.requires.iter().enumerate() {
            write!(f, "{}{capability}", if i == 0 { "+" } else { "," })?;
        }
        for (label, value) in &self.placement {
            write!(f, " {label}={value}")?;
        }
        if let Some(pool) = &self.preferred_pool {
            write!(f, " preferred_pool={pool}")?;
        }
        if let Some(worker) = &self.preferred_worker {
            write!(f, " preferred_worker_id={worker}")?;
        }
        if let Some(key) = &self.concurrency_key {
            write!(f, " concurrency_key={key}")?;
        }
        Ok(())
    }
}

/// One sub-queue. FIFO inside, fair between.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneKey {
    pub priority: Priority,
    pub tenant: TenantId,
    pub shape: Arc<Shape>,
}

/// Order inside a lane: by when the job became ready, then by commit order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadyKey {
    pub due_at: Timestamp,
    pub seq: JobSeq,
}
