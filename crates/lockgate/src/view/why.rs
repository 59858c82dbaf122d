//! Why a job waits, as the REST contract has it.

use lockgate_proto::v1;
use lockgate_proto::v1::explain_job_response as wire;
use serde::Serialize;

use super::Moment;
use super::convert::{present, state, time};

#[derive(Debug, Serialize)]
pub(crate) struct Why {
    pub(crate) job_id: String,
    pub(crate) state: &'static str,
    pub(crate) summary: String,
    pub(crate) reason: String,
    pub(crate) next_step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pools: Vec<PoolLook>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<LimitLook>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tries_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lane_waiting: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct PoolLook {
    pub(crate) pool: String,
    pub(crate) dispatch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) workers: Vec<Considered>,
    /// Workers that are not listed.
    pub(crate) more: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Considered {
    pub(crate) worker_id: String,
    pub(crate) verdict: String,
    pub(crate) free_slots: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct LimitLook {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max: Option<u32>,
    pub(crate) held: u32,
    pub(crate) full: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) again_at: Option<Moment>,
}

impl Why {
    pub(crate) fn new(job_id: String, response: v1::ExplainJobResponse) -> Self {
        Self {
            job_id,
            state: state(response.state()),
            summary: response.summary,
            reason: response.reason,
            next_step: response.next_step,
            next_at: response.next_at_ms.and_then(time),
            rule: present(response.rule),
            pools: response.pools.into_iter().map(PoolLook::from).collect(),
            limits: response.limits.into_iter().map(LimitLook::from).collect(),
            tries: response.tries,
            tries_max: response.tries_max,
            lane_waiting: response.lane_waiting,
        }
    }
}

impl From<wire::PoolLook> for PoolLook {
    fn from(look: wire::PoolLook) -> Self {
        let considered = |worker: wire::Considered| Considered {
            worker_id: worker.worker_id,
            verdict: worker.verdict,
            free_slots: worker.free_slots,
        };
        Self {
            pool: look.pool,
            dispatch: look.dispatch,
            reason: present(look.reason),
            workers: look.workers.into_iter().map(considered).collect(),
            more: look.more,
        }
    }
}

impl From<wire::LimitLook> for LimitLook {
    fn from(limit: wire::LimitLook) -> Self {
        Self {
            name: limit.name,
            max: limit.max,
            held: limit.held,
            full: limit.full,
            again_at: limit.again_at_ms.and_then(time),
        }
    }
}
