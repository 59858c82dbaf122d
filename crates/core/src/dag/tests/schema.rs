//! The published schema and the loader know the same words and bounds.

use std::collections::BTreeSet;

use super::super::keys;
use super::super::load::AT_ONCE_MAX;
use super::*;
use crate::config::schema_check::{same_keys, strings, words};
use crate::lane::Priority;
use crate::limits::{ATTEMPTS_MAX, SPAN_MS_MAX};
use crate::retry::read::RETRY_OF_JOB;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

#[test]
fn schema_and_loader_accept_the_same_keys() {
    let sections = [
        ("", &keys::FILE),
        ("/$defs/param", &keys::PARAM),
        ("/$defs/node", &keys::NODE),
        ("/$defs/memoise", &keys::MEMOISE),
        ("/$defs/approval", &keys::APPROVAL),
        ("/$defs/compensation", &keys::COMPENSATION),
        ("/$defs/retry", &RETRY_OF_JOB),
    ];
    same_keys(SCHEMA, &sections);
}

#[test]
fn schema_and_loader_know_the_same_words_and_bounds() {
    let schema = schema();
    let at = |pointer: &str| schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
    let node = |key: &str, rest: &str| at(&format!("/$defs/node/properties/{key}{rest}"));
    assert_eq!(strings(at("/$defs/type/enum")), words(ParamKind::ALL.map(ParamKind::as_str)));
    assert_eq!(strings(node("join", "/enum")), words(Join::ALL.map(Join::as_str)));
    assert_eq!(node("join", "/default"), Join::default().as_str());
    assert_eq!(strings(node("on_fail", "/enum")), words(OnFail::ALL.map(OnFail::as_str)));
    assert_eq!(node("on_fail", "/default"), OnFail::default().as_str());
    assert_eq!(strings(node("priority", "/enum")), words(Priority::ALL.map(Priority::as_str)));
    assert_eq!(node("min_success", "/oneOf/0/maximum"), ITEMS_MAX);
    assert_eq!(at("/properties/nodes/maxProperties"), NODES_MAX);
    assert_eq!(at("/$defs/at_once/maximum"), AT_ONCE_MAX);
    assert_eq!(at("/$defs/attempts/maximum"), ATTEMPTS_MAX);
    assert_eq!(at("/$defs/millis/maximum"), SPAN_MS_MAX);
    assert_eq!(node("delay_sec", "/maximum"), SPAN_MS_MAX / 1000);
}

#[test]
fn what_the_schema_requires_the_loader_asks_for() {
    for (text, pointer) in [
        ("description: x", ""),
        ("version: 1\ndag: d\nnodes: {a: {topic: t}}\nparams: {x: {}}", "/$defs/param"),
        ("version: 1\ndag: d\nnodes: {a: {topic: t, memoise: {}}}", "/$defs/memoise"),
        ("version: 1\ndag: d\nnodes: {a: {approval: {}}}", "/$defs/approval"),
        ("version: 1\ndag: d\nnodes: {a: {topic: t, compensation: {}}}", "/$defs/compensation"),
    ] {
        let asked: BTreeSet<String> = errors(text)
            .iter()
            .filter_map(|error| error.split_once(" has no \"")?.1.split_once('"').map(|(key, _)| key.to_owned()))
            .collect();
        assert_eq!(asked, strings(&schema().pointer(pointer).unwrap()["required"]), "{pointer}");
    }
}

#[test]
fn every_way_to_say_what_a_node_does_is_in_both() {
    let schema = schema();
    let ways = schema.pointer("/$defs/node/oneOf").and_then(Value::as_array).unwrap();
    let ways: BTreeSet<String> = ways.iter().flat_map(|way| strings(&way["required"])).collect();
    assert_eq!(ways, words(keys::KINDS));
    let fitting = keys::COMMON.iter().chain(&keys::KINDS).chain(&keys::WITH_TOPIC).chain(&keys::WITH_DAG).copied();
    assert_eq!(words(fitting), words(keys::NODE.keys.iter().copied()), "every key fits some node");
}
