//! Content conditions: built-in scanners, the patterns that a policy defines, and patterns written into a rule.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::keys;
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;
use crate::config::{ConfigReport, SourcePosition};
use crate::formula::last_line;
use crate::scan::{PatternFault, Scanners, Selection, UserPattern};

/// The name that selects every pattern of the policy at once.
const ALL_PATTERNS: &str = "patterns";

/// The names that `scan:` may use in one policy.
pub(super) struct Patterns {
    scanners: Scanners,
    /// The definitions as written, for the hashes of the rules that use them.
    definitions: BTreeMap<String, Json>,
}

impl Patterns {
    /// None if a definition is invalid; every invalid one is reported.
    pub(super) fn read(node: Option<&YamlNode>, report: &mut ConfigReport) -> Option<Self> {
        let mut patterns = Vec::new();
        let mut definitions = BTreeMap::new();
        let entries = node.map_or(Some([].as_slice()), |node| read::entries(node, "patterns", report))?;
        for entry in entries {
            let pattern = read_pattern(&entry.key, &entry.value, report);
            patterns.extend(pattern.filter(|pattern| check(pattern, entry.at, report)));
            definitions.insert(entry.key.clone(), entry.value.to_json());
        }
        let whole = patterns.len() == entries.len();
        match Scanners::new(&patterns) {
            Ok(scanners) => whole.then_some(Self { scanners, definitions }),
            Err(error) => {
                let at =
                    entries.iter().find(|entry| entry.key == error.name).or_else(|| entries.first()).map(|entry| entry.at);
                at.into_iter()
                    .for_each(|at| report.refuse(at, format!("pattern {:?}: {}", error.name, fault(&error.fault))));
                None
            }
        }
    }

    /// The definitions that the names of a `scan:` list stand for.
    pub(super) fn definitions(&self, scan: Option<&Json>) -> BTreeMap<&str, &Json> {
        let named = |name: &str| {
            let list = scan.and_then(Json::as_array);
            list.is_some_and(|list| list.iter().any(|entry| entry == name || entry == ALL_PATTERNS))
        };
        self.definitions.iter().map(|(name, json)| (name.as_str(), json)).filter(|(name, _)| named(name)).collect()
    }
}

fn read_pattern(name: &str, node: &YamlNode, report: &mut ConfigReport) -> Option<UserPattern> {
    let fields = Fields::of(node, &keys::PATTERN, report)?;
    let regex = fields.need("regex", report).and_then(|node| read::text(node, "regex", report))?;
    let keywords = match fields.get("keywords") {
        Some(node) => read::texts(node, "keywords", report)?.into_iter().map(|(word, _)| word.to_owned()).collect(),
        None => Vec::new(),
    };
    Some(UserPattern { name: name.to_owned(), regex: regex.to_owned(), keywords })
}

/// Compiles one pattern alone, so that every invalid one is reported and not only the first.
fn check(pattern: &UserPattern, at: SourcePosition, report: &mut ConfigReport) -> bool {
    match Scanners::new(std::slice::from_ref(pattern)) {
        Ok(_) => true,
        Err(error) => {
            report.refuse(at, format!("pattern {:?}: {}", error.name, fault(&error.fault)));
            false
        }
    }
}

/// Regex errors have several lines with a drawing; the last line has the reason.
fn fault(fault: &PatternFault) -> String {
    match fault {
        PatternFault::Syntax(text) => format!("bad regex: {}", last_line(text)),
        other => other.to_string(),
    }
}

/// The content conditions of one rule. If both are given, both must hold.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) scan: Option<Selection>,
    pub(super) patterns: Option<Selection>,
}

impl Content {
    /// `known` is None if the policy's own patterns are invalid: then names are not checked.
    pub(super) fn read(fields: &Fields<'_>, rule: &str, known: Option<&Patterns>, report: &mut ConfigReport) -> Self {
        let scan = fields.get("scan").and_then(|node| select(node, known, report));
        let patterns = fields.get("patterns").and_then(|node| inline(node, rule, report));
        Self { scan, patterns }
    }

    pub(super) fn is_none(&self) -> bool {
        self.scan.is_none() && self.patterns.is_none()
    }

    pub(super) fn selections(&self) -> impl Iterator<Item = &Selection> {
        self.scan.iter().chain(&self.patterns)
    }

    pub(super) fn scan_hits(&self, text: &str) -> bool {
        self.scan.as_ref().is_none_or(|scan| Scanners::builtin().hits(scan, text))
    }

    pub(super) fn patterns_hit(&self, text: &str) -> bool {
        self.patterns.as_ref().is_none_or(|patterns| Scanners::builtin().hits(patterns, text))
    }

    pub(super) fn hits(&self, text: &str) -> bool {
        self.patterns_hit(text) && self.scan_hits(text)
    }
}

fn select(node: &YamlNode, known: Option<&Patterns>, report: &mut ConfigReport) -> Option<Selection> {
    let names = read::texts(node, "scan", report)?;
    let scanners = &known?.scanners;
    for (name, at) in &names {
        if scanners.select(&[name]).is_err() {
            report.unknown(*at, format!("no scanner is called {name:?}"), name, scanners.names());
        }
    }
    scanners.select(&names.iter().map(|(name, _)| *name).collect::<Vec<_>>()).ok()
}

/// Patterns written into a rule go through the scanners too, because these see through the escapes of JSON.
fn inline(node: &YamlNode, rule: &str, report: &mut ConfigReport) -> Option<Selection> {
    let texts = read::texts(node, "patterns", report)?;
    let mut patterns = Vec::new();
    for (position, (regex, at)) in texts.into_iter().enumerate() {
        let pattern = UserPattern { name: inline_name(rule, position + 1), regex: regex.to_owned(), keywords: Vec::new() };
        match Scanners::new(std::slice::from_ref(&pattern)) {
            Ok(_) => patterns.push(pattern),
            Err(error) => report.refuse(at, format!("pattern {regex:?}: {}", fault(&error.fault))),
        }
    }
    match Scanners::new(&patterns) {
        Ok(scanners) => scanners.select(&[ALL_PATTERNS]).ok(),
        Err(error) => {
            report.refuse(node.at, format!("patterns: {}", fault(&error.fault)));
            None
        }
    }
}

/// The name of a pattern without a name, in findings: the rule's id and the pattern's position.
fn inline_name(rule: &str, position: usize) -> String {
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c.to_ascii_lowercase() } else { '-' };
    let rule: String = rule.chars().take(48).map(plain).collect();
    format!("{rule}.{position}")
}
