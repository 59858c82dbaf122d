//! Verdicts: the gateway gives them, a scheduler with a remote kernel takes them, and clients read them as JSON.

use std::sync::Arc;

use lockgate_core::policy::{Explanation, LookOutcome, RuleScope, RuleTrace};
use lockgate_core::verdict::{self as core, Access, Decision, Grounds};
use lockgate_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use crate::name_set::{AccessName, DecisionName, PolicyScopeName, RuleOutcomeName};
use crate::{FromWire, ToWire, present};

/// A decision with its grounds.
#[derive(Debug, Serialize, ToSchema)]
pub struct Verdict {
    pub decision: DecisionName,
    /// The rule that decided.
    pub rule: String,
    /// Hash of the rule's own text; approvals are bound to it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule_hash: String,
    pub reason: String,
    /// The policy it was made under.
    pub snapshot: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Constraints>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalTerms>,
    /// What the submitter could change to be allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remediations: Vec<Remediation>,
}

/// Conditions under which an attempt may run.
#[derive(Debug, Serialize, ToSchema)]
pub struct Constraints {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runtime_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_pools: Option<Vec<String>>,
    /// Whether the handler may use the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<AccessName>,
    /// Whether the handler may start programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<AccessName>,
}

/// Who must agree, and for how long that counts.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalTerms {
    pub approvers: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_expiry_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_for_ms: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Remediation {
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement_topic: Option<String>,
}

/// A verdict and the rules that were looked at on the way to it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Explained {
    pub verdict: Verdict,
    /// In the order they were looked at.
    pub steps: Vec<Step>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Step {
    pub scope: PolicyScopeName,
    pub rule: String,
    /// matched, missed or failed; a rule that cannot be evaluated denies
    #[schema(value_type = RuleOutcomeName)]
    pub outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

pub fn verdict_to_wire(verdict: &core::Verdict) -> v1::Verdict {
    v1::Verdict {
        decision: verdict.decision.to_wire().into(),
        rule: verdict.rule.to_string(),
        rule_hash: verdict.rule_hash.to_string(),
        reason: told_reason(verdict),
        snapshot: verdict.snapshot.to_string(),
        constraints: (!verdict.constraints.is_none()).then(|| verdict.constraints.to_wire()),
        approval: verdict.approval.as_ref().map(ToWire::to_wire),
        remediations: verdict.remediations.iter().map(ToWire::to_wire).collect(),
    }
}

/// The wire has no number for a decision that only a newer version knows, so the reason names it.
fn told_reason(verdict: &core::Verdict) -> String {
    match &verdict.decision {
        Decision::Unknown(name) => format!("a newer version decided {:?}: {}", name.as_str(), verdict.reason),
        _ => verdict.reason.to_string(),
    }
}

/// Takes a verdict off the wire. A decision that is not known here is a denial, and says so. Nobody can send a bypass:
/// only the scheduler itself lets jobs through unjudged.
pub fn verdict_from_wire(wire: v1::Verdict) -> core::Verdict {
    let known = known_decision(wire.decision);
    let reason = match known {
        Some(_) => wire.reason,
        None => format!("the kernel gave a decision that is not known here ({}): {}", wire.decision, wire.reason),
    };
    core::Verdict::from(Grounds {
        decision: known.unwrap_or(Decision::Deny),
        rule: wire.rule.into(),
        rule_hash: wire.rule_hash.into(),
        reason: reason.into(),
        snapshot: wire.snapshot.into(),
        constraints: wire.constraints.map(core::Constraints::from_wire).unwrap_or_default(),
        approval: wire.approval.map(core::ApprovalTerms::from_wire),
        remediations: wire.remediations.into_iter().map(core::Remediation::from_wire).collect(),
        bypassed: false,
        unanswered: false,
    })
}

/// The decision a number stands for, if it does.
fn known_decision(number: i32) -> Option<Decision> {
    let wire = v1::Decision::try_from(number).ok()?;
    Decision::ALL.into_iter().find(|decision| decision.to_wire() == wire)
}

pub fn explanation_to_wire(explanation: &Explanation) -> v1::ExplainResponse {
    v1::ExplainResponse {
        verdict: Some(verdict_to_wire(&explanation.verdict)),
        steps: explanation.looks.iter().map(ToWire::to_wire).collect(),
    }
}

/// Without a verdict there is no explanation either.
pub fn explanation_from_wire(wire: v1::ExplainResponse) -> Option<Explanation> {
    let verdict = verdict_from_wire(wire.verdict?);
    Some(Explanation { verdict: verdict.into(), looks: wire.steps.into_iter().map(look).collect() })
}

impl ToWire for RuleTrace {
    type Wire = v1::RuleStep;

    fn to_wire(&self) -> v1::RuleStep {
        let (matched, failed, why_not) = match &self.outcome {
            LookOutcome::Matched => (true, false, String::new()),
            LookOutcome::Missed(why) => (false, false, why.clone()),
            LookOutcome::Failed(why) => (false, true, why.clone()),
        };
        v1::RuleStep { rule: self.rule.to_string(), matched, why_not, scope: scope_name(self.scope).to_owned(), failed }
    }
}

fn look(step: v1::RuleStep) -> RuleTrace {
    let outcome = match (step.matched, step.failed) {
        (_, true) => LookOutcome::Failed(step.why_not),
        (true, false) => LookOutcome::Matched,
        (false, false) => LookOutcome::Missed(step.why_not),
    };
    let scope = SCOPES.into_iter().find(|scope| scope_name(*scope) == step.scope).unwrap_or(RuleScope::Base);
    RuleTrace { scope, rule: step.rule.into(), outcome }
}

const SCOPES: [RuleScope; 3] = [RuleScope::Base, RuleScope::Tenant, RuleScope::Workflow];

/// Which part of the policy, in one word.
pub(crate) const fn scope_name(scope: RuleScope) -> &'static str {
    match scope {
        RuleScope::Base => "base",
        RuleScope::Tenant => "tenant",
        RuleScope::Workflow => "workflow",
    }
}

impl ToWire for Decision {
    type Wire = v1::Decision;

    fn to_wire(&self) -> v1::Decision {
        match self {
            Decision::Allow => v1::Decision::Allow,
            Decision::Deny => v1::Decision::Deny,
            Decision::RequireApproval => v1::Decision::RequireApproval,
            Decision::Throttle => v1::Decision::Throttle,
            Decision::AllowWithConstraints => v1::Decision::AllowWithConstraints,
            Decision::Unknown(_) => v1::Decision::Unspecified,
        }
    }
}

impl ToWire for core::Constraints {
    type Wire = v1::Constraints;

    fn to_wire(&self) -> v1::Constraints {
        let pools = |pools: &std::collections::BTreeSet<Arc<str>>| v1::PoolList {
            pools: pools.iter().map(ToString::to_string).collect(),
        };
        v1::Constraints {
            max_runtime_ms: self.max_runtime_ms,
            max_retries: self.max_retries,
            max_output_bytes: self.max_output_bytes,
            max_concurrent: self.max_concurrent,
            allowed_pools: self.allowed_pools.as_ref().map(pools),
            network: access_to_wire(self.network),
            exec: access_to_wire(self.exec),
        }
    }
}

impl FromWire for core::Constraints {
    type Wire = v1::Constraints;

    fn from_wire(wire: v1::Constraints) -> Self {
        Self {
            max_runtime_ms: wire.max_runtime_ms,
            max_retries: wire.max_retries,
            max_output_bytes: wire.max_output_bytes,
            max_concurrent: wire.max_concurrent,
            allowed_pools: wire.allowed_pools.map(|list| list.pools.into_iter().map(Arc::from).collect()),
            network: wire.network.map(access_from_wire),
            exec: wire.exec.map(access_from_wire),
            ..Self::NONE
        }
    }
}

/// Whether something may be done, if anything was said about it.
pub fn access_to_wire(access: Option<Access>) -> Option<bool> {
    access.map(|access| access == Access::Allow)
}

const fn access_from_wire(allowed: bool) -> Access {
    if allowed { Access::Allow } else { Access::Deny }
}

impl ToWire for core::ApprovalTerms {
    type Wire = v1::ApprovalTerms;

    fn to_wire(&self) -> v1::ApprovalTerms {
        v1::ApprovalTerms {
            approvers: self.approvers,
            request_expiry_ms: self.request_expiry_ms,
            valid_for_ms: self.valid_for_ms,
        }
    }
}

impl FromWire for core::ApprovalTerms {
    type Wire = v1::ApprovalTerms;

    /// Nobody's approval would be no approval.
    fn from_wire(wire: v1::ApprovalTerms) -> Self {
        Self { approvers: wire.approvers.max(1), request_expiry_ms: wire.request_expiry_ms, valid_for_ms: wire.valid_for_ms }
    }
}

impl ToWire for core::Remediation {
    type Wire = v1::Remediation;

    fn to_wire(&self) -> v1::Remediation {
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        v1::Remediation {
            title: self.title.to_string(),
            summary: text(&self.summary),
            replacement_topic: text(&self.replacement_topic),
        }
    }
}

impl FromWire for core::Remediation {
    type Wire = v1::Remediation;

    fn from_wire(wire: v1::Remediation) -> Self {
        let present = |text: String| (!text.is_empty()).then(|| text.into());
        Self { title: wire.title.into(), summary: present(wire.summary), replacement_topic: present(wire.replacement_topic) }
    }
}

impl From<v1::Verdict> for Verdict {
    /// A decision that is not known here reads as what a scheduler would make of it: a denial.
    fn from(wire: v1::Verdict) -> Self {
        let decision = known_decision(wire.decision).unwrap_or(Decision::Deny);
        Self {
            decision: decision.to_wire().into(),
            rule: wire.rule,
            rule_hash: wire.rule_hash,
            reason: wire.reason,
            snapshot: wire.snapshot,
            constraints: wire.constraints.map(Constraints::from),
            approval: wire.approval.map(ApprovalTerms::from),
            remediations: wire.remediations.into_iter().map(Remediation::from).collect(),
        }
    }
}

impl From<v1::Constraints> for Constraints {
    fn from(wire: v1::Constraints) -> Self {
        Self {
            max_runtime_ms: wire.max_runtime_ms,
            max_retries: wire.max_retries,
            max_output_bytes: wire.max_output_bytes,
            max_concurrent: wire.max_concurrent,
            allowed_pools: wire.allowed_pools.map(|list| list.pools),
            network: wire.network.map(AccessName::from),
            exec: wire.exec.map(AccessName::from),
        }
    }
}

impl From<v1::ApprovalTerms> for ApprovalTerms {
    fn from(wire: v1::ApprovalTerms) -> Self {
        let v1::ApprovalTerms { approvers, request_expiry_ms, valid_for_ms } = wire;
        Self { approvers, request_expiry_ms, valid_for_ms }
    }
}

impl From<v1::Remediation> for Remediation {
    fn from(wire: v1::Remediation) -> Self {
        let v1::Remediation { title, summary, replacement_topic } = wire;
        Self { title, summary: present(summary), replacement_topic: present(replacement_topic) }
    }
}

impl From<v1::ExplainResponse> for Explained {
    fn from(wire: v1::ExplainResponse) -> Self {
        let verdict = Verdict::from(wire.verdict.unwrap_or_default());
        Self { verdict, steps: wire.steps.into_iter().map(Step::from).collect() }
    }
}

impl From<v1::RuleStep> for Step {
    fn from(wire: v1::RuleStep) -> Self {
        let (outcome, why) = match (wire.matched, wire.failed) {
            (_, true) => ("failed", Some(wire.why_not)),
            (true, false) => ("matched", None),
            (false, false) => ("missed", Some(wire.why_not)),
        };
        Self { scope: wire.scope.into(), rule: wire.rule, outcome: outcome.to_owned(), why }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::core::{ApprovalTerms, Constraints, Remediation, Verdict};
    use super::*;

    fn full(decision: Decision) -> Verdict {
        Verdict::from(Grounds {
            decision,
            rule: "r".into(),
            rule_hash: "abc".into(),
            reason: "because".into(),
            snapshot: "sha256:1".into(),
            constraints: Constraints {
                max_runtime_ms: Some(1),
                max_retries: Some(0),
                max_output_bytes: Some(3),
                max_concurrent: Some(4),
                allowed_pools: Some(["a".into(), "b".into()].into()),
                network: Some(Access::Deny),
                exec: Some(Access::Allow),
                unknown: BTreeMap::new(),
            },
            approval: Some(ApprovalTerms { approvers: 2, request_expiry_ms: Some(5), valid_for_ms: Some(6) }),
            remediations: vec![Remediation {
                title: "t".into(),
                summary: Some("s".into()),
                replacement_topic: Some("job.safe".into()),
            }],
            bypassed: false,
            unanswered: false,
        })
    }

    #[test]
    fn every_verdict_survives_the_wire() {
        for decision in Decision::ALL {
            for verdict in [full(decision), Verdict::plain(decision, "r", "because", "s".into())] {
                assert_eq!(verdict_from_wire(verdict_to_wire(&verdict)), verdict);
            }
        }
    }

    #[test]
    fn no_pool_allowed_is_not_any_pool_allowed() {
        let none = Constraints { allowed_pools: Some([].into()), ..Constraints::default() };
        assert_eq!(Constraints::from_wire(none.to_wire()), none);
    }

    #[test]
    fn an_unknown_decision_is_a_denial() {
        for decision in [0, 6, -1] {
            let wire = v1::Verdict { decision, reason: "fine".into(), ..v1::Verdict::default() };
            let verdict = verdict_from_wire(wire);
            assert_eq!(verdict.decision, Decision::Deny);
            assert!(verdict.reason.contains("not known here"), "{}", verdict.reason);
        }
    }

    #[test]
    fn a_decision_that_only_a_newer_version_knows_is_shown_as_a_denial_that_names_it() {
        let newer: Decision = serde_json::from_str(r#""allow_on_mars""#).unwrap();
        let told = verdict_to_wire(&full(newer));
        assert!(told.reason.starts_with(r#"a newer version decided "allow_on_mars": "#), "{}", told.reason);
        assert_eq!(&*super::Verdict::from(told.clone()).decision, "deny");
        assert_eq!(verdict_from_wire(told).decision, Decision::Deny);
    }

    #[test]
    fn a_bypass_does_not_travel() {
        let bypass = Verdict::bypass("away", "s".into());
        assert!(!verdict_from_wire(verdict_to_wire(&bypass)).bypassed);
    }

    #[test]
    fn an_approval_by_nobody_becomes_one_by_somebody() {
        let wire = v1::ApprovalTerms { approvers: 0, ..v1::ApprovalTerms::default() };
        assert_eq!(ApprovalTerms::from_wire(wire).approvers, 1);
    }

    #[test]
    fn every_step_of_an_explanation_survives_the_wire() {
        let outcomes = [LookOutcome::Matched, LookOutcome::Missed("topic".into()), LookOutcome::Failed("no field".into())];
        let looks = SCOPES.into_iter().zip(outcomes);
        let looks = looks.map(|(scope, outcome)| RuleTrace { scope, rule: "r".into(), outcome }).collect();
        let explanation = Explanation { verdict: full(Decision::Deny).into(), looks };
        assert_eq!(explanation_from_wire(explanation_to_wire(&explanation)), Some(explanation));
        assert_eq!(explanation_from_wire(v1::ExplainResponse::default()), None);
    }
}
