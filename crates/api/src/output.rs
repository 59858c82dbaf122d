//! What policy says about results: the gateway tells it, a scheduler with a remote kernel takes it, and clients read it as JSON.

use lockgate_core::job::{self, OutputStage};
use lockgate_core::output::{OutputDecision, OutputVerdict};
use lockgate_core::request::Json;
use lockgate_core::scan::{self, FindingKind};
use lockgate_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use crate::name_set::{FindingKindName, OutputDecisionName, OutputStageName};
use crate::{FromWire, ToWire, present, text};

/// The check of a result.
#[derive(Debug, Serialize, ToSchema)]
pub struct OutputCheck {
    /// The attempt whose result it is.
    pub attempt: u32,
    pub stage: OutputStageName,
    /// Absent before the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<OutputDecisionName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Places in the result, never the text itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released_by: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Finding {
    pub kind: FindingKindName,
    pub rule: String,
    /// In bytes of the result's text.
    pub offset: u64,
    pub length: u64,
    /// Keyed: equal for equal text, and says nothing else.
    pub hash: String,
}

pub fn output_verdict_to_wire(verdict: &OutputVerdict) -> v1::CheckOutputResponse {
    v1::CheckOutputResponse {
        decision: verdict.decision.as_str().to_owned(),
        rule: verdict.rule.to_string(),
        reason: verdict.reason.to_string(),
        snapshot: verdict.snapshot.to_string(),
        findings: verdict.findings.iter().map(ToWire::to_wire).collect(),
        redacted_json: verdict.redacted.as_ref().map(crate::json_bytes).unwrap_or_default(),
    }
}

/// Takes a verdict off the wire. One that is not known here, or promises a redacted copy that cannot be kept, holds
/// the result back.
pub fn output_verdict_from_wire(wire: v1::CheckOutputResponse) -> OutputVerdict {
    let known = OutputDecision::ALL.into_iter().find(|decision| decision.as_str() == wire.decision);
    let redacted = std::str::from_utf8(&wire.redacted_json).ok().and_then(|text| Json::parse(text).ok());
    let (decision, reason) = match known {
        None => {
            let reason = format!("the kernel gave a decision that is not known here ({:?}): {}", wire.decision, wire.reason);
            (OutputDecision::Quarantine, reason)
        }
        Some(OutputDecision::Redact) if redacted.is_none() => {
            (OutputDecision::Quarantine, format!("{}; held back because no redacted copy came with it", wire.reason))
        }
        Some(decision) => (decision, wire.reason),
    };
    OutputVerdict {
        decision,
        rule: wire.rule.into(),
        reason: reason.into(),
        snapshot: wire.snapshot.into(),
        findings: wire.findings.into_iter().map(scan::Finding::from_wire).collect(),
        redacted: redacted.filter(|_| decision == OutputDecision::Redact),
    }
}

/// How far the check of a result has come, in one word.
pub(crate) const fn output_stage_name(stage: OutputStage) -> &'static str {
    match stage {
        OutputStage::Scanning => "scanning",
        OutputStage::Held => "held",
        OutputStage::Unchecked => "unchecked",
        OutputStage::Checked => "checked",
    }
}

impl ToWire for job::OutputCheck {
    type Wire = v1::OutputCheck;

    fn to_wire(&self) -> v1::OutputCheck {
        let verdict = self.verdict.as_deref();
        v1::OutputCheck {
            attempt: self.attempt,
            stage: output_stage_name(self.stage).to_owned(),
            decision: text(verdict.map(|verdict| verdict.decision.as_str())),
            rule: text(verdict.map(|verdict| &*verdict.rule)),
            reason: text(verdict.map(|verdict| &*verdict.reason)),
            snapshot: text(verdict.map(|verdict| &*verdict.snapshot)),
            findings: verdict.map_or(&[][..], |verdict| &verdict.findings).iter().map(ToWire::to_wire).collect(),
            released_by: self.released_by.as_ref().map(ToString::to_string).unwrap_or_default(),
        }
    }
}

impl ToWire for scan::Finding {
    type Wire = v1::OutputFinding;

    fn to_wire(&self) -> v1::OutputFinding {
        v1::OutputFinding {
            kind: self.kind.as_str().to_owned(),
            rule: self.rule.to_string(),
            offset: self.offset as u64,
            length: self.length as u64,
            hash: self.hash.clone(),
        }
    }
}

const KINDS: [FindingKind; 4] = [FindingKind::Secrets, FindingKind::Pii, FindingKind::Injection, FindingKind::Pattern];

impl FromWire for scan::Finding {
    type Wire = v1::OutputFinding;

    fn from_wire(wire: v1::OutputFinding) -> Self {
        Self {
            // A kind that only a newer kernel knows is still a place that some pattern found.
            kind: KINDS.into_iter().find(|kind| kind.as_str() == wire.kind).unwrap_or(FindingKind::Pattern),
            rule: wire.rule.into(),
            offset: usize::try_from(wire.offset).unwrap_or(usize::MAX),
            length: usize::try_from(wire.length).unwrap_or(0),
            hash: wire.hash,
        }
    }
}

impl From<v1::OutputCheck> for OutputCheck {
    fn from(wire: v1::OutputCheck) -> Self {
        // Before the check there is no verdict, and nothing of one.
        let checked = !wire.decision.is_empty();
        let of_verdict = |text: String| checked.then_some(text);
        Self {
            attempt: wire.attempt,
            stage: wire.stage.into(),
            decision: present(wire.decision).map(OutputDecisionName::from),
            rule: of_verdict(wire.rule),
            reason: of_verdict(wire.reason),
            snapshot: of_verdict(wire.snapshot),
            findings: wire.findings.into_iter().map(Finding::from).collect(),
            released_by: present(wire.released_by),
        }
    }
}

impl From<v1::OutputFinding> for Finding {
    fn from(wire: v1::OutputFinding) -> Self {
        let v1::OutputFinding { kind, rule, offset, length, hash } = wire;
        Self { kind: kind.into(), rule, offset, length, hash }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(decision: OutputDecision) -> OutputVerdict {
        let finding = |kind| scan::Finding { kind, rule: "aws-key".into(), offset: 3, length: 20, hash: "00ff".into() };
        OutputVerdict {
            decision,
            rule: "r".into(),
            reason: "because".into(),
            snapshot: "sha256:1".into(),
            findings: KINDS.map(finding).into(),
            redacted: (decision == OutputDecision::Redact).then(|| Json::trusted(r#"{"a":"[…]"}"#)),
        }
    }

    #[test]
    fn every_output_verdict_survives_the_wire() {
        for decision in OutputDecision::ALL {
            let verdict = verdict(decision);
            assert_eq!(output_verdict_from_wire(output_verdict_to_wire(&verdict)), verdict);
        }
    }

    #[test]
    fn what_is_not_understood_holds_the_result_back() {
        let redact = output_verdict_to_wire(&verdict(OutputDecision::Redact));
        for wire in [
            v1::CheckOutputResponse { decision: "release".into(), ..redact.clone() },
            v1::CheckOutputResponse { decision: String::new(), ..redact.clone() },
            v1::CheckOutputResponse { redacted_json: "{".into(), ..redact.clone() },
            v1::CheckOutputResponse { redacted_json: bytes::Bytes::new(), ..redact },
        ] {
            let verdict = output_verdict_from_wire(wire);
            assert_eq!((verdict.decision, verdict.redacted), (OutputDecision::Quarantine, None));
        }
    }
}
