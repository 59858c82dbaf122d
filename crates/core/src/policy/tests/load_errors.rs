//! Everything a load refuses, with the line to change.

use super::*;

/// One rule of which line 5 is `line`.
fn with_line(line: &str) -> String {
    format!("version: 1\nrules:\n  - id: r\n    match:\n      {line}\n    decision: deny\n    reason: no\n")
}

fn assert_refused(text: &str, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|line| format!("policy.yaml:{line}")).collect();
    assert_eq!(errors(text), expected, "{text}");
}

#[test]
fn conditions_are_refused_at_their_line() {
    for (line, message) in [
        ("topcis: [a]", "unknown key \"topcis\" in match; did you mean \"topics\"?"),
        ("topics: []", "topics is empty; remove it or name at least one"),
        ("topics: job.echo", "topics must be a list"),
        (
            "topics: ['job.[a]']",
            "bad glob \"job.[a]\" in topics: it must not contain '['; topics have letters, digits and . _ - :, and * is the only wildcard",
        ),
        ("tenants: [1]", "an entry of tenants must be text; put it in quotes: \"1\""),
        ("tenants: ['']", "an entry of tenants must not be empty"),
        ("labels: {}", "labels is empty; remove it or name at least one"),
        ("labels: {env: true}", "label \"env\" must be text; put it in quotes: \"true\""),
        ("label_not_in: {env: []}", "the list of \"env\" is empty; remove it or name at least one"),
        ("label_not_in: {}", "label_not_in is empty; remove it or name at least one"),
        ("label_allowlist: {}", "label_allowlist is empty; remove it or name at least one"),
        (
            "{label_not_in: {env: [a]}, label_allowlist: {env: [a]}}",
            "label_allowlist is the former name of label_not_in; remove it",
        ),
        ("label_allowlist: {env: []}", "the list of \"env\" is empty; remove it or name at least one"),
        ("label_threshold: {amount: many}", "the limit of \"amount\" must be a number"),
        ("payload_bytes_over: -1", "payload_bytes_over must be a whole number between 0 and 18446744073709551615"),
        ("scan: [secretz]", "no scanner is called \"secretz\"; did you mean \"secrets\"?"),
        ("patterns: ['a(']", "pattern \"a(\": bad regex: unclosed group"),
        (
            "patterns: ['a*']",
            "pattern \"a*\": the regex matches the empty text, so it would match everywhere: make a part of it mandatory",
        ),
        ("velocity: {max: 0, window: 1m}", "max must be a whole number between 1 and 100000"),
        ("velocity: {max: 1, window: 2d}", "window must be between 1s and 1d"),
        ("velocity: {max: 1, window: 60}", "window must be a time such as 500ms, 30s, 5m, 2h or 7d"),
        ("velocity: {max: 1}", "velocity has no \"window\"; add it"),
        (
            "velocity: {max: 1, window: 1m, key: [tenat]}",
            "unknown velocity key \"tenat\"; use tenant, topic, actor, actor_type, capability or labels.<name>; did you mean \"tenant\"?",
        ),
    ] {
        assert_refused(&with_line(line), &[&format!("5: {message}")]);
    }
}

#[test]
fn expressions_are_refused_at_their_line() {
    for (expression, message) in [
        ("jobs.topic == ''", "unknown name \"jobs\" in when; it knows job, payload, now; did you mean \"job\"?"),
        ("job.topics == ''", "unknown field \"topics\" of job in when; it has "),
        ("payload.size() == startWith('a')", "unknown function \"startWith\" in when; did you mean \"startsWith\"?"),
        ("job.topic.matches('a(')", "bad regex \"a(\" in when: unclosed group"),
        ("job.topic.matches(job.tenant)", "matches in when needs a pattern written out as text"),
        ("payload.all(a, payload.all(b, payload.all(c, true)))", "when has more than 2 loops inside of each other"),
        ("x.Y{a: 1} == 1", "when cannot make a \"x.Y\"; there are no message types"),
        ("1 +", "when is not valid CEL at its line 1, column "),
        ("1 + 1", "when of rule \"r\" fails for every job: it gave int, not true or false"),
        ("1 / 0 == 1", "when of rule \"r\" fails for every job: it divides by zero"),
    ] {
        let found = errors(&with_line(&format!("when: {}", serde_json::Value::from(expression))));
        assert!(found[0].starts_with(&format!("policy.yaml:5: {message}")), "{expression}: {found:?}");
    }
}

/// An earlier version took it: were it not read, nothing at all would be decided after an upgrade.
#[test]
fn what_is_of_no_use_and_in_force_is_read_all_the_same() {
    let text = with_line("when: '1 + 1'");
    assert!(Policy::load("policy.yaml", &text).is_err());
    assert_eq!(Policy::load_stored("policy.yaml", &text).map(|policy| policy.source().to_owned()), Ok(text));
    assert!(Policy::load_stored("policy.yaml", &with_line("when: '1 +'")).is_err(), "what cannot be read cannot be read");
}

#[test]
fn long_and_deep_expressions_are_refused_before_they_are_parsed() {
    for (expression, message) in [
        ("(".repeat(49), "when is nested too deeply: it has more than 48 brackets; split the rule"),
        ("(".repeat(4000), "when is nested too deeply: it has more than 48 brackets; split the rule"),
        ("!".repeat(321), "when has more than 320 operators and dots; split the rule"),
        ("a".repeat(4097), "when is longer than 4096 bytes; split the rule"),
    ] {
        assert_refused(&with_line(&format!("when: '{expression}'")), &[&format!("5: {message}")]);
    }
}

#[test]
fn terms_are_refused_at_their_line() {
    let rule = |line: &str| format!("version: 1\nrules:\n  - id: r\n    match: {{}}\n    reason: no\n    {line}\n");
    for (line, message) in [
        (
            "decision: denny",
            "6: unknown decision \"denny\"; it must be one of allow, deny, require_approval, throttle, allow_with_constraints; did you mean \"deny\"?",
        ),
        ("decision: allow_with_constraints", "3: allow_with_constraints needs constraints; add them or write allow"),
    ] {
        assert_refused(&rule(line), &[message]);
    }
    for (constraints, message) in [
        ("{max_concurrent: 0}", "max_concurrent must be a whole number between 1 and 1000000"),
        ("{max_memory: 3}", "unknown key \"max_memory\" in constraints"),
        ("{max_runtime: 3}", "max_runtime must be a time such as 500ms, 30s, 5m, 2h or 7d"),
        ("{max_runtime: 3s, max_runtime_ms: 3}", "max_runtime and max_runtime_ms say the same; remove one"),
        ("{max_retries: 4294967296}", "max_retries must be a whole number between 0 and 1000"),
        ("{network: maybe}", "unknown network \"maybe\"; it must be one of allow, deny"),
        ("{allowed_pools: []}", "allowed_pools is empty; remove it or name at least one"),
        ("{}", "constraints is empty; remove it or name at least one"),
    ] {
        assert_refused(&rule(&format!("decision: allow\n    constraints: {constraints}")), &[&format!("7: {message}")]);
    }
    for (decision, key, value) in [
        ("deny", "constraints", "{max_retries: 1}"),
        ("allow", "approval", "{approvers: 1}"),
        ("allow", "remediations", "[{title: x}]"),
    ] {
        let message = format!("7: {key} has no effect with decision {decision}; remove it or change the decision");
        assert_refused(&rule(&format!("decision: {decision}\n    {key}: {value}")), &[&message]);
    }
}

#[test]
fn what_a_rule_must_have_is_asked_for() {
    let text = "version: 1\nrules:\n  - match: {}\n  - {id: default, match: {}, decision: deny, reason: x}\n  - {id: 'a b', match: {}, decision: deny, reason: x}\n  - {id: c, decision: deny, reason: x}\n";
    assert_refused(
        text,
        &[
            "3: the rule has no \"id\"; add it",
            "3: the rule has no \"decision\"; add it",
            "3: the rule has no \"reason\"; add it",
            "4: the rule id \"default\" is taken by the default; choose another",
            "5: rule id \"a b\" must not contain ' '; allowed are letters, digits and . _ - :",
            "6: the rule has no \"match\"; add it",
        ],
    );
}

#[test]
fn ids_are_unique_over_the_whole_file() {
    let rule = "{id: a, match: {}, decision: deny, reason: x}";
    let text = format!(
        "version: 1\nrules:\n  - {rule}\n  - {rule}\ntenants:\n  t:\n    rules:\n      - {rule}\noutput:\n  rules:\n    - {rule}\n"
    );
    let again = "rule id \"a\" is already used in line 3; choose another";
    assert_refused(&text, &[&format!("4: {again}"), &format!("8: {again}"), &format!("11: {again}")]);
}

#[test]
fn every_error_is_told_at_once_in_the_order_of_the_file() {
    let text = "version: 2
default: {decision: maybe}
rulez: []
rules:
  - {id: a, match: {topics: [], when: '1 +'}, decision: deny, reason: x}
patterns:
  Bad: {regex: 'x'}
  secrets: {regex: 'x'}
  open: {regex: '['}
  none: {}
input_policy: {fail_mode: closed, until: 2030-01-01T00:00:00Z}
tenants: {'a b': {rules: []}}
";
    let found = errors(text);
    let starts = [
        "policy.yaml:1: version must be 1",
        "policy.yaml:2: unknown decision \"maybe\"; it must be one of allow, deny",
        "policy.yaml:3: unknown key \"rulez\" in the policy; did you mean \"rules\"?",
        "policy.yaml:5: topics is empty",
        "policy.yaml:5: when is not valid CEL",
        "policy.yaml:7: pattern \"Bad\": a name has",
        "policy.yaml:8: pattern \"secrets\": a built-in scanner has this name",
        "policy.yaml:9: pattern \"open\": bad regex: unclosed character class",
        "policy.yaml:10: the pattern has no \"regex\"; add it",
        "policy.yaml:11: until has an effect only with fail_mode open",
        "policy.yaml:12: tenant \"a b\" must not contain ' '",
        "policy.yaml:12: rules is empty",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (error, start) in found.iter().zip(starts) {
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn output_sections_are_refused_at_their_line() {
    let rule = |more: &str| format!("version: 1\noutput:\n  rules:\n    - {{id: o, match: {{}}, reason: x, {more}}}\n");
    for (more, message) in [
        ("decision: block", "4: unknown decision \"block\"; it must be one of allow, quarantine, deny, redact"),
        ("decision: redact", "4: redact needs scan or patterns: without them there is nothing to cut out"),
        (
            "decision: deny, hold: true",
            "4: hold has no effect without scan or patterns: there is no content check to wait for",
        ),
    ] {
        assert_refused(&rule(more), &[message]);
    }
    assert_refused(
        "version: 1\noutput:\n  fail_mode: ajar\n  fail_modes:\n    - {mode: open}\n    - {topics: [a]}\n",
        &[
            "3: unknown fail_mode \"ajar\"; it must be one of closed, open",
            "5: the fail mode names no topics and no tenants; name some or use output.fail_mode",
            "6: the fail mode has no \"mode\"; add it",
        ],
    );
}

#[test]
fn files_that_are_no_policy_are_refused() {
    assert_refused("- a\n", &["1: the policy must be a map of keys and values"]);
    assert_refused("rules: 3\n", &["1: the policy has no \"version\"; add it", "1: rules must be a list"]);
    assert_refused(
        "version: 1\ninput_policy: {fail_mode: open, until: soon}\n",
        &["2: until must be a time such as 2030-01-31T12:00:00Z, not \"soon\""],
    );
}
