//! Children: jobs that an attempt submits under its own attempt token, and the barrier at which their parent waits for them.
//!
//! A waiting parent is PENDING with its next attempt minted. No worker holds it and it takes no concurrency limit; its
//! deadline and a cancel treat it like every waiting job. The wait is a duty (G-3), so the loop that opens barriers finds it
//! after any crash. Whether the barrier is open is read from the children's rows: a counter could be lost or counted twice.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Approval, Env, EventKind, Evidence, Failure, Illegal, Job, JobState, Reason, Transition};
use crate::ids::AttemptToken;
use crate::limits::SPAN_MS_MAX;
use crate::time::Timestamp;
use crate::verdict::{BUILTIN_ALLOW, Decision, Judgement, Verdict};

/// The rule name of the approval that `OnTimeout::Review` asks for. Policy rules cannot have it, because their names contain
/// no colon.
const REVIEW_RULE: &str = "children:review";
/// How long a parent waits if the handler names no timeout.
pub const WAIT_DEFAULT: Duration = Duration::from_secs(24 * 3600);

/// What a life records about its children. Absent if none of its attempts submitted any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// Present while the next attempt waits for the children.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Barrier>,
    /// How often a barrier opened in this life.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub rounds: u32,
    /// The last barrier opened before all children had ended, because a person approved it.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The life ended badly and all its children have been stopped.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
}

/// The barrier that a parent waits at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    #[serde(rename = "s")]
    pub since: Timestamp,
    #[serde(rename = "u")]
    pub until: Timestamp,
    #[serde(rename = "t", default)]
    pub on_timeout: OnTimeout,
    /// Policy's own approval of the job, set aside while the review takes its place.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
}

/// What happens if children are still under way when the timeout passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The parent ends as FAILED.
    #[default]
    Fail,
    /// A person decides whether the parent continues with the children that have ended.
    Review,
}

impl OnTimeout {
    pub const ALL: [Self; 2] = [Self::Fail, Self::Review];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Review => "review",
        }
    }
}

impl fmt::Display for OnTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be fail or review; not {0:?}")]
pub struct UnknownOnTimeout(String);

impl FromStr for OnTimeout {
    type Err = UnknownOnTimeout;

    fn from_str(text: &str) -> Result<Self, UnknownOnTimeout> {
        Self::ALL.into_iter().find(|known| known.as_str() == text).ok_or_else(|| UnknownOnTimeout(text.to_owned()))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Job {
    /// The barrier that the parent waits at, until it opens or times out.
    pub fn barrier(&self) -> Option<&Barrier> {
        self.life.family.as_ref()?.waits.as_ref().filter(|_| self.life.state == JobState::Pending)
    }

    /// F-3: the life ended other than well, and some of its children may still be under way.
    pub(super) fn owes_its_children_an_end(&self) -> bool {
        let badly = matches!(self.life.state, JobState::Failed | JobState::Timeout | JobState::Cancelled | JobState::Denied);
        badly && self.life.family.as_ref().is_some_and(|family| !family.settled)
    }

    /// F-1: an attempt is about to submit `children` new children. They are inserted against the version that this commit
    /// leaves, so that a revoked attempt adds none, and so that the life records its family before the first child exists.
    pub(super) fn spawned(&self, token: &AttemptToken, children: u32, env: &Env<'_>) -> Result<Transition, Illegal> {
        if !self.holds(token) {
            return Err(Illegal::Superseded);
        }
        let mut transition = Transition::from(self);
        transition.job.life.family.get_or_insert_default();
        let text = if children == 1 { "1 child".to_owned() } else { format!("{children} children") };
        transition.event(EventKind::ChildrenSubmitted, env.now, |event| event.message = Some(text.into()));
        Ok(transition)
    }

    /// F-2: no child is under way. The token binds the observation to the waiting attempt: a reader that looked before that
    /// attempt was minted did not see all its children.
    pub(super) fn gathered(&self, token: &AttemptToken, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.live()?;
        if self.life.attempt.token != *token {
            return Err(Illegal::Superseded);
        }
        if self.barrier().is_none() {
            return Err(Illegal::State { input: "opening a barrier", state: self.life.state });
        }
        let mut transition = Transition::from(self);
        transition.open(false, env.now);
        Ok(transition.judge(env.now, env))
    }

    /// The barrier timed out before it opened.
    pub(super) fn waited_too_long(&self, env: &Env<'_>) -> Option<Transition> {
        let barrier = self.barrier().filter(|barrier| barrier.until <= env.now)?;
        let mut transition = Transition::from(self);
        transition.evidence = Evidence::Reached(barrier.until);
        let text = format!("children had not ended after {:?}", barrier.until.since(barrier.since));
        Some(match barrier.on_timeout {
            OnTimeout::Fail => transition.dead(JobState::Failed, Failure::new(Reason::ChildrenTimeout, text), env.now),
            OnTimeout::Review => transition.review(&text, env),
        })
    }

    /// F-3: the life ended badly, and all its children have been stopped. A later life has its own children.
    pub(super) fn settled(&self, life: u32) -> Result<Transition, Illegal> {
        if self.life.no != life {
            return Err(Illegal::Superseded);
        }
        if !self.owes_its_children_an_end() {
            return Err(Illegal::State { input: "settling children", state: self.life.state });
        }
        let mut transition = Transition::from(self);
        if let Some(family) = &mut transition.job.life.family {
            family.settled = true;
        }
        Ok(transition)
    }
}

impl Transition {
    /// Ends the attempt without ending the job: the next one starts once no child is under way. Costs no attempt.
    pub(super) fn wait_for_children(mut self, timeout: Option<Duration>, on_timeout: OnTimeout, env: &Env<'_>) -> Self {
        let rounds = self.job.life.family.as_ref().map_or(0, |family| family.rounds);
        if rounds >= env.limits.snoozes_max {
            let text = format!("waited for children more than {} times", env.limits.snoozes_max);
            return self.dead(JobState::Failed, Failure::new(Reason::SnoozeLimit, text), env.now);
        }
        let span = timeout.unwrap_or(WAIT_DEFAULT);
        let span = span.clamp(Duration::from_millis(1), Duration::from_millis(SPAN_MS_MAX));
        let until = env.now + span;
        self.event(EventKind::WaitingForChildren, env.now, |event| event.until = Some(until));
        self.settle();
        let life = &mut self.job.life;
        life.lost = None;
        let barrier = Barrier { since: env.now, until, on_timeout, approval: None };
        life.family.get_or_insert_default().waits = Some(barrier);
        life.state = JobState::Pending;
        life.due_at = until;
        self.mint(env);
        self
    }

    /// Lets the parent continue. The opening is recorded, so that later attempts of this life still know about it.
    fn open(&mut self, partial: bool, now: Timestamp) {
        if let Some(family) = &mut self.job.life.family {
            family.waits = None;
            family.rounds += 1;
            family.partial = partial;
        }
        self.event(EventKind::ChildrenGathered, now, |event| {
            event.message = partial.then(|| Arc::from("a person let it go on with what there is"));
        });
    }

    /// Asks people, with the rules of a policy approval: a person other than the submitter answers, and the answer is
    /// audited.
    fn review(mut self, why: &str, env: &Env<'_>) -> Self {
        let snapshot = match &env.judgement {
            Judgement::Decided(verdict) => verdict.snapshot.clone(),
            Judgement::Unavailable(_) => BUILTIN_ALLOW.into(),
        };
        let reason = format!("{why}; may it go on with what there is?");
        let question = Verdict::plain(Decision::RequireApproval, REVIEW_RULE, reason, snapshot)
            .but(|question| question.rule_hash = REVIEW_RULE.into());
        let life = &mut self.job.life;
        life.attempt.verdict = Some(Arc::new(question.clone()));
        let before = life.approval.take();
        if let Some(barrier) = life.family.as_mut().and_then(|family| family.waits.as_mut()) {
            barrier.approval = before;
        }
        self.ask(&question, env)
    }

    /// If the granted approval is the review: opens the barrier, and restores the policy approval that the review had
    /// replaced.
    pub(super) fn after_review(&mut self, now: Timestamp) {
        let reviewed = self.job.life.approval.as_ref().is_some_and(|approval| &*approval.rule == REVIEW_RULE);
        let waits = self.job.life.family.as_mut().and_then(|family| family.waits.as_mut());
        if let Some(barrier) = waits.filter(|_| reviewed) {
            self.job.life.approval = barrier.approval.take();
            self.open(true, now);
        }
    }
}
