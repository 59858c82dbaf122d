//! Pools and what goes on in them.

use std::collections::BTreeMap;

use lockgate_core::pools::Closed;
use lockgate_engine::PoolView;
use serde::Serialize;
use utoipa::ToSchema;

use super::Name;
use super::names::DispatchModeName;

#[derive(Serialize, ToSchema)]
#[schema(as = PoolList)]
pub(in crate::rest) struct Pools {
    pools: Vec<Pool>,
    /// The file in force.
    snapshot: String,
}

/// A named group of workers.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Pool {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    dispatch: DispatchModeName,
    /// open, paused or draining
    state: &'static str,
    /// Patterns of the topics that lead to it.
    topics: Vec<String>,
    capabilities: Vec<String>,
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent: Option<u32>,
    workers: usize,
    slots: u64,
    /// Attempts its workers hold.
    busy: u64,
    /// Jobs that have it as their first choice and wait.
    waiting: u64,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct PoolChanged {
    /// Absent when the pool is not in the file in force: only what was said about it is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<Pool>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct DrainedWorker {
    pub(in crate::rest) worker_id: String,
    /// Sessions that were told.
    pub(in crate::rest) sessions: usize,
}

impl Pools {
    pub(in crate::rest) fn new(views: &[PoolView], snapshot: &str) -> Self {
        Self { pools: views.iter().map(Pool::from).collect(), snapshot: snapshot.to_owned() }
    }
}

impl PoolChanged {
    pub(in crate::rest) fn new(view: Option<&PoolView>) -> Self {
        Self { pool: view.map(Pool::from) }
    }
}

impl From<&PoolView> for Pool {
    fn from(view: &PoolView) -> Self {
        let pool = &view.pool;
        Self {
            name: pool.name.to_string(),
            description: pool.description.as_ref().map(ToString::to_string),
            dispatch: Name(pool.dispatch),
            state: match view.closed {
                None => "open",
                Some(Closed::Paused) => "paused",
                Some(Closed::Draining) => "draining",
            },
            topics: view.topics.clone(),
            capabilities: pool.capabilities.iter().map(ToString::to_string).collect(),
            labels: pool.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            max_concurrent: pool.max_concurrent,
            workers: view.workers,
            slots: view.slots,
            busy: view.busy,
            waiting: view.waiting,
        }
    }
}
