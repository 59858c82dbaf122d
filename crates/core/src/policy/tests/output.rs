//! Results: what is decided without reading them, and what by reading them.

use super::*;
use crate::output::{OutputDecision, OutputStep};
use crate::scan::FindingKey;

const POLICY: &str = "version: 1
patterns:
  badge: {regex: 'BADGE-[0-9]{4}'}
output:
  fail_mode: open
  hold_topics: [job.held]
  fail_modes:
    - {topics: ['job.bank.*'], tenants: [acme], mode: closed}
    - {tenants: [acme], mode: open}
  rules:
    - {id: trusted, match: {labels: {trusted: 'yes'}}, decision: allow, reason: trusted}
    - {id: badges, match: {topics: ['job.*'], scan: [badge]}, decision: redact, reason: badges}
    - {id: leak, match: {topics: ['job.*'], tenants: [acme], scan: [badge], patterns: [leak]}, decision: quarantine, reason: leak, hold: true}
    - {id: codes, match: {patterns: ['code=[a-z]+']}, decision: quarantine, reason: codes}
    - {id: large, match: {output_bytes_over: 100}, decision: quarantine, reason: large}
    - {id: failed, match: {has_error: true}, decision: deny, reason: failed}
";

fn key() -> FindingKey {
    FindingKey::new([7; 32])
}

fn subject<'a>(topic: &'a str, labels: &'a BTreeMap<String, String>) -> OutputSubject<'a> {
    OutputSubject { tenant: "acme", topic, labels, output_bytes: 10, error: None }
}

fn decided(step: &OutputLook) -> Option<(&str, OutputDecision)> {
    match step {
        OutputLook::Decided(verdict) => Some((&verdict.rule, verdict.decision)),
        OutputLook::NeedsContent => None,
    }
}

#[test]
fn metadata_decides_when_no_earlier_rule_has_to_read() {
    let none = BTreeMap::new();
    let trusted = BTreeMap::from([("trusted".to_owned(), "yes".to_owned())]);
    let policy = load(POLICY);
    let output = policy.output();
    assert_eq!(decided(&output.metadata(&subject("job.a", &trusted))), Some(("trusted", OutputDecision::Allow)));
    assert_eq!(decided(&output.metadata(&subject("job.a", &none))), None);
    assert_eq!(output.metadata(&subject("job.a", &none)), OutputLook::NeedsContent);
    let leaking = OutputSubject { error: Some("code=abc"), ..subject("x", &none) };
    assert_eq!(decided(&output.metadata(&leaking)), Some(("codes", OutputDecision::Quarantine)));
    let plain = load("version: 1\noutput:\n  rules:\n    - {id: e, match: {has_error: true}, decision: deny, reason: e}\n");
    let failing = OutputSubject { error: Some("no"), ..subject("x", &none) };
    assert_eq!(decided(&plain.output().metadata(&failing)), Some(("e", OutputDecision::Deny)));
    assert_eq!(decided(&plain.output().metadata(&subject("x", &none))), Some(("default", OutputDecision::Allow)));
}

#[test]
fn the_first_rule_that_matches_the_content_decides() {
    let none = BTreeMap::new();
    let policy = load(POLICY);
    let ask = |topic, text| {
        let verdict = policy.output().content(&subject(topic, &none), text, &key());
        (verdict.rule.to_string(), verdict.decision)
    };
    assert_eq!(ask("job.a", r#"{"a":"BADGE-1234"}"#), ("badges".to_owned(), OutputDecision::Redact));
    assert_eq!(ask("job.a", r#"{"a":"code=abc"}"#), ("codes".to_owned(), OutputDecision::Quarantine));
    assert_eq!(ask("job.a", r#"{"a":"fine"}"#), ("default".to_owned(), OutputDecision::Allow));
    assert_eq!(ask("x", r#"{"a":"BADGE-1234"}"#), ("default".to_owned(), OutputDecision::Allow));
    let large = OutputSubject { output_bytes: 101, ..subject("x", &none) };
    assert_eq!(&*policy.output().content(&large, "1", &key()).rule, "large");
}

#[test]
fn redaction_cuts_out_what_was_found_and_tells_where() {
    let none = BTreeMap::new();
    let policy = load(POLICY);
    let text = r#"{"a":"my BADGE-1234 is","b":2}"#;
    let verdict = policy.output().content(&subject("job.a", &none), text, &key());
    let redacted: serde_json::Value = serde_json::from_str(verdict.redacted.as_ref().unwrap().as_str()).unwrap();
    assert!(!redacted.to_string().contains("1234"), "{redacted}");
    assert_eq!(redacted["b"], 2);
    let finding = &verdict.findings[0];
    assert_eq!(&text[finding.offset..finding.end()], "BADGE-1234");
    assert_eq!(verdict.snapshot, *policy.snapshot());
}

#[test]
fn what_cannot_be_redacted_safely_is_held_back() {
    let policy = load(
        "version: 1\noutput:\n  rules:\n    - {id: r, match: {patterns: ['[0-9]']}, decision: redact, reason: digits}\n",
    );
    let many = serde_json::Value::from("1 ".repeat(1000)).to_string();
    let verdict = policy.output().content(&subject("x", &BTreeMap::new()), &many, &key());
    assert_eq!((verdict.decision, verdict.redacted), (OutputDecision::Quarantine, None));
    assert!(verdict.reason.contains("could not be redacted safely"));
}

#[test]
fn content_that_cannot_be_read_is_held_back_under_a_sensitive_rule() {
    let none = BTreeMap::new();
    let trusted = BTreeMap::from([("trusted".to_owned(), "yes".to_owned())]);
    let policy = load(POLICY);
    let verdict = policy.output().unreadable(&subject("job.a", &none), "it is not text");
    assert_eq!((&*verdict.rule, verdict.decision), ("badges", OutputDecision::Quarantine));
    assert!(verdict.reason.ends_with("could not be checked: it is not text"));
    assert_eq!(policy.output().unreadable(&subject("job.a", &trusted), "x").decision, OutputDecision::Allow);
}

#[test]
fn jobs_wait_where_a_rule_or_topic_holds_them() {
    let none = BTreeMap::new();
    let trusted = BTreeMap::from([("trusted".to_owned(), "yes".to_owned())]);
    let policy = load(POLICY);
    let output = policy.output();
    assert!(output.holds(&subject("job.held", &none)));
    assert!(output.holds(&subject("job.a", &none)), "a rule that holds may match");
    let stranger = OutputSubject { tenant: "other", ..subject("job.a", &none) };
    assert!(!output.holds(&stranger), "only rules that hold for others");
    assert!(!output.holds(&subject("job.held", &trusted)), "nothing to wait for");
}

#[test]
fn fail_modes_are_found_by_topic_and_tenant() {
    let none = BTreeMap::new();
    let policy = load(POLICY);
    let output = policy.output();
    assert_eq!(output.fail_mode(&subject("job.bank.pay", &none)), FailMode::Closed);
    assert_eq!(output.fail_mode(&subject("job.a", &none)), FailMode::Open);
    let other = load("version: 1\noutput: {fail_mode: closed}\n");
    assert_eq!(other.output().fail_mode(&subject("job.a", &none)), FailMode::Closed);
}

#[test]
fn output_checks_are_on_as_soon_as_there_are_rules() {
    assert!(load(POLICY).output().enabled());
    assert!(!load("version: 1\n").output().enabled());
    assert!(!load(&POLICY.replace("fail_mode: open\n", "fail_mode: open\n  enabled: false\n")).output().enabled());
}

fn request(topic: &str) -> JobRequest {
    let new = NewJob { topic: topic.to_owned(), ..NewJob::default() };
    JobRequest::check(new, &Caller::new("acme", "ann"), || "job".into()).unwrap()
}

#[test]
fn where_the_rules_are_unknown_nothing_comes_out_unless_the_check_is_switched_off() {
    let (gate, off) = (OutputGate::new(key(), None), OutputGate::new(key(), Some(false)));
    let job = request("job.a");
    assert_eq!(gate.step(&OutputRules::Unknown, &job, 1), OutputStep::Scan { hold: true });
    assert_eq!(gate.fail_mode(&OutputRules::Unknown, &job), FailMode::Closed, "no mode of a policy lets it out");
    assert_eq!(gate.content(&OutputRules::Unknown, &job, &Json::null()), None);
    assert!(gate.clean(&OutputRules::Unknown, &job, "BADGE-1234".into()).contains("withheld"));
    assert_eq!(off.step(&OutputRules::Unknown, &job, 1), OutputStep::Pass);
    assert_eq!(&*off.clean(&OutputRules::Unknown, &job, "BADGE-1234".into()), "BADGE-1234");
    assert_eq!(gate.step(&OutputRules::None, &job, 1), OutputStep::Pass, "nobody made a rule");
}

#[test]
fn what_nobody_can_read_is_held_back_where_a_rule_had_to_see_it_whatever_the_fail_mode() {
    let (gate, rules) = (OutputGate::new(key(), None), OutputRules::Of(std::sync::Arc::new(load(POLICY))));
    assert_eq!(gate.fail_mode(&rules, &request("job.a")), FailMode::Open);
    let verdict = gate.unreadable(&rules, &request("job.a"), 1, "too large").unwrap();
    assert_eq!((verdict.decision, &*verdict.rule), (OutputDecision::Quarantine, "badges"));
    assert!(verdict.reason.contains("too large"), "{}", verdict.reason);
}
