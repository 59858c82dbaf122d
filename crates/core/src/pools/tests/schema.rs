//! The published schema and the loader know the same words and bounds.

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
fn schema_and_loader_accept_the_same_keys() {
    let sections: [(&str, &Section); 6] = [
        ("", &keys::FILE),
        ("/$defs/pool", &keys::POOL),
        ("/$defs/overload", &keys::OVERLOAD),
        ("/$defs/limit", &keys::LIMIT),
        ("/$defs/fairness", &keys::FAIRNESS),
        ("/$defs/priorities", &keys::PRIORITIES),
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
