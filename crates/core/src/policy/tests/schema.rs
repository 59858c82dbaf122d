//! The published schema and the parser know the same words.

use crate::output::OutputDecision;
use std::collections::BTreeSet;

use serde_json::Value;

use super::super::keys;
use super::*;
use crate::config::Section;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn words<'a>(list: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    list.into_iter().map(str::to_owned).collect()
}

fn strings(value: &Value) -> BTreeSet<String> {
    words(value.as_array().into_iter().flatten().filter_map(Value::as_str))
}

#[test]
fn schema_and_parser_accept_the_same_keys() {
    let sections: [(&str, &Section); 15] = [
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
    let schema = schema();
    for (pointer, section) in sections {
        let object = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
        let properties = object["properties"].as_object().unwrap();
        assert_eq!(words(properties.keys().map(String::as_str)), words(section.keys.iter().copied()), "{pointer}");
        assert_eq!(object["additionalProperties"], false, "{pointer} is closed");
    }
    let closed = schema["$defs"].as_object().unwrap().values().filter(|def| def.get("properties").is_some()).count();
    assert_eq!(closed + 1, sections.len(), "every map of the schema is compared");
}

#[test]
fn schema_and_parser_know_the_same_decisions() {
    let schema = schema();
    let decisions = |pointer: &str| strings(schema.pointer(pointer).unwrap());
    assert_eq!(decisions("/$defs/rule/properties/decision/enum"), words(Decision::ALL.map(Decision::as_str)));
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
