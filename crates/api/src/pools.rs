//! Pools and what goes on in them.

use std::collections::BTreeMap;

use lockgate_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use crate::name_set::{DispatchModeName, PoolStateName};
use crate::present;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PoolList)]
pub struct Pools {
    pub pools: Vec<Pool>,
    /// The file in force.
    pub snapshot: String,
}

/// A named group of workers.
#[derive(Debug, Serialize, ToSchema)]
pub struct Pool {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub dispatch: DispatchModeName,
    /// open, paused or draining
    #[schema(value_type = PoolStateName)]
    pub state: String,
    /// Patterns of the topics that lead to it.
    pub topics: Vec<String>,
    pub capabilities: Vec<String>,
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    pub workers: u32,
    pub slots: u64,
    /// Attempts its workers hold.
    pub busy: u64,
    /// Jobs that have it as their first choice and wait.
    pub waiting: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PoolChanged {
    /// Absent when the pool is not in the file in force: only what was said about it is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<Pool>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct DrainedWorker {
    pub worker_id: String,
    /// Sessions that were told.
    pub sessions: u32,
}

impl From<v1::ListPoolsResponse> for Pools {
    fn from(wire: v1::ListPoolsResponse) -> Self {
        Self { pools: wire.pools.into_iter().map(Pool::from).collect(), snapshot: wire.snapshot }
    }
}

impl From<v1::PoolStatus> for Pool {
    fn from(wire: v1::PoolStatus) -> Self {
        let state = match wire.state() {
            v1::PoolState::Open => "open",
            v1::PoolState::Paused => "paused",
            v1::PoolState::Draining => "draining",
            v1::PoolState::Unspecified => "unknown",
        };
        Self {
            name: wire.name,
            description: present(wire.description),
            dispatch: wire.dispatch.into(),
            state: state.to_owned(),
            topics: wire.topics,
            capabilities: wire.capabilities,
            labels: wire.labels.into_iter().collect(),
            max_concurrent: wire.max_concurrent,
            workers: wire.workers,
            slots: wire.slots,
            busy: wire.busy,
            waiting: wire.waiting,
        }
    }
}

impl From<v1::SetPoolStateResponse> for PoolChanged {
    fn from(wire: v1::SetPoolStateResponse) -> Self {
        Self { pool: wire.pool.map(Pool::from) }
    }
}
