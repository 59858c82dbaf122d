//! The published schema and the loader know the same words and bounds.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{SCHEMA, keys};
use super::*;
use crate::config::schema_check::{same_keys, strings, words};
use crate::lane::Priority;
use crate::limits::ATTEMPTS_MAX;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

#[test]
fn schema_and_loader_accept_the_same_keys() {
    let sections =
        [("", &keys::FILE), ("/$defs/schedule", &keys::SCHEDULE), ("/$defs/job", &keys::JOB), ("/$defs/dag", &keys::DAG)];
    same_keys(SCHEMA, &sections);
}

#[test]
fn schema_and_loader_know_the_same_words_and_bounds() {
    let schema = schema();
    let at = |pointer: &str| schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
    let schedule = |rest: &str| at(&format!("/$defs/schedule/properties/{rest}"));
    assert_eq!(strings(schedule("misfire/enum")), words(Misfire::ALL.iter().map(|word| word.as_str())));
    assert_eq!(schedule("misfire/default"), Misfire::default().as_str());
    assert_eq!(strings(schedule("overlap/enum")), words(Overlap::ALL.iter().map(|word| word.as_str())));
    assert_eq!(schedule("overlap/default"), Overlap::default().as_str());
    assert_eq!(schedule("queue/maximum"), QUEUE_MAX);
    assert_eq!(at("/properties/schedules/maxProperties"), SCHEDULES_MAX);
    assert_eq!(strings(at("/$defs/job/properties/priority/enum")), words(Priority::ALL.map(Priority::as_str)));
    assert_eq!(at("/$defs/job/properties/max_attempts/maximum"), ATTEMPTS_MAX);
}

#[test]
fn what_the_schema_requires_the_loader_asks_for() {
    for (text, pointer) in [
        ("{}", ""),
        ("version: 1\nschedules: {s: {every: 1h, job: {priority: low}}}", "/$defs/job"),
        ("version: 1\nschedules: {s: {every: 1h, dag: {version: 1}}}", "/$defs/dag"),
    ] {
        let errors = shown(&load("s.yaml", text).unwrap_err());
        let key = |error: &String| error.split_once(" has no \"")?.1.split_once('"').map(|(key, _)| key.to_owned());
        let asked: BTreeSet<String> = errors.iter().filter_map(key).collect();
        assert_eq!(asked, strings(&schema().pointer(pointer).unwrap()["required"]), "{pointer}");
    }
}
