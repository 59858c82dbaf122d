//! Timeouts as their operators write them.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::config::{ConfigError, Section};

const EXAMPLE: &str = include_str!("../../../../config/timeouts.yaml");

fn load(text: &str) -> Timeouts {
    Timeouts::load("timeouts.yaml", text).unwrap_or_else(|errors| panic!("{}", shown(&errors).join("\n")))
}

fn shown(errors: &[ConfigError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Dispatch and running of a topic, in milliseconds.
fn millis(timeouts: &Timeouts, topic: &str) -> (u128, u128) {
    let found = timeouts.of(&topic.into());
    (found.dispatch.as_millis(), found.running.as_millis())
}

#[test]
fn without_a_file_the_numbers_of_the_requirement_documents_hold() {
    let timeouts = Timeouts::default();
    assert_eq!(millis(&timeouts, "job.echo"), (120_000, 300_000));
    assert_eq!(&**timeouts.snapshot(), "builtin:timeouts");
}

#[test]
fn one_pattern_decides_and_what_it_leaves_out_is_the_default() {
    let timeouts = load(
        "defaults: {running: 10m}\ntopics:\n  job.*: {running: 1h}\n  job.repo.*: {dispatch: 5s}\n  job.repo.scan: {dispatch: 1s, running: 1ms}\n",
    );
    for (topic, expected) in [
        ("other", (120_000, 600_000)),
        ("job.echo", (120_000, 3_600_000)),
        ("job.repo.lint", (5_000, 600_000)),
        ("job.repo.scan", (1_000, 1)),
    ] {
        assert_eq!(millis(&timeouts, topic), expected, "{topic}");
    }
    assert_eq!((&timeouts.snapshot()[..9], timeouts.snapshot().len()), ("timeouts:", 9 + 64));
}

#[test]
fn every_fault_is_refused_at_its_line() {
    for (text, expected) in [
        ("- a\n", &["1: the timeouts file must be a map of keys and values"][..]),
        ("{}\n", &["1: the timeouts file is empty; remove it or name at least one"]),
        ("workflows: {a: {running: 1m}}\n", &["1: unknown key \"workflows\" in the timeouts file"]),
        ("default: {running: 1m}\n", &["1: unknown key \"default\" in the timeouts file; did you mean \"defaults\"?"]),
        (
            "defaults: {}\ntopics: {}\n",
            &["1: defaults is empty; remove it or name at least one", "2: topics is empty; remove it or name at least one"],
        ),
        (
            "topics:\n  a: {}\n  b: 5m\n  'c*?': {runing: 1m}\n",
            &[
                "2: the entry of \"a\" is empty; remove it or name at least one",
                "3: the entry of \"b\" must be a map of keys and values",
                "4: bad glob \"c*?\" in topics: it must not contain '?'; topics have letters, digits and . _ - :, and * is the only wildcard",
                "4: unknown key \"runing\" in timeouts; did you mean \"running\"?",
            ],
        ),
        ("topics: {a: {running: 1m}, a: {running: 1m}}\n", &["1: key \"a\" is given twice"]),
        (
            "defaults:\n  dispatch: 500ms\n  running: 0s\n",
            &["2: dispatch must be between 1s and 366d", "3: running must be between 1ms and 366d"],
        ),
        (
            "defaults:\n  dispatch: 120\n  running: 367d\n",
            &[
                "2: dispatch must be a time such as 500ms, 30s, 5m, 2h or 7d",
                "3: running must be a time such as 500ms, 30s, 5m, 2h or 7d",
            ],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|line| format!("timeouts.yaml:{line}")).collect();
        let errors = Timeouts::load("timeouts.yaml", text).expect_err("broken timeouts were loaded");
        assert_eq!(shown(&errors), expected, "{text}");
    }
}

#[test]
fn the_example_gives_long_work_more_time() {
    let timeouts = load(EXAMPLE);
    let default = millis(&Timeouts::default(), "other");
    assert_eq!(millis(&timeouts, "other"), default);
    assert_eq!(millis(&timeouts, "job.echo"), (default.0, 30_000));
    assert_eq!(millis(&timeouts, "job.repo.lint"), (default.0, 900_000));
    assert_eq!(millis(&timeouts, "job.repo.tests"), (default.0, 3_600_000));
    assert_eq!(millis(&timeouts, "job.code.llm"), (300_000, 1_800_000));
}

#[test]
fn the_reference_names_every_key_and_default() {
    let doc = include_str!("../../../../docs/pools.md");
    let default = TopicTimeouts::default();
    for key in keys::FILE.keys {
        assert!(doc.contains(&format!("`{key}`")), "{key}");
    }
    for (key, span) in keys::TIMEOUTS.keys.iter().zip([default.dispatch, default.running]) {
        let row = format!("| `{key}` | `{}s` |", span.as_secs());
        assert!(doc.contains(&row), "{row}");
    }
}

#[test]
fn schema_and_loader_accept_the_same_keys() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let sections: [(&str, &Section); 2] = [("", &keys::FILE), ("/$defs/timeouts", &keys::TIMEOUTS)];
    for (pointer, section) in sections {
        let object = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
        let properties: BTreeSet<&str> = object["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(properties, section.keys.iter().copied().collect(), "{pointer}");
        assert_eq!(object["additionalProperties"], false, "{pointer} is closed");
        assert_eq!(object.get("required"), None, "the loader asks for no key of {pointer}");
    }
    let closed = schema["$defs"].as_object().unwrap().values().filter(|def| def.get("properties").is_some()).count();
    assert_eq!(closed + 1, sections.len(), "every map of the schema is compared");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_loads_or_is_refused(text in "\\PC{0,200}|[ -~\\n\\r\\t]{0,200}|(defaults|topics|:|\\{|\\}|,| |\n|a|[*]|running|1s|1ms|0d){0,40}") {
        match Timeouts::load("timeouts.yaml", &text) {
            Ok(timeouts) => prop_assert!(timeouts.of(&"a".into()).running > Duration::ZERO),
            Err(errors) => prop_assert!(!errors.is_empty()),
        }
    }
}
