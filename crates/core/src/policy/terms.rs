//! The terms of a rule: decision, constraints, approval terms, remediations.

use std::sync::{Arc, OnceLock};

use super::keys;
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;
use crate::ids::check_name;
use crate::limits::SPAN_MS_MAX;
use crate::verdict::{Access, ApprovalTerms, Constraints, Decision, Grounds, Remediation, Verdict};

/// A larger number of approvers is a typing error.
const APPROVERS_MAX: u64 = 100;
/// A bound of `max_retries` and similar settings that fits every type which stores them.
const RETRIES_MAX: u64 = 1_000;
const CONCURRENT_MAX: u64 = 1_000_000;

/// A verdict without its policy snapshot.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) id: Arc<str>,
    pub(super) hash: Arc<str>,
    pub(super) reason: Arc<str>,
    pub(super) decision: Decision,
    constraints: Constraints,
    approval: Option<ApprovalTerms>,
    remediations: Vec<Remediation>,
    /// Made for the first job that the rule decides. A rule belongs to one policy, so it has one snapshot.
    given: OnceLock<Arc<Verdict>>,
}

impl Terms {
    pub(super) fn plain(id: &str, hash: Arc<str>, decision: Decision, reason: &str) -> Self {
        let constraints = Constraints::default();
        Self {
            id: id.into(),
            hash,
            reason: reason.into(),
            decision,
            constraints,
            approval: None,
            remediations: Vec::new(),
            given: OnceLock::new(),
        }
    }

    pub(super) fn read(fields: &Fields<'_>, id: &str, hash: Arc<str>, report: &mut ConfigReport) -> Option<Self> {
        let decision =
            fields.need("decision", report).and_then(|node| read::choice(node, "decision", &Decision::words(), report));
        let reason = fields.need("reason", report).and_then(|node| read::text(node, "reason", report));
        let constraints = fields.get("constraints").map(|node| constraints(node, report).unwrap_or_default());
        let approval = fields.get("approval").map(|node| approval(node, report).unwrap_or_default());
        let remediations = fields.get("remediations").map(|node| remediations(node, report));
        let decision = decision?;
        refuse_idle(fields, decision, report);
        let asks = decision == Decision::RequireApproval;
        let upgraded = decision == Decision::Allow && constraints.is_some();
        Some(Self {
            id: id.into(),
            hash,
            reason: reason?.into(),
            decision: if upgraded { Decision::AllowWithConstraints } else { decision },
            constraints: constraints.unwrap_or_default(),
            approval: asks.then(|| approval.unwrap_or_default()),
            remediations: remediations.unwrap_or_default(),
            given: OnceLock::new(),
        })
    }

    /// The verdict for jobs that the rule decides alone.
    pub(super) fn shared(&self, snapshot: &Arc<str>) -> Arc<Verdict> {
        self.given.get_or_init(|| Arc::new(self.verdict(snapshot).without_idle_hash())).clone()
    }

    pub(super) fn verdict(&self, snapshot: &Arc<str>) -> Verdict {
        Verdict::from(Grounds {
            decision: self.decision,
            rule: self.id.clone(),
            rule_hash: self.hash.clone(),
            reason: self.reason.clone(),
            snapshot: snapshot.clone(),
            constraints: self.constraints.clone(),
            approval: self.approval.clone(),
            remediations: self.remediations.clone(),
            bypassed: false,
            unanswered: false,
        })
    }
}

/// Refuses settings without effect under the rule's decision: their author expects one.
fn refuse_idle(fields: &Fields<'_>, decision: Decision, report: &mut ConfigReport) {
    let allows = matches!(decision, Decision::Allow | Decision::AllowWithConstraints);
    let asks = decision == Decision::RequireApproval;
    let word = decision.as_str();
    for (key, acts) in [("constraints", allows || asks), ("approval", asks), ("remediations", !allows)] {
        if let Some(at) = fields.place(key).filter(|_| !acts) {
            report.refuse(at, format!("{key} has no effect with decision {word}; remove it or change the decision"));
        }
    }
    if decision == Decision::AllowWithConstraints && fields.get("constraints").is_none() {
        report.refuse(fields.at, "allow_with_constraints needs constraints; add them or write allow");
    }
}

fn constraints(node: &YamlNode, report: &mut ConfigReport) -> Option<Constraints> {
    read::some_entries(node, "constraints", report)?;
    let fields = Fields::of(node, &keys::CONSTRAINTS, report)?;
    let access = [("allow", Access::Allow), ("deny", Access::Deny)];
    if let (Some(_), Some(at)) = (fields.get("max_runtime"), fields.place("max_runtime_ms")) {
        report.refuse(at, "max_runtime and max_runtime_ms say the same; remove one");
    }
    let in_words = fields.get("max_runtime").and_then(|node| read::span(node, "max_runtime", 1..=SPAN_MS_MAX, report));
    let in_millis =
        fields.get("max_runtime_ms").and_then(|node| read::whole(node, "max_runtime_ms", 1..=SPAN_MS_MAX, report));
    let retries = fields.get("max_retries").and_then(|node| read::whole(node, "max_retries", 0..=RETRIES_MAX, report));
    let bytes = fields.get("max_output_bytes");
    let at_once =
        fields.get("max_concurrent").and_then(|node| read::whole(node, "max_concurrent", 1..=CONCURRENT_MAX, report));
    Some(Constraints {
        max_runtime_ms: in_words.or(in_millis),
        max_retries: retries.and_then(|retries| u32::try_from(retries).ok()),
        max_output_bytes: bytes.and_then(|node| read::whole(node, "max_output_bytes", 0..=u64::MAX, report)),
        max_concurrent: at_once.and_then(|max| u32::try_from(max).ok()),
        allowed_pools: fields.get("allowed_pools").and_then(|node| pools(node, report)),
        network: fields.get("network").and_then(|node| read::choice(node, "network", &access, report)),
        exec: fields.get("exec").and_then(|node| read::choice(node, "exec", &access, report)),
        ..Constraints::NONE
    })
}

fn pools(node: &YamlNode, report: &mut ConfigReport) -> Option<std::collections::BTreeSet<Arc<str>>> {
    let texts = read::texts(node, "allowed_pools", report)?;
    for (name, at) in &texts {
        if let Err(error) = check_name(name) {
            report.refuse(*at, format!("pool {name:?} {error}"));
        }
    }
    Some(texts.into_iter().map(|(name, _)| name.into()).collect())
}

fn approval(node: &YamlNode, report: &mut ConfigReport) -> Option<ApprovalTerms> {
    let fields = Fields::of(node, &keys::APPROVAL, report)?;
    let approvers = fields.get("approvers").and_then(|node| read::whole(node, "approvers", 1..=APPROVERS_MAX, report));
    let mut span = |key: &str| fields.get(key).and_then(|node| read::span(node, key, 1..=SPAN_MS_MAX, report));
    Some(ApprovalTerms {
        approvers: approvers.and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
        request_expiry_ms: span("request_expiry"),
        valid_for_ms: span("valid_for"),
    })
}

fn remediations(node: &YamlNode, report: &mut ConfigReport) -> Vec<Remediation> {
    let items = read::items(node, "remediations", report).unwrap_or_default();
    items.iter().filter_map(|item| remediation(item, report)).collect()
}

fn remediation(node: &YamlNode, report: &mut ConfigReport) -> Option<Remediation> {
    let fields = Fields::of(node, &keys::REMEDIATION, report)?;
    let title = fields.need("title", report).and_then(|node| read::text(node, "title", report));
    let summary = fields.get("summary").and_then(|node| read::text(node, "summary", report));
    let topic =
        fields.get("replacement_topic").and_then(|node| Some((read::text(node, "replacement_topic", report)?, node.at)));
    if let Some((topic, at)) = topic
        && let Err(error) = check_name(topic)
    {
        report.refuse(at, format!("replacement_topic {topic:?} {error}"));
    }
    Some(Remediation {
        title: title?.into(),
        summary: summary.map(Arc::from),
        replacement_topic: topic.map(|(topic, _)| topic.into()),
    })
}
