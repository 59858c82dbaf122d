//! Approvals: people agree to or refuse a job. An approval satisfies a rule that requires one, never a rule that denies.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Env, EventKind, Evidence, Failure, Illegal, Job, JobState, Reason, Transition, clipped};
use crate::ids::ActorId;
use crate::request::RequestHash;
use crate::time::Timestamp;
use crate::verdict::{ApprovalTerms, Decision, Judgement, Verdict};

/// A request for approval and the votes so far. It is bound to one rule; the job's request hash binds it to the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub rule: Arc<str>,
    pub rule_hash: Arc<str>,
    pub terms: ApprovalTerms,
    pub asked_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    pub actor: ActorId,
    pub at: Timestamp,
    /// The person agreed without being allowed to see the payload, and said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
}

impl Approval {
    pub(super) fn ask(verdict: &Verdict, now: Timestamp) -> Self {
        Self {
            rule: verdict.rule.clone(),
            rule_hash: verdict.rule_hash.clone(),
            terms: verdict.approval.clone().unwrap_or_default(),
            asked_at: now,
            votes: Vec::new(),
            granted_at: None,
        }
    }

    /// When the request for approval expires unanswered.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.terms.request_expiry_ms.map(|ms| self.asked_at + Duration::from_millis(ms))
    }

    /// G-2: whether this approval satisfies `verdict` at `now`.
    pub(super) fn satisfies(&self, verdict: &Verdict, now: Timestamp) -> bool {
        let valid_for = self.terms.valid_for_ms.map(Duration::from_millis);
        let valid = |granted: Timestamp| valid_for.is_none_or(|span| now < granted + span);
        self.rule_hash == verdict.rule_hash && self.granted_at.is_some_and(valid)
    }
}

/// One person's vote. It names the request and the rule it is for, so that it cannot count for another request or another
/// rule.
#[derive(Clone, Debug)]
pub struct Ballot {
    pub actor: ActorId,
    pub answer: Answer,
    pub note: Option<Arc<str>>,
    pub request_hash: RequestHash,
    pub rule_hash: Arc<str>,
    pub sight: Sight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Approve,
    Reject,
}

/// How much of the request the credential lets its bearer see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    Whole,
    /// Payload, environment and compensation are hidden from the voter.
    Hidden,
    /// Those fields are hidden, and the voter states that they know it.
    HiddenAcknowledged,
}

impl Job {
    pub(super) fn voted(&self, ballot: Ballot, env: &Env<'_>) -> Result<Transition, Illegal> {
        let approval = self.answerable(&ballot, env.now)?;
        let mut transition = Transition::from(self);
        let note = ballot.note.as_deref().map(clipped);
        if ballot.answer == Answer::Reject {
            return Ok(transition.reject(ballot.actor, note, env.now));
        }
        let mut approval = approval.clone();
        let payload_hidden = ballot.sight != Sight::Whole;
        approval.votes.push(Vote { actor: ballot.actor.clone(), at: env.now, payload_hidden });
        let granted = approval.votes.len() >= approval.terms.approvers as usize;
        approval.granted_at = granted.then_some(env.now);
        let rule = approval.rule.clone();
        transition.job.life.approval = Some(approval);
        transition.event(EventKind::Approved, env.now, |event| {
            event.actor = Some(ballot.actor);
            event.message = note;
            event.rule = Some(rule);
            event.payload_hidden = payload_hidden;
        });
        Ok(if granted { transition.after_grant(env) } else { transition })
    }

    /// The open question, if this ballot may answer it.
    fn answerable(&self, ballot: &Ballot, now: Timestamp) -> Result<&Approval, Illegal> {
        let asked = self.life.approval.as_ref();
        // A second vote of one person changes nothing, even if their first vote was the last one needed. Check it before the
        // state.
        if asked.is_some_and(|asked| asked.votes.iter().any(|vote| vote.actor == ballot.actor)) {
            return Err(Illegal::AlreadyVoted);
        }
        let Some(asked) = asked.filter(|_| self.life.state == JobState::ApprovalRequired) else {
            return Err(Illegal::State { input: "approval", state: self.life.state });
        };
        if ballot.actor == self.request.actor && ballot.answer == Answer::Approve {
            return Err(Illegal::SelfApproval);
        }
        if ballot.request_hash != self.hash {
            return Err(Illegal::StaleApproval("request"));
        }
        if ballot.rule_hash != asked.rule_hash {
            return Err(Illegal::StaleApproval("rule"));
        }
        if asked.expires_at().is_some_and(|at| at <= now) {
            return Err(Illegal::ApprovalExpired);
        }
        // A refusal needs no sight of the payload; an approval without it must be explicit.
        if ballot.answer == Answer::Approve && ballot.sight == Sight::Hidden {
            return Err(Illegal::PayloadHidden);
        }
        Ok(asked)
    }

    /// The request for approval expired: the job is denied.
    pub(super) fn approval_expired(&self, env: &Env<'_>) -> Option<Transition> {
        let asked = self.life.approval.as_ref().filter(|_| self.life.state == JobState::ApprovalRequired)?;
        let expired = asked.expires_at().filter(|at| *at <= env.now)?;
        let mut transition = Transition::from(self);
        transition.evidence = Evidence::Reached(expired);
        let failure =
            Failure::new(Reason::ApprovalExpired, format!("nobody answered the approval rule {} asks for", asked.rule));
        Some(transition.denied(failure, None, env.now))
    }
}

impl Transition {
    fn reject(self, actor: ActorId, note: Option<Arc<str>>, now: Timestamp) -> Self {
        let text = note.map_or_else(|| format!("{actor} rejected it"), |note| format!("{actor} rejected it: {note}"));
        self.denied(Failure::new(Reason::ApprovalRejected, text), Some(actor), now)
    }

    /// Judges the job in the commit that grants the approval: the policy in force now decides, and may deny what it once
    /// asked about.
    fn after_grant(mut self, env: &Env<'_>) -> Self {
        self.after_review(env.now);
        let due_at = self.job.life.due_at.max(env.now);
        match &env.judgement {
            Judgement::Decided(verdict) if verdict.decision != Decision::Throttle => self.judge(due_at, env),
            // Going back to PENDING needs a new attempt, because ranks only grow within one attempt (J-1). The approval is
            // kept.
            _ => self.next_attempt(due_at, env),
        }
    }
}
