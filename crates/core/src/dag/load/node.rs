//! Reads one node of the file, before the other nodes are known.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::params::kind_of;
use super::super::template::TemplateUses;
use super::super::{
    Delay, Expression, ForEach, ITEMS_MAX, Join, MinSuccess, Node, NodeWork, OnFail, SubDag, Template, keys,
};
use super::{AT_ONCE_MAX, job, named};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlEntry, YamlNode as Yaml, YamlValue};
use crate::config::{ConfigReport, SourcePosition};
use crate::limits::SPAN_MS_MAX;

/// A node as read, with the references that must be checked against the other nodes.
pub(super) struct Draft<'a> {
    pub(super) name: &'a str,
    pub(super) at: SourcePosition,
    pub(super) needs: Vec<(&'a str, SourcePosition)>,
    /// What the node's expressions read, separated by when they are evaluated.
    pub(super) start: TemplateUses,
    pub(super) body: TemplateUses,
    pub(super) undo: TemplateUses,
    /// The node without edges; None if it could not be read.
    pub(super) node: Option<Node>,
}

/// `dag` is the name of the definition.
pub(super) fn read<'a>(entry: &'a YamlEntry, dag: Option<&str>, report: &mut ConfigReport) -> Draft<'a> {
    let [start, body, undo] = [(); 3].map(|()| TemplateUses::default());
    let mut draft = Draft { name: &entry.key, at: entry.at, needs: Vec::new(), start, body, undo, node: None };
    read::name(&entry.key, "node", entry.at, report);
    let Some(fields) = Fields::of(&entry.value, &keys::NODE, report) else { return draft };
    draft.needs = fields.get("needs").map(|node| needs(node, report)).unwrap_or_default();
    draft.node = read_node(fields, dag, &mut draft, report);
    draft
}

fn read_node(fields: Fields<'_>, dag: Option<&str>, draft: &mut Draft<'_>, report: &mut ConfigReport) -> Option<Node> {
    let kind = kind(fields, draft, report)?;
    let (joins, reactions) = (Join::ALL.map(|join| (join.as_str(), join)), OnFail::ALL.map(|way| (way.as_str(), way)));
    let join = fields.get("join").and_then(|node| read::choice(node, "join", &joins, report));
    let on_fail = fields.get("on_fail").and_then(|node| read::choice(node, "on_fail", &reactions, report));
    if let (Some(at), true) = (fields.place("join"), draft.needs.is_empty()) {
        report.refuse(at, "join has no effect without needs; remove it or name what the node needs");
    }
    let when = expression(fields, "when", draft.name, &mut draft.start, report);
    let for_each = for_each(fields, draft.name, &mut draft.start, report);
    let work = match kind {
        "topic" => NodeWork::Job(Box::new(job::template(fields, &mut draft.body, report)?)),
        "approval" => NodeWork::Approval(job::gate(fields.get("approval")?, true, report)?),
        "dag" => NodeWork::Dag(sub_dag(fields, dag, &mut draft.body, report)?),
        _ => NodeWork::Delay(delay(fields, draft.name, &mut draft.body, report)?),
    };
    let compensation = fields.get("compensation").and_then(|node| job::compensation(node, &mut draft.undo, report));
    Some(Node {
        name: draft.name.into(),
        needs: Vec::new(),
        children: Vec::new(),
        work,
        join: join.unwrap_or_default(),
        on_fail: on_fail.unwrap_or_default(),
        when,
        for_each,
        compensation,
        reads: Vec::new(),
        read: false,
    })
}

/// Reads one name or a list of names.
fn needs<'a>(node: &'a Yaml, report: &mut ConfigReport) -> Vec<(&'a str, SourcePosition)> {
    if let YamlValue::Scalar { .. } = node.value {
        return read::text(node, "needs", report).map(|name| (name, node.at)).into_iter().collect();
    }
    let mut names = read::texts(node, "needs", report).unwrap_or_default();
    read::distinct(&names, "needs", report);
    let mut seen = BTreeSet::new();
    names.retain(|(name, _)| seen.insert(*name));
    names
}

/// The key that decides the kind of the node.
fn kind(fields: Fields<'_>, draft: &Draft<'_>, report: &mut ConfigReport) -> Option<&'static str> {
    let given: Vec<&str> = keys::KINDS.into_iter().filter(|key| fields.get(key).is_some()).collect();
    let kind = match given.as_slice() {
        [kind] | [kind @ "topic", "approval"] => *kind,
        [] => {
            let message = format!("node {:?} does nothing; give it a topic, a dag, a delay or an approval", draft.name);
            report.refuse(draft.at, message);
            return None;
        }
        [first, second, ..] => {
            let at = fields.place(second).unwrap_or(fields.at);
            report.refuse(at, format!("node {:?} has {first} and {second}; make two nodes of it", draft.name));
            return None;
        }
    };
    let fitting: &[&str] = match kind {
        "topic" => &keys::WITH_TOPIC,
        "dag" => &keys::WITH_DAG,
        _ => &[],
    };
    let fits = |key: &str| keys::COMMON.contains(&key) || keys::KINDS.contains(&key) || fitting.contains(&key);
    for key in keys::NODE.keys.iter().filter(|key| !fits(key)) {
        if let Some(at) = fields.place(key) {
            report.refuse(at, format!("{key} does not fit a node with {kind}; remove it"));
        }
    }
    Some(kind)
}

/// Reads a key whose whole value is one expression, without the `${ }` that expressions inside texts have.
fn expression(
    fields: Fields<'_>,
    key: &str,
    name: &str,
    found: &mut TemplateUses,
    report: &mut ConfigReport,
) -> Option<Expression> {
    let node = fields.get(key)?;
    let text = read::text(node, key, report)?;
    if text.trim_start().starts_with("${") {
        report.refuse(node.at, format!("{key} is an expression as a whole; write it without ${{ and }}"));
        return None;
    }
    let expression = found.expression(text, key, node.at)?;
    if let Some(why) = expression.constant().and_then(|value| misfit(key, value)) {
        report.refuse_new(node.at, format!("{key} of node {name:?} fails in every run: {why}"));
    }
    Some(expression)
}

/// Why a constant value can never be what the key needs.
fn misfit(key: &str, value: Result<Json, String>) -> Option<String> {
    match (key, value) {
        (_, Err(why)) => Some(why),
        ("when", Ok(Json::Bool(_))) | ("for_each", Ok(Json::Array(_))) => None,
        ("delay_until", Ok(value)) if Delay::moment(&value).is_some() => None,
        ("when", Ok(value)) => Some(format!("it gave {}, not true or false", kind_of(&value))),
        ("for_each", Ok(value)) => Some(format!("it gave {}, not a list", kind_of(&value))),
        (_, Ok(value)) => Some(format!("{value} is not a time; write it like 2030-01-31T12:00:00Z")),
    }
}

fn for_each(fields: Fields<'_>, name: &str, found: &mut TemplateUses, report: &mut ConfigReport) -> Option<ForEach> {
    if fields.get("for_each").is_none() {
        for key in ["concurrency", "min_success"] {
            if let Some(at) = fields.place(key) {
                report.refuse(at, format!("{key} has an effect only with for_each; remove it or add for_each"));
            }
        }
    }
    let items = expression(fields, "for_each", name, found, report);
    let at_once = fields.get("concurrency");
    let concurrency = at_once.and_then(|node| read::count(node, "concurrency", AT_ONCE_MAX, report));
    let min_success = fields.get("min_success").and_then(|node| min_success(node, report));
    Some(ForEach { items: items?, concurrency, min_success })
}

/// Reads `90%` or a number of items.
fn min_success(node: &Yaml, report: &mut ConfigReport) -> Option<MinSuccess> {
    let text = match &node.value {
        YamlValue::Scalar { text, .. } => text.as_str(),
        _ => "",
    };
    let number = |digits: &str, max: usize| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|number| plain && (1..=max).contains(&(*number as usize)))
    };
    let read = match text.strip_suffix('%') {
        Some(percent) => number(percent, 100).map(MinSuccess::Percent),
        None => number(text, ITEMS_MAX).map(MinSuccess::Count),
    };
    if read.is_none() {
        report.refuse(node.at, format!("min_success must be 1% to 100% or a number of items from 1 to {ITEMS_MAX}"));
    }
    read
}

fn delay(fields: Fields<'_>, name: &str, found: &mut TemplateUses, report: &mut ConfigReport) -> Option<Delay> {
    if let Some(node) = fields.get("delay_until") {
        read::text(node, "delay_until", report)?;
        let faults = found.faults.len();
        let until = Template::read(node, "delay_until", found);
        // A template that could not be read is empty and has its own error already.
        let known = until.in_every_run().filter(|_| found.faults.len() == faults);
        if let Some(why) = known.and_then(|value| misfit("delay_until", value)) {
            report.refuse_new(node.at, format!("delay_until of node {name:?} fails in every run: {why}"));
        }
        return Some(Delay::Until(until));
    }
    let span = fields.get("delay").and_then(|node| read::span(node, "delay", 1..=SPAN_MS_MAX, report));
    let seconds = fields.get("delay_sec").and_then(|node| read::whole(node, "delay_sec", 1..=SPAN_MS_MAX / 1000, report));
    Some(Delay::For { millis: span.or_else(|| seconds.map(|seconds| seconds * 1000))? })
}

fn sub_dag(fields: Fields<'_>, own: Option<&str>, found: &mut TemplateUses, report: &mut ConfigReport) -> Option<SubDag> {
    let node = fields.get("dag")?;
    let dag = named(node, "dag", report);
    if dag.is_some() && dag == own {
        report.refuse(node.at, "a DAG cannot be a node of itself; name another");
    }
    let given = fields.get("params").and_then(|node| read::some_entries(node, "params", report)).unwrap_or_default();
    let mut param = |entry: &YamlEntry| {
        let name = format!("parameter {:?}", entry.key);
        yaml::check_numbers(&entry.value, &name, report);
        (entry.key.clone(), Template::read(&entry.value, &name, found))
    };
    Some(SubDag { params: given.iter().map(&mut param).collect(), dag: Arc::from(dag?) })
}
