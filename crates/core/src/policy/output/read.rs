//! Reading the `output` section.

use std::sync::Arc;

use super::super::conditions::{RuleReader, globs, labels, names};
use super::super::input::{FAIL_MODES, FailMode};
use super::super::keys;
use super::super::patterns::Content;
use super::super::rule::{Ids, read_id};
use super::{FailModeRule, OutputDecision, OutputPolicy, OutputRule};
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;

impl OutputPolicy {
    pub(in crate::policy) fn read(
        node: Option<&YamlNode>,
        snapshot: &Arc<str>,
        ids: &mut Ids,
        reading: &mut RuleReader<'_>,
    ) -> Self {
        let mut policy = Self {
            snapshot: snapshot.clone(),
            enabled: false,
            fail_mode: FailMode::Open,
            fail_modes: Vec::new(),
            hold_topics: Vec::new(),
            rules: Vec::new(),
        };
        let Some(fields) = node.and_then(|node| Fields::of(node, &keys::OUTPUT, reading.report)) else { return policy };
        if let Some(node) = fields.get("rules") {
            let items = read::items(node, "rules", reading.report).unwrap_or_default();
            policy.rules = items.iter().filter_map(|item| rule(item, ids, reading)).collect();
        }
        let report = &mut *reading.report;
        let enabled = fields.get("enabled").and_then(|node| read::truth(node, "enabled", report));
        policy.enabled = enabled.unwrap_or(!policy.rules.is_empty());
        let mode = fields.get("fail_mode").and_then(|node| read::choice(node, "fail_mode", &FAIL_MODES, report));
        policy.fail_mode = mode.unwrap_or(FailMode::Open);
        policy.hold_topics =
            fields.get("hold_topics").and_then(|node| globs(node, "hold_topics", report)).unwrap_or_default();
        if let Some(node) = fields.get("fail_modes") {
            let items = read::items(node, "fail_modes", report).unwrap_or_default();
            policy.fail_modes = items.iter().filter_map(|item| fail_mode(item, report)).collect();
        }
        policy
    }
}

fn fail_mode(node: &YamlNode, report: &mut ConfigReport) -> Option<FailModeRule> {
    let fields = Fields::of(node, &keys::FAIL_MODE, report)?;
    if fields.get("topics").is_none() && fields.get("tenants").is_none() {
        report.refuse(node.at, "the fail mode names no topics and no tenants; name some or use output.fail_mode");
    }
    let topics = fields.get("topics").and_then(|node| globs(node, "topics", report));
    let tenants = fields.get("tenants").and_then(|node| names(node, "tenants", report));
    let mode = fields.need("mode", report).and_then(|node| read::choice(node, "mode", &FAIL_MODES, report))?;
    Some(FailModeRule { topics, tenants, mode })
}

fn rule(node: &YamlNode, ids: &mut Ids, reading: &mut RuleReader<'_>) -> Option<OutputRule> {
    let RuleReader { patterns, report, .. } = reading;
    let fields = Fields::of(node, &keys::OUTPUT_RULE, report)?;
    let id = read_id(&fields, ids, report);
    if let Some(node) = fields.get("description") {
        read::text(node, "description", report);
    }
    let words = OutputDecision::ALL.map(|decision| (decision.as_str(), decision));
    let decision = fields.need("decision", report).and_then(|node| read::choice(node, "decision", &words, report));
    let reason = fields.need("reason", report).and_then(|node| read::text(node, "reason", report));
    let hold = fields.get("hold").and_then(|node| read::truth(node, "hold", report)).unwrap_or(false);
    let found = fields.need("match", report).and_then(|node| Fields::of(node, &keys::OUTPUT_MATCH, report))?;
    let over = found.get("output_bytes_over");
    let rule = OutputRule {
        id: id?.into(),
        reason: reason?.into(),
        decision: decision?,
        hold,
        tenants: found.get("tenants").and_then(|node| names(node, "tenants", report)),
        topics: found.get("topics").and_then(|node| globs(node, "topics", report)),
        labels: found.get("labels").map_or_else(Vec::new, |node| labels(node, report)),
        output_bytes_over: over.and_then(|node| read::whole(node, "output_bytes_over", 0..=u64::MAX, report)),
        has_error: found.get("has_error").and_then(|node| read::truth(node, "has_error", report)),
        content: Content::read(&found, id?, *patterns, report),
    };
    let looks_inside = found.get("scan").is_some() || found.get("patterns").is_some();
    if rule.decision == OutputDecision::Redact && !looks_inside {
        report.refuse(node.at, "redact needs scan or patterns: without them there is nothing to cut out");
    }
    if let Some(at) = fields.place("hold").filter(|_| !looks_inside) {
        report.refuse(at, "hold has no effect without scan or patterns: there is no content check to wait for");
    }
    Some(rule)
}
