//! Loads a policy from the text of a file, or reports every error in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Policy;
use super::conditions::RuleReader;
use super::input::InputPolicy;
use super::keys;
use super::output::OutputPolicy;
use super::patterns::Patterns;
use super::predicate::ScratchLayout;
use super::rule::{DEFAULT_RULE, Ids, RuleSet, hash_of};
use super::terms::Terms;
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlNode};
use crate::config::{ConfigError, ConfigReport, snapshot};
use crate::formula::Regexes;
use crate::ids::check_name;
use crate::verdict::Decision;

/// The only version of the policy language so far.
const VERSION: u64 = 1;
const NO_MATCH: &str = "no rule matched";

impl Policy {
    /// Compiles a policy file. `file` is its name in error messages.
    pub fn load(file: &str, text: &str) -> Result<Self, Vec<ConfigError>> {
        Self::read(text, ConfigReport::new(file))
    }

    /// Compiles a text that was accepted before, perhaps by an earlier version with fewer checks. New checks must not make
    /// it unreadable.
    pub fn load_stored(file: &str, text: &str) -> Result<Self, Vec<ConfigError>> {
        Self::read(text, ConfigReport::of_stored(file))
    }

    fn read(text: &str, mut report: ConfigReport) -> Result<Self, Vec<ConfigError>> {
        let policy = yaml::parse(text, &mut report).and_then(|root| read_policy(&root, text, &mut report));
        match policy {
            Some(policy) if report.is_clean() => Ok(policy),
            _ => Err(report.into_errors()),
        }
    }
}

fn read_policy(root: &YamlNode, text: &str, report: &mut ConfigReport) -> Option<Policy> {
    let fields = Fields::of(root, &keys::POLICY, report)?;
    if let Some(node) = fields.need("version", report) {
        read::whole(node, "version", VERSION..=VERSION, report);
    }
    let patterns = Patterns::read(fields.get("patterns"), report);
    let mut ids = Ids::new();
    let (mut regexes, mut shelf) = (Regexes::new(), ScratchLayout::default());
    let mut reading = RuleReader { patterns: patterns.as_ref(), regexes: &mut regexes, shelf: &mut shelf, report };
    let base = fields.get("rules").map(|node| RuleSet::read(node, "base", &mut ids, &mut reading));
    let tenants = fields.get("tenants").map(|node| overlays(node, "tenant", &mut ids, &mut reading));
    let workflows = fields.get("workflows").map(|node| overlays(node, "workflow", &mut ids, &mut reading));
    let snapshot = snapshot("sha256", text);
    let output = OutputPolicy::read(fields.get("output"), &snapshot, &mut ids, &mut reading);
    Some(Policy {
        snapshot,
        source: text.into(),
        base: base.unwrap_or_default(),
        default: default(fields.get("default"), report),
        tenants: tenants.unwrap_or_default(),
        workflows: workflows.unwrap_or_default(),
        regexes: Arc::new(regexes),
        output,
        input: InputPolicy::read(fields.get("input_policy"), report),
    })
}

fn default(node: Option<&YamlNode>, report: &mut ConfigReport) -> Terms {
    let mut decision = Decision::Deny;
    let mut reason = NO_MATCH;
    if let Some(fields) = node.and_then(|node| Fields::of(node, &keys::DEFAULT, report)) {
        let words = [("allow", Decision::Allow), ("deny", Decision::Deny)];
        let read = fields.need("decision", report).and_then(|node| read::choice(node, "decision", &words, report));
        decision = read.unwrap_or(decision);
        reason = fields.get("reason").and_then(|node| read::text(node, "reason", report)).unwrap_or(reason);
    }
    Terms::plain(DEFAULT_RULE, hash_of(&(decision, reason)), decision, reason)
}

fn overlays(node: &YamlNode, kind: &str, ids: &mut Ids, reading: &mut RuleReader<'_>) -> BTreeMap<Box<str>, RuleSet> {
    let mut sets = BTreeMap::new();
    for entry in read::some_entries(node, &format!("{kind}s"), reading.report).unwrap_or_default() {
        if let Err(error) = check_name(&entry.key) {
            reading.report.refuse(entry.at, format!("{kind} {:?} {error}", entry.key));
        }
        let Some(fields) = Fields::of(&entry.value, &keys::OVERLAY, reading.report) else { continue };
        if let Some(rules) = fields.need("rules", reading.report) {
            let scope = format!("{kind} {}", entry.key);
            sets.insert(entry.key.as_str().into(), RuleSet::read(rules, &scope, ids, reading));
        }
    }
    sets
}
