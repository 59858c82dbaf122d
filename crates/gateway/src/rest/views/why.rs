//! Why a job waits: pools, workers and limits that were looked at.

use lockgate_core::ids::JobId;
use lockgate_engine::{Considered as EngineConsidered, PoolConsidered, Why as EngineWhy};
use lockgate_ports::LimitView;
use serde::Serialize;
use utoipa::ToSchema;

use super::names::{DispatchModeName, JobStateName};
use super::{Name, Time};

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Why {
    job_id: String,
    state: JobStateName,
    /// One sentence for people.
    summary: String,
    /// Stable code for machines.
    reason: String,
    /// What would start it.
    next_step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// Pools of the job's route, first choice first, with their workers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pools: Vec<PoolLook>,
    /// Limits that the job must pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitLook>,
    /// How often placing was tried, if nobody can ever take the job as things are.
    #[serde(skip_serializing_if = "Option::is_none")]
    tries: Option<u32>,
    /// Tries after which it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    tries_max: Option<u32>,
    /// Jobs in the same lane, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane_waiting: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct PoolLook {
    pool: String,
    dispatch: DispatchModeName,
    /// Why the pool as a whole takes nothing; absent if it would.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    workers: Vec<Considered>,
    /// Workers that are not listed.
    more: usize,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Considered {
    worker_id: String,
    /// `fits` or a reason code.
    verdict: String,
    free_slots: u32,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct LimitLook {
    name: String,
    /// Attempts at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u32>,
    held: u32,
    full: bool,
    /// When its rate has room again.
    #[serde(skip_serializing_if = "Option::is_none")]
    again_at: Option<Time>,
}

impl Why {
    pub(in crate::rest) fn new(id: &JobId, why: EngineWhy) -> Self {
        Self {
            job_id: id.to_string(),
            state: Name(why.state),
            summary: why.summary,
            reason: why.reason.to_string(),
            next_step: why.next_step,
            next_at: why.next_at.map(Time),
            rule: why.rule,
            pools: why.pools.into_iter().map(PoolLook::from).collect(),
            limits: why.limits.iter().map(LimitLook::from).collect(),
            tries: why.tries.as_ref().map(|tries| tries.made),
            tries_max: why.tries.as_ref().map(|tries| tries.max),
            lane_waiting: why.lane_waiting,
        }
    }
}

impl From<PoolConsidered> for PoolLook {
    fn from(look: PoolConsidered) -> Self {
        let considered = |worker: EngineConsidered| Considered {
            worker_id: worker.worker.to_string(),
            verdict: worker.verdict,
            free_slots: worker.free_slots,
        };
        Self {
            pool: look.pool.to_string(),
            dispatch: Name(look.dispatch),
            reason: look.reason,
            workers: look.workers.into_iter().map(considered).collect(),
            more: look.more,
        }
    }
}

impl From<&LimitView> for LimitLook {
    fn from(limit: &LimitView) -> Self {
        Self {
            name: limit.key.to_string(),
            max: limit.max,
            held: limit.held,
            full: limit.full,
            again_at: limit.again_at.map(Time),
        }
    }
}
