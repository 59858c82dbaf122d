//! Timeouts as their operators write them.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::{ConfigError, Section};
use crate::retry::RetryPolicy;
use crate::retry::read::RETRY;

const EXAMPLE: &str = include_str!("../../../../examples/config/timeouts.yaml");

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
fn retries_of_a_topic_are_those_of_the_defaults_where_its_entry_is_silent() {
    let timeouts = load(
        "defaults:\n  retry: {attempts: 5, base: 2s, non_retryable: [gone]}\ntopics:\n  job.pay: {retry: {attempts: 1, losses: 0, factor: 1.5, cap: 1m, total: 1h}}\n  job.x: {running: 1s}\n",
    );
    let policy = |topic: &str| RetryPolicy::of(&Limits::default()).with(timeouts.retry_of(&topic.into()));
    let pay = policy("job.pay");
    assert_eq!((pay.attempts, pay.losses, pay.base.as_secs(), pay.factor_percent), (1, 0, 2, 150));
    assert_eq!((pay.cap.as_secs(), pay.total, pay.retries("gone")), (60, Some(Duration::from_secs(3_600)), false));
    assert_eq!(policy("job.x"), policy("other"));
    assert_eq!((policy("other").attempts, policy("other").losses, policy("other").total), (5, 6, None));
}

#[test]
fn a_workflow_has_the_time_of_the_best_pattern() {
    let timeouts = load("workflows: {nightly: {running: 2h}, 'etl-*': {running: 30m}}\n");
    let seconds = |name: &str| timeouts.of_workflow(name).map(|span| span.as_secs());
    assert_eq!((seconds("nightly"), seconds("etl-7"), seconds("other")), (Some(7_200), Some(1_800), None));
}

#[test]
fn every_fault_is_refused_at_its_line() {
    for (text, expected) in [
        ("- a\n", &["1: the timeouts file must be a map of keys and values"][..]),
        ("{}\n", &["1: the timeouts file is empty; remove it or name at least one"]),
        (
            "workflow: {a: {running: 1m}}\n",
            &["1: unknown key \"workflow\" in the timeouts file; did you mean \"workflows\"?"],
        ),
        (
            "workflows: {a: {}, b: {running: 0s}}\n",
            &["1: the workflow has no \"running\"; add it", "1: running must be between 1ms and 366d"],
        ),
        (
            "defaults:\n  retry: {factor: 0.5, losses: 2000, jitter_percent: 101}\ntopics:\n  a: {retry: {}}\n  b: {retry: {bases: 1s, non_retryable: [x, x, 'a b']}}\n",
            &[
                "2: factor must be between 1 and 10",
                "2: losses must be a whole number between 0 and 1000",
                "2: jitter_percent must be a whole number between 0 and 100",
                "4: retry is empty; remove it or name at least one",
                "5: unknown key \"bases\" in retry; did you mean \"base\"?",
                "5: \"x\" stands twice in non_retryable; remove one",
                "5: code \"a b\" must not contain ' '; allowed are letters, digits and . _ - :",
            ],
        ),
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
    for key in RETRY.keys {
        assert!(doc.contains(&format!("`{key}`")), "retry.{key}");
    }
    for (key, span) in keys::TIMEOUTS.keys.iter().zip([default.dispatch, default.running]) {
        let row = format!("| `{key}` | `{}s` |", span.as_secs());
        assert!(doc.contains(&row), "{row}");
    }
}

#[test]
fn schema_and_loader_accept_the_same_keys() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let sections: [(&str, &Section); 4] = [
        ("", &keys::FILE),
        ("/$defs/timeouts", &keys::TIMEOUTS),
        ("/$defs/retry", &RETRY),
        ("/$defs/workflow", &keys::WORKFLOW),
    ];
    for (pointer, section) in sections {
        let object = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
        let properties: BTreeSet<&str> = object["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(properties, section.keys.iter().copied().collect(), "{pointer}");
        assert_eq!(object["additionalProperties"], false, "{pointer} is closed");
        let needed = if pointer == "/$defs/workflow" { json!(["running"]) } else { Value::Null };
        assert_eq!(object.get("required").cloned().unwrap_or_default(), needed, "{pointer}");
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
