//! Pools and what goes on in them, as the REST contract has them.

use std::collections::BTreeMap;

use lockgate_proto::v1;
use serde::Serialize;

use super::convert::{present, sorted};

#[derive(Debug, Serialize)]
pub(crate) struct Pools {
    pub(crate) pools: Vec<Pool>,
    pub(crate) snapshot: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Pool {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) dispatch: String,
    pub(crate) state: &'static str,
    pub(crate) topics: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_concurrent: Option<u32>,
    pub(crate) workers: u32,
    pub(crate) slots: u64,
    pub(crate) busy: u64,
    pub(crate) waiting: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct PoolChanged {
    /// Absent when the pool is not in the file in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<Pool>,
}

#[derive(Debug, Serialize)]
pub(crate) struct DrainedWorker {
    pub(crate) worker_id: String,
    pub(crate) sessions: u32,
}

impl From<v1::ListPoolsResponse> for Pools {
    fn from(response: v1::ListPoolsResponse) -> Self {
        Self { pools: response.pools.into_iter().map(Pool::from).collect(), snapshot: response.snapshot }
    }
}

impl From<v1::PoolStatus> for Pool {
    fn from(pool: v1::PoolStatus) -> Self {
        Self {
            state: match pool.state() {
                v1::PoolState::Open => "open",
                v1::PoolState::Paused => "paused",
                v1::PoolState::Draining => "draining",
                v1::PoolState::Unspecified => "unknown",
            },
            name: pool.name,
            description: present(pool.description),
            dispatch: pool.dispatch,
            topics: pool.topics,
            capabilities: pool.capabilities,
            labels: sorted(pool.labels),
            max_concurrent: pool.max_concurrent,
            workers: pool.workers,
            slots: pool.slots,
            busy: pool.busy,
            waiting: pool.waiting,
        }
    }
}

impl From<v1::SetPoolStateResponse> for PoolChanged {
    fn from(response: v1::SetPoolStateResponse) -> Self {
        Self { pool: response.pool.map(Pool::from) }
    }
}
