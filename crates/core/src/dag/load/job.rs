//! Reads the jobs of a node: its own, and its compensation.

use std::collections::{BTreeMap, BTreeSet};

use super::super::template::TemplateUses;
use super::super::{Compensation, JobTemplate, Template, keys};
use super::named;
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlEntry, YamlNode as Yaml, YamlValue};
use crate::ids::{JobId, Topic};
use crate::lane::Priority;
use crate::limits::{ATTEMPTS_MAX, SPAN_MS_MAX};
use crate::request::{ApprovalGate, Caller, JobRequest, Json, NewJob};
use crate::retry::read::{RETRY_OF_JOB, settings as read_settings};
use crate::verdict::ApprovalTerms;

const APPROVERS_MAX: u32 = 100;
/// How long a result is memoised if the node does not say.
const MEMOISE_MS: u64 = 7 * 24 * 3600 * 1000;
/// Placeholder for a value that is known only in a run. It satisfies every rule, so that only constants are checked.
const SOME_VALUE: &str = "x";

pub(super) fn template(fields: Fields<'_>, found: &mut TemplateUses, report: &mut ConfigReport) -> Option<JobTemplate> {
    let common = Common::read(fields, found, report);
    let priorities = Priority::ALL.map(|priority| (priority.as_str(), priority));
    let priority = fields.get("priority").and_then(|node| read::choice(node, "priority", &priorities, report));
    let mut names = |key: &str| fields.get(key).map(|node| names(node, key, report)).unwrap_or_default();
    let (requires, risk_tags) = (names("requires"), names("risk_tags"));
    let capability = fields.get("capability").and_then(|node| named(node, "capability", report));
    let key = fields.get("concurrency_key");
    let key = key.filter(|node| read::text(node, "concurrency_key", report).is_some());
    let concurrency_key = key.map(|node| Template::read(node, "concurrency_key", found));
    let gate = fields.get("approval").map(|node| gate(node, false, report));
    let constant = concurrency_key.as_ref().map(constant_text);
    let retry = fields.get("retry").and_then(|node| read_settings(node, &RETRY_OF_JOB, report)).unwrap_or_default();
    let new =
        NewJob { requires: requires.clone(), risk_tags: risk_tags.clone(), concurrency_key: constant, ..common.as_job() };
    check(new, fields, report);
    Some(JobTemplate {
        topic: common.topic?,
        payload: common.payload,
        priority,
        max_attempts: common.max_attempts,
        retry,
        timeout_ms: common.timeout_ms,
        labels: common.labels,
        env: common.env,
        requires,
        capability: capability.map(str::to_owned),
        risk_tags,
        concurrency_key,
        gate: gate.flatten(),
        memoise_ms: memoise(fields, report),
    })
}

/// Reads `memoise`: `true`, or a map with a duration.
fn memoise(fields: Fields<'_>, report: &mut ConfigReport) -> Option<u64> {
    let node = fields.get("memoise")?;
    if fields.get("approval").is_some() {
        report
            .refuse(node.at, "memoise does not fit a node with approval: people would agree to something that is not done");
    }
    if fields.get("compensation").is_some() {
        report.refuse(node.at, "memoise does not fit a node with compensation: what was undone would stand for later work");
    }
    if let YamlValue::Scalar { .. } = node.value {
        return read::truth(node, "memoise", report)?.then_some(MEMOISE_MS);
    }
    let fields = Fields::of(node, &keys::MEMOISE, report)?;
    fields.need("for", report).and_then(|node| read::span(node, "for", 1..=SPAN_MS_MAX, report))
}

pub(super) fn compensation(node: &Yaml, found: &mut TemplateUses, report: &mut ConfigReport) -> Option<Compensation> {
    let fields = Fields::of(node, &keys::COMPENSATION, report)?;
    fields.need("topic", report);
    let common = Common::read(fields, found, report);
    check(common.as_job(), fields, report);
    let undo_on_failure = fields.get("undo_on_failure").and_then(|node| read::truth(node, "undo_on_failure", report));
    Some(Compensation {
        topic: common.topic?,
        payload: common.payload,
        env: common.env,
        labels: common.labels,
        max_attempts: common.max_attempts,
        timeout_ms: common.timeout_ms,
        undo_on_failure: undo_on_failure.unwrap_or(false),
        reads: Vec::new(),
    })
}

pub(super) fn gate(node: &Yaml, only: bool, report: &mut ConfigReport) -> Option<ApprovalGate> {
    let fields = Fields::of(node, &keys::APPROVAL, report)?;
    let reason = fields.need("reason", report).and_then(|node| read::text(node, "reason", report));
    let approvers = fields.get("approvers").and_then(|node| read::count(node, "approvers", APPROVERS_MAX, report));
    let expires = fields.get("expires").and_then(|node| read::span(node, "expires", 1..=SPAN_MS_MAX, report));
    let terms = ApprovalTerms { approvers: approvers.unwrap_or(1), request_expiry_ms: expires, valid_for_ms: None };
    Some(ApprovalGate { reason: reason?.into(), terms, only })
}

/// The fields that a node's job and its compensation share.
struct Common {
    topic: Option<Topic>,
    payload: Template,
    max_attempts: Option<u32>,
    timeout_ms: Option<u64>,
    labels: BTreeMap<String, Template>,
    env: BTreeMap<String, Template>,
}

impl Common {
    fn read(fields: Fields<'_>, found: &mut TemplateUses, report: &mut ConfigReport) -> Self {
        let topic = fields.get("topic").and_then(|node| named(node, "topic", report));
        let payload = fields.get("payload").map(|node| {
            yaml::check_numbers(node, "payload", report);
            Template::read(node, "payload", found)
        });
        let attempts = fields.get("max_attempts");
        let mut entries = |key: &str| fields.get(key).map(|node| templates(node, key, found, report)).unwrap_or_default();
        Self {
            topic: topic.map(Topic::from),
            payload: payload.unwrap_or_else(|| Template::constant(serde_json::Value::Null)),
            labels: entries("labels"),
            env: entries("env"),
            max_attempts: attempts.and_then(|node| read::count(node, "max_attempts", ATTEMPTS_MAX, report)),
            timeout_ms: timeout(fields, report),
        }
    }

    /// A request of the values that are known before a run.
    fn as_job(&self) -> NewJob {
        let constants = |templates: &BTreeMap<String, Template>| {
            templates.iter().map(|(name, template)| (name.clone(), constant_text(template))).collect()
        };
        NewJob {
            // A missing or refused topic has its own error already; the placeholder prevents a second one.
            topic: self.topic.as_ref().map_or_else(|| SOME_VALUE.to_owned(), ToString::to_string),
            payload: self.payload.as_constant().map(|value| Json::trusted(value.to_string())),
            labels: constants(&self.labels),
            env: constants(&self.env),
            ..NewJob::default()
        }
    }
}

fn constant_text(template: &Template) -> String {
    template.as_constant().and_then(serde_json::Value::as_str).unwrap_or(SOME_VALUE).to_owned()
}

/// Checks the constant fields by the rules for every job, so that an error shows at load and not in a run.
fn check(new: NewJob, fields: Fields<'_>, report: &mut ConfigReport) {
    let checked = JobRequest::check(new, &Caller::new(SOME_VALUE, SOME_VALUE), || JobId::from(SOME_VALUE));
    for error in checked.err().unwrap_or_default() {
        report.refuse(fields.place(&error.field).unwrap_or(fields.at), error.to_string());
    }
}

fn timeout(fields: Fields<'_>, report: &mut ConfigReport) -> Option<u64> {
    if let (Some(_), Some(at)) = (fields.place("timeout"), fields.place("timeout_ms")) {
        report.refuse(at, "timeout and timeout_ms say the same; remove one");
    }
    let span = fields.get("timeout").and_then(|node| read::span(node, "timeout", 1..=SPAN_MS_MAX, report));
    let millis = fields.get("timeout_ms").and_then(|node| read::whole(node, "timeout_ms", 1..=SPAN_MS_MAX, report));
    span.or(millis)
}

fn names(node: &Yaml, key: &str, report: &mut ConfigReport) -> BTreeSet<String> {
    let texts = read::texts(node, key, report).unwrap_or_default();
    read::distinct(&texts, key, report);
    texts.into_iter().map(|(text, _)| text.to_owned()).collect()
}

/// A map of texts, each of which may contain expressions.
fn templates(node: &Yaml, key: &str, found: &mut TemplateUses, report: &mut ConfigReport) -> BTreeMap<String, Template> {
    let entries = read::some_entries(node, key, report).unwrap_or_default();
    let mut read = |entry: &YamlEntry| {
        let name = format!("{key} entry {:?}", entry.key);
        read::text(&entry.value, &name, report)?;
        Some((entry.key.clone(), Template::read(&entry.value, &name, found)))
    };
    entries.iter().filter_map(&mut read).collect()
}
