//! Children: jobs that an attempt submits under its own fence, and the barrier behind which their parent waits for them.
//!
//! A parent that waits is PENDING with its next attempt minted: no worker holds it, no limit is taken for it, its deadline and a
//! cancel find it as they find every waiting job. That it waits is a duty (G-3), so the loop that opens barriers finds it after any
//! crash, and whether its barrier is open is read off its children's rows: nothing counts them down.

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

/// Named in the question and in its answer. No policy has such a rule: names of rules have no colon.
const REVIEW_RULE: &str = "children:review";
/// How long a parent waits that names no time.
pub const WAIT_DEFAULT: Duration = Duration::from_secs(24 * 3600);

/// What a life knows of the jobs that its attempts submitted. Absent: it never submitted any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// The next attempt waits for them.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Barrier>,
    /// How often a barrier opened in this life.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub rounds: u32,
    /// The last one opened before all of them had ended, because a person said so.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The life ended badly, and none of them goes on.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
}

/// What a parent waits behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    #[serde(rename = "s")]
    pub since: Timestamp,
    #[serde(rename = "u")]
    pub until: Timestamp,
    #[serde(rename = "t", default)]
    pub on_timeout: OnTimeout,
    /// What policy's own question had got before the review took its place.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
}

/// What follows if children are still under way when the time is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The parent ends as FAILED.
    #[default]
    Fail,
    /// A person decides whether it goes on with what there is.
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
    /// What the parent waits behind, until its barrier opens or its time is up.
    pub fn barrier(&self) -> Option<&Barrier> {
        self.life.family.as_ref()?.waits.as_ref().filter(|_| self.life.state == JobState::Pending)
    }

    /// F-3: the life ended otherwise than well, and children of it may still be under way.
    pub(super) fn owes_its_children_an_end(&self) -> bool {
        let badly = matches!(self.life.state, JobState::Failed | JobState::Timeout | JobState::Cancelled | JobState::Denied);
        badly && self.life.family.as_ref().is_some_and(|family| !family.settled)
    }

    /// F-1: an attempt is about to submit so many new children. They are inserted against the version that this leaves, so
    /// an attempt that no longer counts adds none; and a life that has children knows it before there is one.
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

    /// F-2: none of its children is under way. A reader that saw this before the attempt that waits was minted saw other children.
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

    /// The time of the barrier is up, and it was not opened before.
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

    /// F-3: the life ended badly, and whatever of its children was under way was stopped. A later life has children of its own.
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
    /// The attempt ends without ending the job: the next one comes when none of the children is under way. Costs no attempt.
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

    /// The parent goes on. What opened is written down, so that a later attempt of the same life still knows it.
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

    /// A question to people, like those of policy: a person other than the submitter answers, and it is audited.
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

    /// If it is the review that was granted: the barrier is open, and what policy had been told counts again.
    pub(super) fn after_review(&mut self, now: Timestamp) {
        let reviewed = self.job.life.approval.as_ref().is_some_and(|approval| &*approval.rule == REVIEW_RULE);
        let waits = self.job.life.family.as_mut().and_then(|family| family.waits.as_mut());
        if let Some(barrier) = waits.filter(|_| reviewed) {
            self.job.life.approval = barrier.approval.take();
            self.open(true, now);
        }
    }
}
