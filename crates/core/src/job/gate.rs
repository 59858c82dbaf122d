//! The approval gate: an approval that the platform itself requires, for a node of a run that asks for one.

use std::sync::Arc;

use super::{EventKind, JobState, Transition};
use crate::request::{ApprovalGate, Json};
use crate::time::Timestamp;
use crate::verdict::{ApprovalTerms, Decision, Verdict};

/// The rule name of the gate's approval. Policy rules cannot have it, because their names contain no colon.
const RULE: &str = "dag:approval";

impl Transition {
    /// Turns an allowing verdict into one that requires the gate's approval. A denial stays a denial; if policy requires
    /// approval too, both are merged so that people are asked once.
    pub(super) fn behind_the_gate(&self, verdict: &Arc<Verdict>) -> Arc<Verdict> {
        let Some(gate) = &self.job.request.gate else { return verdict.clone() };
        match verdict.decision {
            Decision::Allow | Decision::AllowWithConstraints => {}
            Decision::RequireApproval => return Arc::new(both(verdict, gate)),
            Decision::Deny | Decision::Throttle | Decision::Unknown(_) => return verdict.clone(),
        }
        if self.job.life.approval.as_ref().is_some_and(|given| given.granted_at.is_some()) {
            return verdict.clone();
        }
        Arc::new(Verdict::clone(verdict).but(|question| {
            question.decision = Decision::RequireApproval;
            question.rule = RULE.into();
            question.rule_hash = RULE.into();
            question.reason = gate.reason.clone();
            question.approval = Some(gate.terms.clone());
        }))
    }

    /// The node consists of the approval alone: the job ends when it is given.
    pub(super) fn agreed(mut self, now: Timestamp) -> Self {
        let votes = self.job.life.approval.iter().flat_map(|approval| &approval.votes);
        let people: Vec<&str> = votes.map(|vote| vote.actor.as_str()).collect();
        self.result = Some(Json::trusted(serde_json::json!({ "approved_by": people }).to_string()));
        self.event(EventKind::Succeeded, now, |_| {});
        self.end(JobState::Succeeded, None, now)
    }
}

/// Policy's approval and the gate's merged: the larger number of votes, within the shorter time.
fn both(verdict: &Verdict, gate: &ApprovalGate) -> Verdict {
    let asked = verdict.approval.clone().unwrap_or_default();
    let sooner = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    let terms = ApprovalTerms {
        approvers: asked.approvers.max(gate.terms.approvers),
        request_expiry_ms: sooner(asked.request_expiry_ms, gate.terms.request_expiry_ms),
        valid_for_ms: sooner(asked.valid_for_ms, gate.terms.valid_for_ms),
    };
    let reason = format!("{}; {}", gate.reason, verdict.reason);
    verdict.clone().but(|question| {
        question.approval = Some(terms);
        question.reason = reason.into();
    })
}
