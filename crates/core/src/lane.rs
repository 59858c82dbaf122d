//! Lanes: the queues of ready jobs, one per priority, shape and tenant. The pool that serves a lane follows from its shape.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{JobSeq, PoolName, TenantId, Topic, WorkerId};
use crate::time::Timestamp;

pub use lockgate_contract::{Priority, UnknownPriority};

/// What a job requires of a worker, and which limits it needs. Jobs of one shape are interchangeable for placement and
/// limits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shape {
    pub topic: Topic,
    /// Capabilities the worker must have.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub requires: BTreeSet<Arc<str>>,
    /// The job's labels `placement.*`, `constraint.*` and `node.*`, which the worker must match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placement: BTreeMap<Arc<str>, Arc<str>>,
    /// If set, only workers of this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_pool: Option<PoolName>,
    /// If set, this worker first while it is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_worker: Option<WorkerId>,
    /// If set, policy allows only these pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_pools: Option<BTreeSet<Arc<str>>>,
    /// If set, policy limits how many jobs of the tenant and topic run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// Jobs with equal keys share the limits that are counted per key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<Arc<str>>,
}

impl Shape {
    /// The shape without the fields that only limits read. Shapes with equal results fit the same workers.
    pub fn fit(self: &Arc<Self>) -> Cow<'_, Arc<Self>> {
        if self.concurrency_key.is_none() && self.max_concurrent.is_none() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Arc::new(Self { concurrency_key: None, max_concurrent: None, ..(**self).clone() }))
    }

    /// A shape that requires only a worker which serves the topic.
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

/// One queue: FIFO inside, and fair between queues.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneKey {
    pub priority: Priority,
    pub tenant: TenantId,
    pub shape: Arc<Shape>,
}

/// The order inside a lane: by the time when the job became ready, then by commit order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadyKey {
    pub due_at: Timestamp,
    pub seq: JobSeq,
}
