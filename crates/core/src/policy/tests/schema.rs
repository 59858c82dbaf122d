//! The published schema and the parser know the same words.

use crate::output::OutputDecision;
use std::collections::BTreeSet;

use serde_json::Value;

use super::super::keys;
use super::*;
use crate::config::schema_check::{same_keys, strings, words};
use crate::scan::Scanners;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

#[test]
fn schema_and_parser_accept_the_same_keys() {
    let sections = [
        ("", &keys::POLICY),
        ("/$defs/default", &keys::DEFAULT),
        ("/$defs/rule", &keys::RULE),
        ("/$defs/match", &keys::MATCH),
        ("/$defs/velocity", &keys::VELOCITY),
        ("/$defs/constraints", &keys::CONSTRAINTS),
        ("/$defs/approval", &keys::APPROVAL),
        ("/$defs/remediation", &keys::REMEDIATION),
        ("/$defs/overlay", &keys::OVERLAY),
        ("/$defs/pattern", &keys::PATTERN),
        ("/$defs/output", &keys::OUTPUT),
        ("/$defs/output_rule", &keys::OUTPUT_RULE),
        ("/$defs/output_match", &keys::OUTPUT_MATCH),
        ("/$defs/fail_mode", &keys::FAIL_MODE),
        ("/$defs/input_policy", &keys::INPUT_POLICY),
    ];
    same_keys(SCHEMA, &sections);
}

#[test]
fn schema_and_parser_know_the_same_decisions() {
    let schema = schema();
    let decisions = |pointer: &str| strings(schema.pointer(pointer).unwrap());
    assert_eq!(decisions("/$defs/rule/properties/decision/enum"), words(Decision::words().map(|(word, _)| word)));
    assert_eq!(
        decisions("/$defs/output_rule/properties/decision/enum"),
        words(OutputDecision::ALL.map(OutputDecision::as_str))
    );
}

#[test]
fn what_the_schema_requires_the_parser_asks_for() {
    for (text, pointer) in [
        ("rules: [{}]", "/$defs/rule"),
        ("output: {rules: [{}]}", "/$defs/output_rule"),
        ("default: {}", "/$defs/default"),
        ("patterns: {x: {}}", "/$defs/pattern"),
        ("rules: [{id: a, match: {velocity: {}}, decision: deny, reason: x}]", "/$defs/velocity"),
        ("input_policy: {}", "/$defs/input_policy"),
        ("output: {fail_modes: [{topics: [a]}]}", "/$defs/fail_mode"),
        ("tenants: {x: {}}", "/$defs/overlay"),
    ] {
        let asked: BTreeSet<String> = errors(&format!("version: 1\n{text}\n"))
            .iter()
            .filter_map(|error| error.split_once(" has no \"")?.1.split_once('"').map(|(key, _)| key.to_owned()))
            .collect();
        assert_eq!(asked, strings(&schema().pointer(pointer).unwrap()["required"]), "{pointer}");
    }
}

#[test]
fn the_reference_names_every_key_decision_and_scanner() {
    let doc = include_str!("../../../../../docs/policy.md");
    let sections = [
        &keys::POLICY,
        &keys::DEFAULT,
        &keys::RULE,
        &keys::MATCH,
        &keys::VELOCITY,
        &keys::CONSTRAINTS,
        &keys::APPROVAL,
        &keys::REMEDIATION,
        &keys::PATTERN,
        &keys::OUTPUT,
        &keys::OUTPUT_RULE,
        &keys::OUTPUT_MATCH,
        &keys::FAIL_MODE,
        &keys::INPUT_POLICY,
        &keys::CASE,
        &keys::REQUEST,
        &keys::EXPECT,
    ];
    let known = sections.iter().flat_map(|section| section.keys.iter().copied());
    let decisions =
        Decision::words().map(|(word, _)| word).into_iter().chain(OutputDecision::ALL.map(OutputDecision::as_str));
    let words = known.chain(decisions).chain(Scanners::builtin().names()).chain(super::super::facts::JOB_FIELDS);
    // `hold` is shown with its value, as it has only one that does anything.
    let told = |word: &str| doc.contains(&format!("`{word}`")) || doc.contains(&format!("`{word}: true`"));
    let missing: Vec<&str> = words.filter(|word| !told(word)).collect();
    assert!(missing.is_empty(), "docs/policy.md does not name {missing:?}");
}
