//! Why a job waits.

use lockgate_api::ToWire;
use lockgate_core::time::Timestamp;
use lockgate_engine::{Considered, PoolConsidered, Why};
use lockgate_ports::LimitView;
use lockgate_proto::v1::{self, explain_job_response};

pub(crate) fn why(why: Why) -> v1::ExplainJobResponse {
    v1::ExplainJobResponse {
        state: why.state.to_wire().into(),
        summary: why.summary,
        reason: why.reason.to_string(),
        next_step: why.next_step,
        next_at_ms: why.next_at.map(Timestamp::as_millis),
        rule: why.rule.unwrap_or_default(),
        pools: why.pools.into_iter().map(pool_look).collect(),
        limits: why.limits.iter().map(limit_look).collect(),
        tries: why.tries.as_ref().map(|tries| tries.made),
        tries_max: why.tries.as_ref().map(|tries| tries.max),
        lane_waiting: why.lane_waiting,
    }
}

fn pool_look(look: PoolConsidered) -> explain_job_response::PoolLook {
    let considered = |worker: Considered| explain_job_response::Considered {
        worker_id: worker.worker.to_string(),
        verdict: worker.verdict,
        free_slots: worker.free_slots,
    };
    explain_job_response::PoolLook {
        pool: look.pool.to_string(),
        dispatch: look.dispatch.as_str().to_owned(),
        reason: look.reason.unwrap_or_default(),
        workers: look.workers.into_iter().map(considered).collect(),
        more: look.more as u64,
    }
}

fn limit_look(limit: &LimitView) -> explain_job_response::LimitLook {
    explain_job_response::LimitLook {
        name: limit.key.to_string(),
        max: limit.max,
        held: limit.held,
        full: limit.full,
        again_at_ms: limit.again_at.map(Timestamp::as_millis),
    }
}
