//! Work that was done before need not be done again: what came of it then stands for it, under the policy of now.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::submit::born;
use super::{Env, EventKind, Job, JobState, Transition};
use crate::hex;
use crate::ids::JobId;
use crate::output::{OutputDecision, OutputStep};
use crate::request::{JobRequest, Json, RequestHash};
use crate::verdict::{Decision, Judgement, Verdict};

/// What came of the same work before.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The job that did it, without its payload.
    pub job: Box<Job>,
    /// What came out, after policy had its say.
    pub result: Json,
}

/// By which the same work is known again: all that says what is to be done, in canonical JSON. How urgent it is and how often it
/// may be tried makes no other work of it.
pub fn memo_key(request: &JobRequest) -> Arc<str> {
    // As a worker would get it, byte for byte: numbers that do not fit must not become the same number here. What a template
    // makes has sorted keys and no spaces.
    let payload = request.payload.as_str();
    let asked = serde_json::json!({
        "capability": request.capability,
        "env": request.env,
        "labels": request.labels,
        "payload": payload,
        "requires": request.requires,
        "risk_tags": request.risk_tags,
        "topic": request.topic.as_str(),
    });
    hex::write(&Sha256::digest(asked.to_string())).into()
}

impl Earlier {
    /// G-6: nothing comes out without a verdict. What policy says now about the work decides whether it may be asked for, and
    /// what it says about the result whether that may come out: if it wants to look into results, only one that it let out by
    /// the same rules for the same people, and under the same labels: rules ask for those, and that of the workflow is not in
    /// the key. `step` is what the check of the result's metadata said for this job.
    pub fn stands_for(&self, request: &JobRequest, verdict: &Verdict, step: &OutputStep) -> bool {
        let Job { request: asked, life, .. } = &*self.job;
        let sound = life.state == JobState::Succeeded && !self.job.needs_scan() && life.bypass.is_none();
        let unreleased = life.output.as_ref().is_none_or(|check| check.released_by.is_none());
        let fits = verdict.constraints.max_output_bytes.is_none_or(|max| self.result.as_str().len() as u64 <= max);
        let same_rules = || life.output.as_ref().and_then(|check| check.verdict.as_ref()).map(|seen| &seen.snapshot);
        let comes_out = match step {
            OutputStep::Pass => true,
            OutputStep::Decided(verdict) => verdict.decision == OutputDecision::Allow,
            OutputStep::Scan { .. } => is_seen_alike(asked, request) && same_rules() == Some(&verdict.snapshot),
            OutputStep::Unchecked { .. } => false,
        };
        may_run(verdict) && sound && unreleased && fits && comes_out
    }
}

/// As far as rules about results can tell.
fn is_seen_alike(one: &JobRequest, other: &JobRequest) -> bool {
    (&one.actor, &one.actor_type, &one.labels) == (&other.actor, &other.actor_type, &other.labels)
}

/// As it is: no approval is needed, and the verdict is one.
fn may_run(verdict: &Verdict) -> bool {
    matches!(verdict.decision, Decision::Allow | Decision::AllowWithConstraints) && !verdict.bypassed
}

/// Creates a job whose work was done before: it has succeeded with what came of it then.
pub fn memoised(request: Arc<JobRequest>, hash: RequestHash, earlier: Earlier, env: &Env<'_>) -> Transition {
    let mut transition = born(request, hash, env);
    if let Judgement::Decided(verdict) = &env.judgement {
        transition.job.life.attempt.verdict = Some(verdict.clone());
    }
    let source = earlier.job.request.job_id.clone();
    transition.event(EventKind::Memoised, env.now, |event| event.message = Some(format!("as job {source}").into()));
    transition.event(EventKind::Succeeded, env.now, |_| {});
    transition.job.life.memo_of = Some(source);
    transition.result = Some(earlier.result);
    transition.end(JobState::Succeeded, None, env.now)
}

impl Transition {
    /// The key under which what came of the job is to be found by others, and for how long, if this commit ends it well. What
    /// stands for earlier work is not work that was done: it makes nothing last longer.
    pub fn memoises(&self) -> Option<(&str, u64)> {
        let job = &self.job;
        let ends =
            job.life.state == JobState::Succeeded && self.events.iter().any(|event| event.kind == EventKind::Succeeded);
        let memo = job.request.memo.as_ref().filter(|_| ends && job.life.memo_of.is_none())?;
        Some((&memo.key, memo.for_ms))
    }
}

impl Job {
    /// The job that did the work, if this one only took over what came of it.
    pub fn memo_of(&self) -> Option<&JobId> {
        self.life.memo_of.as_ref()
    }
}
