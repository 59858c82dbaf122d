//! Creates a job.

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, Counters, Env, EventKind, Failure, Job, JobState, Life, Transition};
use crate::ids::JobSeq;
use crate::request::{JobRequest, RequestHash};

/// Creates the job and judges its first attempt, all in one commit. The Store assigns the sequence number.
pub fn submit(request: Arc<JobRequest>, hash: RequestHash, env: &Env<'_>) -> Transition {
    let transition = born(request, hash, env);
    let due_at = transition.job.life.due_at;
    transition.judge(due_at, env)
}

/// Creates a job that can never run, for its dead letter.
pub fn stillborn(request: Arc<JobRequest>, hash: RequestHash, failure: Failure, env: &Env<'_>) -> Transition {
    born(request, hash, env).dead(JobState::Failed, failure, env.now)
}

pub(super) fn born(request: Arc<JobRequest>, hash: RequestHash, env: &Env<'_>) -> Transition {
    let due_at = request.not_before.map_or(env.now, |at| at.max(env.now));
    let job = Job {
        seq: JobSeq::default(),
        version: 0,
        hash,
        life: Life {
            no: 1,
            state: JobState::Pending,
            attempt: Attempt { no: 1, token: env.token.clone(), verdict: None, binding: None, started_at: None },
            counters: Counters::default(),
            submitted_at: env.now,
            began_at: env.now,
            due_at,
            deadline_at: request.deadline_ms.map(|ms| env.now + Duration::from_millis(ms)),
            ended_at: None,
            last_error: None,
            lost: None,
            approval: None,
            output: None,
            bypass: None,
            family: None,
            taken: Vec::new(),
            late: None,
            memo_of: None,
            discarded: None,
            events: 0,
        },
        request,
    };
    let actor = job.request.actor.clone();
    let mut transition = Transition::from(&job);
    transition.event(EventKind::Submitted, env.now, |event| event.actor = Some(actor));
    transition
}
