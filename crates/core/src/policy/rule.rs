//! Input rules and ordered sets of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;

use super::conditions::{Conditions, RuleMatch, RuleReader};
use super::index::Index;
use super::keys;
use super::patterns::Patterns;
use super::subject::Subject;
use super::terms::Terms;
use super::velocity::Velocity;
use super::when::Evaluation;
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;
use crate::config::{ConfigReport, SourcePosition, sha256};
use crate::ids::check_name;

/// The rule id of verdicts without a matching rule.
pub const DEFAULT_RULE: &str = "default";

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) terms: Terms,
    pub(super) conditions: Conditions,
}

/// The rule ids of a policy, over all sections: a verdict names only the id, so it must be unique.
pub(super) type Ids = BTreeMap<String, SourcePosition>;

/// Reads the id of a rule and refuses one that is taken.
pub(super) fn read_id<'a>(fields: &Fields<'a>, ids: &mut Ids, report: &mut ConfigReport) -> Option<&'a str> {
    let node = fields.need("id", report)?;
    let id = read::text(node, "id", report)?;
    if let Err(error) = check_name(id) {
        report.refuse(node.at, format!("rule id {id:?} {error}"));
    }
    if id == DEFAULT_RULE {
        report.refuse(node.at, format!("the rule id {DEFAULT_RULE:?} is taken by the default; choose another"));
    }
    if let Some(first) = ids.get(id) {
        report.refuse(node.at, format!("rule id {id:?} is already used in line {}; choose another", first.line));
    } else {
        ids.insert(id.to_owned(), node.at);
    }
    Some(id)
}

impl Rule {
    fn read(node: &YamlNode, scope: &str, ids: &mut Ids, reading: &mut RuleReader<'_>) -> Option<Self> {
        let fields = Fields::of(node, &keys::RULE, reading.report)?;
        let id = read_id(&fields, ids, reading.report);
        if let Some(node) = fields.get("description") {
            read::text(node, "description", reading.report);
        }
        let hash = reading.patterns.map_or_else(|| Arc::from(""), |patterns| content_hash(node, scope, patterns));
        let terms = Terms::read(&fields, id.unwrap_or_default(), hash, reading.report);
        let conditions = fields.need("match", reading.report);
        let conditions = conditions.and_then(|node| Conditions::read(node, id.unwrap_or_default(), reading));
        id?;
        Some(Self { terms: terms?, conditions: conditions? })
    }
}

/// SHA-256 over the meaning of a rule, independent of its layout: the order of keys, comments and the description do not
/// count; the definitions of the patterns that it scans for do.
fn content_hash(node: &YamlNode, scope: &str, patterns: &Patterns) -> Arc<str> {
    #[derive(Serialize)]
    struct HashedRule<'a> {
        scope: &'a str,
        rule: &'a Json,
        patterns: BTreeMap<&'a str, &'a Json>,
    }
    let mut rule = node.to_json();
    if let Some(fields) = rule.as_object_mut() {
        fields.remove("description");
    }
    let patterns = patterns.definitions(rule.pointer("/match/scan"));
    hash_of(&HashedRule { scope, rule: &rule, patterns })
}

pub(super) fn hash_of(content: &impl Serialize) -> Arc<str> {
    sha256(&serde_json::to_vec(content).unwrap_or_default()).into()
}

/// Rules in order, with the index that skips rules which cannot match.
#[derive(Debug, Default)]
pub(super) struct RuleSet {
    pub(super) rules: Vec<Rule>,
    index: Index,
}

/// The rule that decided.
pub(super) struct DecidingRule<'a> {
    pub(super) rule: &'a Rule,
    /// Why the rule could not be evaluated; then it denies.
    pub(super) failure: Option<String>,
}

impl RuleSet {
    /// `scope` names where the rules apply; it is part of their hashes.
    pub(super) fn read(node: &YamlNode, scope: &str, ids: &mut Ids, reading: &mut RuleReader<'_>) -> Self {
        let items = read::items(node, "rules", reading.report).unwrap_or_default();
        let rules: Vec<Rule> = items.iter().filter_map(|item| Rule::read(item, scope, ids, reading)).collect();
        let index = Index::new(rules.iter().map(|rule| &rule.conditions));
        Self { rules, index }
    }

    /// The first rule in order that matches or fails.
    pub(super) fn first(
        &self,
        subject: &Subject<'_>,
        evaluation: &Evaluation<'_, '_>,
        windows: &dyn Velocity,
    ) -> Option<DecidingRule<'_>> {
        let falls_short = |position: usize| self.rules[position].conditions.falls_short(evaluation);
        self.index.candidates(subject.tenant, subject.topic, falls_short).find_map(|position| {
            let rule = &self.rules[position];
            match rule.conditions.check(&rule.terms.id, subject, evaluation, windows) {
                RuleMatch::Matched => Some(DecidingRule { rule, failure: None }),
                RuleMatch::Failed(error) => Some(DecidingRule { rule, failure: Some(error) }),
                RuleMatch::Missed(_) => None,
            }
        })
    }
}
