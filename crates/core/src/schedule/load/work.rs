//! Reads the job or run that a schedule starts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::start::{sample, some_id};
use super::super::{DagWork, JobWork, ScheduledWork, Spec, keys, template};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlNode};
use crate::config::{ConfigReport, SourcePosition};
use crate::formula::ExpressionFault;
use crate::lane::Priority;
use crate::limits::{ATTEMPTS_MAX, SPAN_MS_MAX};
use crate::request::{Caller, JobRequest};

/// Faults of expressions, with their positions.
pub(super) type WorkFaults = Vec<(SourcePosition, ExpressionFault)>;

pub(super) fn read(fields: Fields<'_>, report: &mut ConfigReport) -> (Option<ScheduledWork>, WorkFaults) {
    let mut found = WorkFaults::new();
    let work = match (fields.get("job"), fields.get("dag")) {
        (Some(node), None) => read_job(node, &mut found, report).map(ScheduledWork::Job),
        (None, Some(node)) => read_dag(node, &mut found, report).map(ScheduledWork::Dag),
        (Some(_), Some(_)) => {
            let at = fields.place("dag").unwrap_or(fields.at);
            report.refuse(at, "job and dag both say what to start; remove one");
            None
        }
        (None, None) => {
            report.refuse(fields.at, "the schedule does not say what to start; add job or dag");
            None
        }
    };
    (work, found)
}

/// Reports the faults of expressions. If there are none, checks the job by the rules for every job.
pub(super) fn check(name: &str, spec: &Spec, found: WorkFaults, fields: Fields<'_>, report: &mut ConfigReport) {
    if !found.is_empty() {
        return found.into_iter().for_each(|(at, fault)| fault.tell(at, report));
    }
    let ScheduledWork::Job(work) = &spec.work else { return };
    let Some(job) = fields.get("job").and_then(|node| Fields::of(node, &keys::JOB, &mut ConfigReport::new(""))) else {
        return;
    };
    match sample(name, spec, work) {
        Err(error) => report.refuse(job.at, format!("the job cannot be made: {error}")),
        Ok(new) => {
            let checked = JobRequest::check(new, &Caller::new("x", "x"), some_id);
            for error in checked.err().unwrap_or_default() {
                report.refuse(job.place(&error.field).unwrap_or(job.at), error.to_string());
            }
        }
    }
}

fn read_job(node: &YamlNode, found: &mut WorkFaults, report: &mut ConfigReport) -> Option<JobWork> {
    let fields = Fields::of(node, &keys::JOB, report)?;
    let topic = fields.need("topic", report).and_then(|node| named(node, "topic", report));
    let priorities = Priority::ALL.map(|priority| (priority.as_str(), priority));
    let priority = fields.get("priority").and_then(|node| read::choice(node, "priority", &priorities, report));
    let attempts = fields.get("max_attempts").and_then(|node| read::count(node, "max_attempts", ATTEMPTS_MAX, report));
    let mut span = |key: &str| fields.get(key).and_then(|node| read::span(node, key, 1..=SPAN_MS_MAX, report));
    let (timeout_ms, deadline_ms) = (span("timeout"), span("deadline"));
    let mut names = |key: &str| fields.get(key).map(|node| names(node, key, report)).unwrap_or_default();
    let (requires, risk_tags) = (names("requires"), names("risk_tags"));
    let capability = fields.get("capability").and_then(|node| named(node, "capability", report));
    let mut map = |key: &str| fields.get(key).map(|node| texts(node, key, found, report)).unwrap_or_default();
    let (labels, env) = (map("labels"), map("env"));
    let key = fields.get("concurrency_key").and_then(|node| holed(node, "concurrency_key", found, report));
    let payload = fields.get("payload").map(|node| json(node, "payload", found, report)).unwrap_or_default();
    Some(JobWork {
        topic: topic?.into(),
        payload,
        priority,
        labels,
        env,
        max_attempts: attempts,
        timeout_ms,
        deadline_ms,
        requires,
        capability: capability.map(str::to_owned),
        risk_tags,
        concurrency_key: key,
    })
}

fn read_dag(node: &YamlNode, found: &mut WorkFaults, report: &mut ConfigReport) -> Option<DagWork> {
    let fields = Fields::of(node, &keys::DAG, report)?;
    let name = fields.need("name", report).and_then(|node| named(node, "name", report));
    let version = fields.get("version").and_then(|node| read::count(node, "version", u32::MAX, report));
    let params = fields.get("params").map(|node| {
        read::entries(node, "params", report);
        json(node, "params", found, report)
    });
    Some(DagWork { name: name?.into(), version, params: params.unwrap_or_default() })
}

fn named<'a>(node: &'a YamlNode, key: &str, report: &mut ConfigReport) -> Option<&'a str> {
    read::text(node, key, report).and_then(|text| read::name(text, key, node.at, report))
}

fn names(node: &YamlNode, key: &str, report: &mut ConfigReport) -> BTreeSet<String> {
    let texts = read::texts(node, key, report).unwrap_or_default();
    read::distinct(&texts, key, report);
    texts.into_iter().map(|(text, _)| text.to_owned()).collect()
}

/// Reads a text that may contain expressions.
fn holed(node: &YamlNode, name: &str, found: &mut WorkFaults, report: &mut ConfigReport) -> Option<String> {
    let text = read::text(node, name, report)?;
    template::faults(text, name, node.at, found);
    Some(text.to_owned())
}

fn texts(node: &YamlNode, key: &str, found: &mut WorkFaults, report: &mut ConfigReport) -> BTreeMap<String, String> {
    let entries = read::some_entries(node, key, report).unwrap_or_default();
    let mut read = |entry: &yaml::YamlEntry| {
        let name = format!("{key} entry {:?}", entry.key);
        Some((entry.key.clone(), holed(&entry.value, &name, found, report)?))
    };
    entries.iter().filter_map(&mut read).collect()
}

/// Reads JSON whose texts may contain expressions.
fn json(node: &YamlNode, name: &str, found: &mut WorkFaults, report: &mut ConfigReport) -> Value {
    yaml::check_numbers(node, name, report);
    check_holes(node, name, found);
    node.to_json()
}

fn check_holes(node: &YamlNode, name: &str, found: &mut WorkFaults) {
    match &node.value {
        yaml::YamlValue::Scalar { text, .. } => template::faults(text, name, node.at, found),
        yaml::YamlValue::List(items) => items.iter().for_each(|item| check_holes(item, name, found)),
        yaml::YamlValue::Map(entries) => entries.iter().for_each(|entry| check_holes(&entry.value, name, found)),
    }
}
