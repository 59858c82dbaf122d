//! Memoisation: the stored result of equal work is taken instead of running the job again, if the policy in force allows it.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::submit::born;
use super::{Env, EventKind, Job, JobState, Transition};
use crate::hex;
use crate::ids::JobId;
use crate::output::{OutputDecision, OutputStep};
use crate::request::{JobRequest, Json, RequestHash};
use crate::verdict::{Decision, Judgement, Verdict};

/// Equal work that was done earlier.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The job that did the work, without its payload.
    pub job: Box<Job>,
    /// The result after the output policy's verdict.
    pub result: Json,
}

/// The key of equal work: every field that says what is to be done, in canonical JSON. Priority and retry settings are left
/// out, because they do not change the work.
pub fn memo_key(request: &JobRequest) -> Arc<str> {
    // The payload's bytes as a worker would get them: parsing could map two different large numbers to one. Templates
    // produce sorted keys and no spaces, so equal payloads have equal bytes.
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
    /// G-6: no result is exposed without a verdict. The policy in force must allow the job without approval, and must allow
    /// the result. If it scans results, only a result qualifies that the same rules let out for the same actor and the same
    /// labels: rules may match on both, and the workflow's label is not part of the key. `step` is the outcome of the
    /// metadata check for this job.
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

/// Whether rules about results cannot tell the two requests apart.
fn is_seen_alike(one: &JobRequest, other: &JobRequest) -> bool {
    (&one.actor, &one.actor_type, &one.labels) == (&other.actor, &other.actor_type, &other.labels)
}

/// The job may run as it is: no approval is needed, and the verdict is not a bypass.
fn may_run(verdict: &Verdict) -> bool {
    matches!(verdict.decision, Decision::Allow | Decision::AllowWithConstraints) && !verdict.bypassed
}

/// Creates a job that has already succeeded with the memoised result.
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
    /// The key under which other jobs find this job's result, and for how long, if this commit ends it well. A result that
    /// was itself memoised is not stored again: that would extend its validity without work being done.
    pub fn memoises(&self) -> Option<(&str, u64)> {
        let job = &self.job;
        let ends =
            job.life.state == JobState::Succeeded && self.events.iter().any(|event| event.kind == EventKind::Succeeded);
        let memo = job.request.memo.as_ref().filter(|_| ends && job.life.memo_of.is_none())?;
        Some((&memo.key, memo.for_ms))
    }
}

impl Job {
    /// The job that did the work, if this job took its memoised result.
    pub fn memo_of(&self) -> Option<&JobId> {
        self.life.memo_of.as_ref()
    }
}
