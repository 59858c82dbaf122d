//! The published schema and the loader know the same words and bounds.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::keys;
use super::*;
use crate::config::schema_check::{same_keys, strings, words};

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

#[test]
fn schema_and_loader_accept_the_same_keys() {
    let sections = [
        ("", &keys::FILE),
        ("/$defs/pool", &keys::POOL),
        ("/$defs/overload", &keys::OVERLOAD),
        ("/$defs/limit", &keys::LIMIT),
        ("/$defs/fairness", &keys::FAIRNESS),
        ("/$defs/priorities", &keys::PRIORITIES),
    ];
    same_keys(SCHEMA, &sections);
}

#[test]
fn schema_and_loader_know_the_same_words_and_bounds() {
    let schema = schema();
    let at = |pointer: &str| schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
    assert_eq!(strings(at("/$defs/pool/properties/dispatch/enum")), words(DispatchMode::ALL.map(DispatchMode::as_str)));
    assert_eq!(strings(at("/$defs/limit/properties/per/items/enum")), words(Per::ALL.map(Per::as_str)));
    assert_eq!(at("/$defs/concurrent/maximum"), CONCURRENT_MAX);
    assert_eq!(at("/$defs/weight/maximum"), WEIGHT_MAX);
    for priority in Priority::ALL {
        assert_eq!(at(&format!("/$defs/priorities/properties/{priority}/default")), priority.weight());
    }
}

#[test]
fn what_the_schema_requires_the_loader_asks_for() {
    for (text, pointer) in [("fairness: {}", ""), ("topics: {a: p}\npools: {p: {}}\nlimits: [{}]", "/$defs/limit")] {
        let asked: BTreeSet<String> = errors(text)
            .iter()
            .filter_map(|error| error.split_once(" has no \"")?.1.split_once('"').map(|(key, _)| key.to_owned()))
            .collect();
        assert_eq!(asked, strings(&schema().pointer(pointer).unwrap()["required"]), "{pointer}");
    }
}
