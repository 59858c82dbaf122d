//! The limits of the file.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::limit::{LimitRule, Per, Rate};
use super::super::{CONCURRENT_MAX, keys};
use crate::config::Report;
use crate::config::read::{self, Fields};
use crate::config::yaml::Node;
use crate::glob::Glob;

/// A faster rate limits nothing that this system can start.
const RATE_MAX: u32 = 1_000_000;
const WINDOWS: [(&str, Duration); 3] =
    [("s", Duration::from_secs(1)), ("m", Duration::from_secs(60)), ("h", Duration::from_secs(3600))];

pub(super) fn read(node: &Node, report: &mut Report) -> Vec<LimitRule> {
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

fn rule(node: &Node, report: &mut Report) -> Option<LimitRule> {
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
        rate: fields.get("rate").and_then(|node| rate(node, report)),
        name: name?.into(),
    })
}

fn topics(node: &Node, report: &mut Report) -> Vec<Glob> {
    let texts = read::texts(node, "topics", report).unwrap_or_default();
    read::distinct(&texts, "topics", report);
    texts.into_iter().filter_map(|(text, at)| read::glob(text, at, "topics", report)).collect()
}

fn per(node: &Node, report: &mut Report) -> Vec<Per> {
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

fn rate(node: &Node, report: &mut Report) -> Option<Rate> {
    let rate = parse_rate(read::text(node, "rate", report)?);
    if rate.is_none() {
        report.refuse(node.at, format!("rate must be 1 to {RATE_MAX} starts per s, m or h, such as 100/m"));
    }
    rate
}

fn parse_rate(text: &str) -> Option<Rate> {
    let (number, unit) = text.split_once('/')?;
    let (_, window) = WINDOWS.into_iter().find(|(name, _)| *name == unit)?;
    // A sign is refused, although `parse` would take it.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let max = number.parse().ok().filter(|max| digits && (1..=RATE_MAX).contains(max))?;
    Some(Rate { max, window })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_of_starts_and_a_unit() {
        for (text, max, seconds) in [("1/s", 1, 1), ("100/m", 100, 60), ("1000000/h", 1_000_000, 3600)] {
            assert_eq!(parse_rate(text), Some(Rate { max, window: Duration::from_secs(seconds) }));
        }
        for wrong in ["", "/", "5", "/s", "5/", "0/s", "+5/s", "5/d", "5 / s", "1.5/s", "1000001/s", "5/s/s"] {
            assert_eq!(parse_rate(wrong), None, "{wrong}");
        }
    }
}
