//! What policy said about a job and about its result, as the REST contract has it.

use lockgate_api::{scope_name, verdict_from_wire};
use lockgate_core::policy::{Explanation, LookOutcome, RuleTrace};
use lockgate_core::verdict::{self, Access};
use lockgate_proto::v1;
use serde::Serialize;

use super::convert::present;

#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) decision: &'static str,
    pub(crate) rule: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) rule_hash: String,
    pub(crate) reason: String,
    pub(crate) snapshot: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) constraints: Option<Constraints>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<ApprovalTerms>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remediations: Vec<Remediation>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Constraints {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ApprovalTerms {
    approvers: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_expiry_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_for_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Remediation {
    pub(crate) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replacement_topic: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Explained {
    pub(crate) verdict: Verdict,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Step {
    pub(crate) scope: &'static str,
    pub(crate) rule: String,
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct OutputCheck {
    pub(crate) attempt: u32,
    pub(crate) stage: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) released_by: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) kind: String,
    pub(crate) rule: String,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) hash: String,
}

impl From<v1::Verdict> for Verdict {
    fn from(wire: v1::Verdict) -> Self {
        Self::from(&verdict_from_wire(wire))
    }
}

impl From<&verdict::Verdict> for Verdict {
    fn from(verdict: &verdict::Verdict) -> Self {
        let remediation = |remediation: &verdict::Remediation| Remediation {
            title: remediation.title.to_string(),
            summary: remediation.summary.as_ref().map(ToString::to_string),
            replacement_topic: remediation.replacement_topic.as_ref().map(ToString::to_string),
        };
        let terms = |terms: &verdict::ApprovalTerms| ApprovalTerms {
            approvers: terms.approvers,
            request_expiry_ms: terms.request_expiry_ms,
            valid_for_ms: terms.valid_for_ms,
        };
        Self {
            decision: verdict.decision.as_str(),
            rule: verdict.rule.to_string(),
            rule_hash: verdict.rule_hash.to_string(),
            reason: verdict.reason.to_string(),
            snapshot: verdict.snapshot.to_string(),
            constraints: (!verdict.constraints.is_none()).then(|| Constraints::from(&verdict.constraints)),
            approval: verdict.approval.as_ref().map(terms),
            remediations: verdict.remediations.iter().map(remediation).collect(),
        }
    }
}

impl From<&verdict::Constraints> for Constraints {
    fn from(constraints: &verdict::Constraints) -> Self {
        let access = |access: Access| match access {
            Access::Allow => "allow",
            Access::Deny => "deny",
        };
        let pools = constraints.allowed_pools.as_ref();
        Self {
            max_runtime_ms: constraints.max_runtime_ms,
            max_retries: constraints.max_retries,
            max_output_bytes: constraints.max_output_bytes,
            max_concurrent: constraints.max_concurrent,
            allowed_pools: pools.map(|pools| pools.iter().map(ToString::to_string).collect()),
            network: constraints.network.map(access),
            exec: constraints.exec.map(access),
        }
    }
}

impl Constraints {
    /// `network=deny max_runtime_ms=500`.
    pub(crate) fn text(&self) -> String {
        let number = |name: &str, number: Option<u64>| number.map(|number| format!("{name}={number}"));
        let word = |name: &str, word: Option<&str>| word.map(|word| format!("{name}={word}"));
        let pools = self.allowed_pools.as_ref().map(|pools| pools.join(","));
        let parts = [
            number("max_runtime_ms", self.max_runtime_ms),
            number("max_retries", self.max_retries.map(u64::from)),
            number("max_output_bytes", self.max_output_bytes),
            number("max_concurrent", self.max_concurrent.map(u64::from)),
            word("allowed_pools", pools.as_deref()),
            word("network", self.network),
            word("exec", self.exec),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
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
        Self { scope: scope_name(look.scope), rule: look.rule.to_string(), outcome, why }
    }
}

impl From<v1::OutputCheck> for OutputCheck {
    fn from(check: v1::OutputCheck) -> Self {
        let finding = |finding: v1::OutputFinding| Finding {
            kind: finding.kind,
            rule: finding.rule,
            offset: finding.offset,
            length: finding.length,
            hash: finding.hash,
        };
        Self {
            attempt: check.attempt,
            stage: check.stage,
            decision: present(check.decision),
            rule: present(check.rule),
            reason: present(check.reason),
            snapshot: present(check.snapshot),
            findings: check.findings.into_iter().map(finding).collect(),
            released_by: present(check.released_by),
        }
    }
}
