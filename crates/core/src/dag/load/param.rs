//! Reads the parameters that a DAG takes.

use super::super::{Param, ParamKind, keys};
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlEntry, YamlNode as Yaml, YamlValue};

pub(super) fn read_all(node: &Yaml, report: &mut ConfigReport) -> Vec<Param> {
    let entries = read::some_entries(node, "params", report).unwrap_or_default();
    entries.iter().filter_map(|entry| read(entry, report)).collect()
}

/// Reads `name: type`, or a map with more settings.
fn read(entry: &YamlEntry, report: &mut ConfigReport) -> Option<Param> {
    let name = read::name(&entry.key, "parameter", entry.at, report);
    if let YamlValue::Scalar { .. } = entry.value.value {
        let kind = kind(&entry.value, &format!("type of {:?}", entry.key), report);
        return Some(Param { name: name?.into(), kind: kind?, description: None, default: None });
    }
    let fields = Fields::of(&entry.value, &keys::PARAM, report)?;
    let kind = fields.need("type", report).and_then(|node| kind(node, "type", report));
    let description = fields.get("description").and_then(|node| read::text(node, "description", report));
    let default = fields.get("default").map(|node| {
        yaml::check_numbers(node, &format!("the default of {:?}", entry.key), report);
        (node.to_json(), node.at)
    });
    if let (Some(kind), Some((value, at))) = (kind, &default)
        && let Some(refusal) = kind.refusal(value)
    {
        report.refuse(*at, format!("the default of {:?} {refusal}", entry.key));
    }
    let default = default.map(|(value, _)| value);
    Some(Param { name: name?.into(), kind: kind?, description: description.map(Into::into), default })
}

fn kind(node: &Yaml, name: &str, report: &mut ConfigReport) -> Option<ParamKind> {
    read::choice(node, name, &ParamKind::ALL.map(|kind| (kind.as_str(), kind)), report)
}
