//! Overlays of tenants and workflows: they can make a verdict stricter, never weaker.

use super::rule::hash_of;
use crate::verdict::{ApprovalTerms, Decision, Verdict};

/// The stricter of two verdicts, under the constraints of both.
///
/// Where the other verdict adds constraints, the hash covers both rules: an approval given under one set of constraints must
/// not outlive a change of either rule.
pub(super) fn tighten(base: Verdict, overlay: Verdict) -> Verdict {
    let stricter = strictness(overlay.decision) > strictness(base.decision);
    let (decided, other) = if stricter { (overlay, base) } else { (base, overlay) };
    if matches!(decided.decision, Decision::Deny | Decision::Throttle | Decision::Unknown(_)) {
        return decided;
    }
    let constraints = decided.constraints.and(&other.constraints);
    let approval = match (&decided.approval, &other.approval) {
        (Some(a), Some(b)) => Some(stricter_terms(a, b)),
        (a, _) => a.clone(),
    };
    if constraints == decided.constraints && approval == decided.approval {
        return decided;
    }
    decided.but(|decided| {
        decided.rule_hash = hash_of(&[&decided.rule_hash, &other.rule_hash]);
        decided.constraints = constraints;
        decided.approval = approval;
    })
}

const fn strictness(decision: Decision) -> u8 {
    match decision {
        Decision::Allow => 0,
        Decision::AllowWithConstraints => 1,
        Decision::Throttle => 2,
        Decision::RequireApproval => 3,
        Decision::Deny | Decision::Unknown(_) => 4,
    }
}

fn stricter_terms(a: &ApprovalTerms, b: &ApprovalTerms) -> ApprovalTerms {
    let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    ApprovalTerms {
        approvers: a.approvers.max(b.approvers),
        request_expiry_ms: least(a.request_expiry_ms, b.request_expiry_ms),
        valid_for_ms: least(a.valid_for_ms, b.valid_for_ms),
    }
}
