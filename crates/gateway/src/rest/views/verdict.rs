//! What policy said about a job and about its result.

use lockgate_core::job as core;
use lockgate_core::policy::{Explanation, LookOutcome, RuleTrace};
use lockgate_core::scan;
use lockgate_core::verdict;
use serde::Serialize;
use utoipa::ToSchema;

use super::Name;
use super::names::{AccessName, DecisionName, FindingKindName, OutputDecisionName, OutputStageName, PolicyScopeName};

/// A decision with its grounds.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Verdict {
    decision: DecisionName,
    /// The rule that decided.
    rule: String,
    /// Hash of the rule's own text; approvals are bound to it.
    #[serde(skip_serializing_if = "String::is_empty")]
    rule_hash: String,
    reason: String,
    /// The policy it was made under.
    snapshot: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<Constraints>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalTerms>,
    /// What the submitter could change to be allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remediations: Vec<Remediation>,
}

/// Conditions under which an attempt may run.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Constraints {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_runtime_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_pools: Option<Vec<String>>,
    /// Whether the handler may use the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<AccessName>,
    /// Whether the handler may start programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<AccessName>,
}

/// Who must agree, and for how long that counts.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct ApprovalTerms {
    approvers: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_expiry_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_for_ms: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Remediation {
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement_topic: Option<String>,
}

/// A verdict and the rules that were looked at on the way to it.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Explained {
    verdict: Verdict,
    /// In the order they were looked at.
    steps: Vec<Step>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Step {
    scope: PolicyScopeName,
    rule: String,
    /// matched, missed or failed; a rule that cannot be evaluated denies
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The check of a result.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct OutputCheck {
    /// The attempt whose result it is.
    attempt: u32,
    stage: OutputStageName,
    /// Absent before the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<OutputDecisionName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// Places in the result, never the text itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    released_by: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Finding {
    kind: FindingKindName,
    rule: String,
    /// In bytes of the result's text.
    offset: usize,
    length: usize,
    /// Keyed: equal for equal text, and says nothing else.
    hash: String,
}

impl From<&verdict::Verdict> for Verdict {
    fn from(verdict: &verdict::Verdict) -> Self {
        Self {
            decision: Name(verdict.decision),
            rule: verdict.rule.to_string(),
            rule_hash: verdict.rule_hash.to_string(),
            reason: verdict.reason.to_string(),
            snapshot: verdict.snapshot.to_string(),
            constraints: (!verdict.constraints.is_none()).then(|| Constraints::from(&verdict.constraints)),
            approval: verdict.approval.as_ref().map(ApprovalTerms::from),
            remediations: verdict.remediations.iter().map(Remediation::from).collect(),
        }
    }
}

impl From<&verdict::Constraints> for Constraints {
    fn from(constraints: &verdict::Constraints) -> Self {
        let pools = constraints.allowed_pools.as_ref();
        Self {
            max_runtime_ms: constraints.max_runtime_ms,
            max_retries: constraints.max_retries,
            max_output_bytes: constraints.max_output_bytes,
            max_concurrent: constraints.max_concurrent,
            allowed_pools: pools.map(|pools| pools.iter().map(ToString::to_string).collect()),
            network: constraints.network.map(Name),
            exec: constraints.exec.map(Name),
        }
    }
}

impl From<&verdict::ApprovalTerms> for ApprovalTerms {
    fn from(terms: &verdict::ApprovalTerms) -> Self {
        let verdict::ApprovalTerms { approvers, request_expiry_ms, valid_for_ms } = *terms;
        Self { approvers, request_expiry_ms, valid_for_ms }
    }
}

impl From<&verdict::Remediation> for Remediation {
    fn from(remediation: &verdict::Remediation) -> Self {
        Self {
            title: remediation.title.to_string(),
            summary: remediation.summary.as_ref().map(ToString::to_string),
            replacement_topic: remediation.replacement_topic.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Explanation> for Explained {
    fn from(explanation: &Explanation) -> Self {
        Self { verdict: Verdict::from(&*explanation.verdict), steps: explanation.looks.iter().map(Step::from).collect() }
    }
}

impl From<&RuleTrace> for Step {
    fn from(look: &RuleTrace) -> Self {
        let (outcome, why) = match &look.outcome {
            LookOutcome::Matched => ("matched", None),
            LookOutcome::Missed(why) => ("missed", Some(why.clone())),
            LookOutcome::Failed(why) => ("failed", Some(why.clone())),
        };
        Self { scope: Name(look.scope), rule: look.rule.to_string(), outcome, why }
    }
}

impl From<&core::OutputCheck> for OutputCheck {
    fn from(check: &core::OutputCheck) -> Self {
        let verdict = check.verdict.as_deref();
        Self {
            attempt: check.attempt,
            stage: Name(check.stage),
            decision: verdict.map(|verdict| Name(verdict.decision)),
            rule: verdict.map(|verdict| verdict.rule.to_string()),
            reason: verdict.map(|verdict| verdict.reason.to_string()),
            snapshot: verdict.map(|verdict| verdict.snapshot.to_string()),
            findings: verdict.into_iter().flat_map(|verdict| &verdict.findings).map(Finding::from).collect(),
            released_by: check.released_by.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&scan::Finding> for Finding {
    fn from(finding: &scan::Finding) -> Self {
        Self {
            kind: Name(finding.kind),
            rule: finding.rule.to_string(),
            offset: finding.offset,
            length: finding.length,
            hash: finding.hash.clone(),
        }
    }
}
