//! The machine of the edge: what it does by example, and what holds whatever happens.

mod fleet;
mod model;
mod orders;
mod properties;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{EdgeRules, EdgeState};
use crate::ids::{AttemptToken, JobId};
use crate::job::{Env, Job, submit};
use crate::limits::Limits;
use crate::pools::{PoolStates, Pools, Routing};
use crate::request::{Caller, JobRequest, NewJob, RunRef};
use crate::retry::Jitter;
use crate::time::Timestamp;
use crate::verdict::{Decision, Judgement, Verdict};
use crate::worker::WorkerProfile;

pub(super) const WALL: Timestamp = Timestamp::from_millis(1_000_000);
pub(super) const RULES: EdgeRules = EdgeRules {
    lost_after: Duration::from_secs(10),
    handover_wait: Duration::from_millis(500),
    lease: Some(Duration::from_secs(20)),
};

/// An edge under the pools of a file.
pub(super) fn edge(pools: &str) -> EdgeState {
    let pools = Pools::load("pools.yaml", pools).expect("valid");
    let routing = Routing::new(Arc::new(pools), PoolStates::default());
    EdgeState::new("here".into(), Arc::new(routing), RULES)
}

pub(super) fn profile(worker: &str, pool: &str, slots: u32) -> WorkerProfile {
    WorkerProfile {
        worker: worker.into(),
        pool: pool.into(),
        topics: vec!["*".into()],
        capabilities: BTreeSet::new(),
        labels: BTreeMap::new(),
        slots,
        in_process: false,
        lost_after_ms: None,
        owner: None,
    }
}

/// A job that waits in its lane, with an attempt of its own.
pub(super) fn job(number: u64, of_run: bool) -> Arc<Job> {
    let (caller, limits) = (Caller::new("acme", "ann"), Limits::default());
    let new = NewJob { topic: "job.echo".into(), ..NewJob::default() };
    let mut request = JobRequest::check(new, &caller, || JobId::from(format!("job-{number}"))).expect("valid");
    if of_run {
        request.run = Some(RunRef { run: "run-1".into(), node: 0, item: None, round: 0, undo: false });
    }
    let hash = request.hash();
    submit(Arc::new(request), hash, &env(&limits, &format!("token-{number}").into())).job.into()
}

pub(super) fn env<'l>(limits: &'l Limits, token: &AttemptToken) -> Env<'l> {
    let verdict = Verdict::plain(Decision::Allow, "a-rule", "a reason", "snapshot-1".into());
    Env {
        now: WALL,
        token: token.clone(),
        jitter: Jitter::from_bits(0),
        limits,
        timeouts: Arc::default(),
        judgement: Judgement::Decided(Arc::new(verdict)),
    }
}
