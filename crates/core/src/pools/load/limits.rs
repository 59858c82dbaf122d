//! Reads the `limits` section.

use std::collections::BTreeMap;

use super::super::limit::{LimitRule, Per};
use super::super::{CONCURRENT_MAX, keys};
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;
use crate::glob::Glob;
use crate::rate::Rate;

pub(super) fn read(node: &YamlNode, report: &mut ConfigReport) -> Vec<LimitRule> {
    let mut lines = BTreeMap::new();
    let mut rules = Vec::new();
    for item in read::items(node, "limits", report).unwrap_or_default() {
        let Some(rule) = rule(item, report) else { continue };
        if let Some(line) = lines.insert(rule.name.clone(), item.at.line) {
            report.refuse(item.at, format!("limit {:?} is already named in line {line}; choose another name", rule.name));
        }
        rules.push(rule);
    }
    rules
}

fn rule(node: &YamlNode, report: &mut ConfigReport) -> Option<LimitRule> {
    let fields = Fields::of(node, &keys::LIMIT, report)?;
    if fields.get("max_concurrent").or_else(|| fields.get("rate")).is_none() {
        report.refuse(fields.at, "the limit limits nothing; add max_concurrent or rate");
    }
    let name = fields.need("name", report).and_then(|node| Some((read::text(node, "name", report)?, node.at)));
    let name = name.and_then(|(name, at)| read::name(name, "limit", at, report));
    let max = fields.get("max_concurrent");
    Some(LimitRule {
        topics: fields.get("topics").map_or_else(|| vec![Glob::everything()], |node| topics(node, report)),
        per: fields.get("per").map(|node| per(node, report)).unwrap_or_default(),
        max_concurrent: max.and_then(|node| read::count(node, "max_concurrent", CONCURRENT_MAX, report)),
        rate: fields.get("rate").and_then(|node| Rate::read(node, "rate", report)),
        name: name?.into(),
    })
}

fn topics(node: &YamlNode, report: &mut ConfigReport) -> Vec<Glob> {
    let texts = read::texts(node, "topics", report).unwrap_or_default();
    read::distinct(&texts, "topics", report);
    texts.into_iter().filter_map(|(text, at)| read::glob(text, at, "topics", report)).collect()
}

fn per(node: &YamlNode, report: &mut ConfigReport) -> Vec<Per> {
    let words = Per::ALL.map(|per| (per.as_str(), per));
    let mut list = Vec::new();
    for item in read::items(node, "per", report).unwrap_or_default() {
        match read::choice(item, "per", &words, report) {
            Some(per) if list.contains(&per) => {
                report.refuse(item.at, format!("{:?} stands twice in per; remove one", per.as_str()));
            }
            Some(per) => list.push(per),
            None => {}
        }
    }
    list
}
