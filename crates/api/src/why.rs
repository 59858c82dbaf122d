//! Why a job waits: pools, workers and limits that were looked at.

use lockgate_proto::v1;
use lockgate_proto::v1::explain_job_response as wire;
use serde::Serialize;
use utoipa::ToSchema;

use crate::name_set::{DispatchModeName, JobStateName, WhyReasonName};
use crate::present;
use crate::time::Time;

#[derive(Debug, Serialize, ToSchema)]
pub struct Why {
    pub job_id: String,
    pub state: JobStateName,
    /// One sentence for people.
    pub summary: String,
    /// Stable code for machines.
    #[schema(value_type = WhyReasonName)]
    pub reason: String,
    /// What would start it.
    pub next_step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Pools of the job's route, first choice first, with their workers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolLook>,
    /// Limits that the job must pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitLook>,
    /// How often placing was tried, if no worker can ever take the job as things are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// Tries after which it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries_max: Option<u32>,
    /// Jobs in the same lane, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane_waiting: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PoolLook {
    pub pool: String,
    pub dispatch: DispatchModeName,
    /// Why the pool as a whole takes nothing; absent if it would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub workers: Vec<Considered>,
    /// Workers that are not listed.
    pub more: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Considered {
    pub worker_id: String,
    /// `fits` or a reason code.
    pub verdict: String,
    pub free_slots: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct LimitLook {
    pub name: String,
    /// Attempts at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    pub held: u32,
    pub full: bool,
    /// When its rate has room again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_at: Option<Time>,
}

impl Why {
    pub fn new(job_id: String, why: v1::ExplainJobResponse) -> Self {
        Self {
            job_id,
            state: why.state().into(),
            summary: why.summary,
            reason: why.reason,
            next_step: why.next_step,
            next_at: why.next_at_ms.map(Time::from_millis),
            rule: present(why.rule),
            pools: why.pools.into_iter().map(PoolLook::from).collect(),
            limits: why.limits.into_iter().map(LimitLook::from).collect(),
            tries: why.tries,
            tries_max: why.tries_max,
            lane_waiting: why.lane_waiting,
        }
    }
}

impl From<wire::PoolLook> for PoolLook {
    fn from(look: wire::PoolLook) -> Self {
        Self {
            pool: look.pool,
            dispatch: look.dispatch.into(),
            reason: present(look.reason),
            workers: look.workers.into_iter().map(Considered::from).collect(),
            more: look.more,
        }
    }
}

impl From<wire::Considered> for Considered {
    fn from(wire::Considered { worker_id, verdict, free_slots }: wire::Considered) -> Self {
        Self { worker_id, verdict, free_slots }
    }
}

impl From<wire::LimitLook> for LimitLook {
    fn from(limit: wire::LimitLook) -> Self {
        let wire::LimitLook { name, max, held, full, again_at_ms } = limit;
        Self { name, max, held, full, again_at: again_at_ms.map(Time::from_millis) }
    }
}
