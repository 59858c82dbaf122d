//! Policy test files and comparisons of policies.

use super::*;

const POLICY: &str = "version: 1
default: {decision: allow}
rules:
  - {id: burst, match: {velocity: {max: 5, window: 1m}}, decision: throttle, reason: slow down}
  - {id: prod, match: {labels: {env: prod}, when: 'payload.amount > 10 && now > 0'}, decision: deny, reason: no}
";

const CASES: &str = "cases:
  - name: large ones are refused
    request: {topic: job.pay, labels: {env: prod}, payload: {amount: 50, note: [1, two, null]}}
    now: '2030-01-31T12:00:00Z'
    expect: {decision: deny, rule: prod}
  - name: a burst is slowed down
    request: {tenant: acme, actor: ann, actor_type: agent, topic: job.pay, priority: high, risk_tags: [a], requires: [b]}
    velocity: {burst: 6}
    expect: {decision: throttle}
  - name: wrong on purpose
    request: {topic: job.pay}
    expect: {decision: deny, rule: prod}
  - name: right decision by the wrong rule
    request: {topic: job.pay}
    expect: {decision: allow, rule: prod}
";

#[test]
fn cases_pass_when_decision_and_rule_are_as_expected() {
    let cases = load_cases("cases.yaml", CASES).unwrap();
    assert_eq!(cases[1].request.actor_type.as_deref(), Some("agent"));
    assert_eq!(cases[0].request.payload.as_str(), r#"{"amount":50,"note":[1,"two",null]}"#);
    let outcomes = run_cases(&load(POLICY), &cases);
    let passed: Vec<bool> = outcomes.iter().map(CaseOutcome::passed).collect();
    assert_eq!(passed, [true, true, false, false]);
    assert_eq!((outcomes[2].line, &*outcomes[2].verdict.rule), (10, "default"));
}

#[test]
fn cases_that_cannot_be_are_refused_with_their_line() {
    let text = "cases:
  - {name: a, request: {topic: 'a b'}, expect: {decision: deny}}
  - {name: b, request: {topic: a, labels: {_x: 'y'}, colour: red}, expect: {decision: maybe}}
  - {request: {topic: a, tenant: 'x y'}}
";
    let found = shown(&load_cases("cases.yaml", text).unwrap_err());
    let starts = [
        "cases.yaml:2: the request could not be submitted: topic: must not contain ' '",
        "cases.yaml:3: the request could not be submitted: labels: \"_x\" is refused",
        "cases.yaml:3: unknown key \"colour\" in request",
        "cases.yaml:3: unknown decision \"maybe\"",
        "cases.yaml:4: the case has no \"name\"; add it",
        "cases.yaml:4: the case has no \"expect\"; add it",
        "cases.yaml:4: the request could not be submitted: tenant: must not contain ' '",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (error, start) in found.iter().zip(starts) {
        assert!(error.starts_with(start), "{error} / {start}");
    }
}

#[test]
fn a_diff_tells_the_jobs_that_would_be_judged_otherwise() {
    let old = load(POLICY);
    let new = load(&POLICY.replace("amount > 10", "amount > 100").replace("reason: slow down", "reason: other words"));
    let paying = |amount: u32| {
        request(|new, _| {
            new.job_id = Some(format!("pay-{amount}"));
            new.labels.insert("env".into(), "prod".into());
            new.payload = Json::parse(&format!(r#"{{"amount":{amount}}}"#)).ok();
        })
    };
    let requests = [paying(5), paying(50), paying(500)];
    let at = Timestamp::from_millis(1);
    let changes = diff(&old, &new, requests.iter().map(|request| (request, at)), &Windows::default());
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].job_id.as_str(), "pay-50");
    assert_eq!((changes[0].old.decision, changes[0].new.decision), (Decision::Deny, Decision::Allow));
}

#[test]
fn a_label_may_be_empty_in_rules_and_cases_as_in_a_submit() {
    let policy = load(
        "version: 1\ndefault: {decision: allow}\nrules:\n  - {id: r, match: {labels: {owner: ''}}, decision: deny, reason: no owner}\n",
    );
    let text = "cases:
  - {name: none, request: {topic: a, labels: {owner: ''}}, expect: {decision: deny, rule: r}}
  - {name: some, request: {topic: a, labels: {owner: ann}}, expect: {decision: allow}}
";
    let outcomes = run_cases(&policy, &load_cases("cases.yaml", text).unwrap());
    assert!(outcomes.iter().all(CaseOutcome::passed));
    let unsaid = "cases:\n  - {name: unsaid, request: {topic: a, labels: {owner: }}, expect: {decision: deny}}\n";
    assert_eq!(
        shown(&load_cases("cases.yaml", unsaid).unwrap_err()),
        ["cases.yaml:2: label \"owner\" must be text; put it in quotes: \"~\""]
    );
}

#[test]
fn the_example_beside_the_pools_loads() {
    let policy = load(include_str!("../../../../../examples/config/safety.yaml"));
    assert_eq!(policy.input().mode, FailMode::Closed);
}
