//! Each key of `match`, with one job it holds for and one it does not.

use super::*;

/// Asserts that the conditions hold for the first request and not for the second.
fn tells_apart(conditions: &str, holds: &JobRequest, misses: &JobRequest) {
    let policy = denying(conditions);
    assert_eq!(decision(&policy, holds), Decision::Deny, "{conditions} holds");
    assert_eq!(decision(&policy, misses), Decision::Allow, "{conditions} misses");
}

fn plain() -> JobRequest {
    request(|_, _| {})
}

fn labelled(name: &str, value: &str) -> JobRequest {
    request(|new, _| drop(new.labels.insert(name.into(), value.into())))
}

fn carrying(payload: &str) -> JobRequest {
    request(|new, _| new.payload = Json::parse(payload).ok())
}

#[test]
fn tenants_topics_and_actors_are_told_apart() {
    let other = request(|new, caller| {
        new.topic = "job.other".into();
        *caller = Caller::new("umbrella", "bob");
    });
    tells_apart("tenants: [x, acme]", &plain(), &other);
    tells_apart("topics: [job.echo, x]", &plain(), &other);
    tells_apart("topics: ['*.ec*']", &plain(), &other);
    tells_apart("actors: [ann]", &plain(), &other);
    let agent = request(|_, caller| caller.actor_type = Some("agent".into()));
    tells_apart("actor_types: [agent]", &agent, &plain());
}

#[test]
fn capabilities_tags_and_requirements_are_told_apart() {
    let able = request(|new, _| {
        new.capability = Some("db.write".into());
        new.risk_tags = ["pii".into(), "prod".into()].into();
        new.requires = ["gpu".into(), "ssd".into()].into();
    });
    let less = request(|new, _| {
        new.capability = Some("db.read".into());
        new.risk_tags = ["dev".into()].into();
        new.requires = ["gpu".into()].into();
    });
    tells_apart("capabilities: [db.write]", &able, &less);
    tells_apart("risk_tags: [prod, secret]", &able, &less);
    tells_apart("requires: [gpu, ssd]", &able, &less);
}

#[test]
fn labels_are_compared_listed_and_measured() {
    tells_apart("labels: {env: prod}", &labelled("env", "prod"), &labelled("env", "dev"));
    for name in ["label_not_in", "label_allowlist"] {
        let allowed = format!("{name}: {{region: [eu, us]}}");
        tells_apart(&allowed, &labelled("region", "cn"), &labelled("region", "eu"));
        tells_apart(&allowed, &labelled("region", "cn"), &plain());
    }
    let limit = "label_threshold: {amount: 99.5}";
    tells_apart(limit, &labelled("amount", "100"), &labelled("amount", "99.5"));
    tells_apart(limit, &labelled("amount", "1e3"), &labelled("amount", "lots"));
    tells_apart(limit, &labelled("amount", "1e3"), &plain());
}

#[test]
fn payloads_are_measured_searched_and_scanned() {
    tells_apart("payload_bytes_over: 13", &carrying(r#"{"amount":500}"#), &carrying(r#"{"amount":50}"#));
    tells_apart("patterns: ['drop\\s+table', zzz]", &carrying(r#""drop  table x""#), &plain());
    tells_apart("patterns: ['secret-[0-9]+']", &carrying(r#""\u0073ecret-1""#), &plain());
    let key = format!("\"key: AKIA{}\"", "Z7Q2X5W3R6T4Y2U5");
    tells_apart("scan: [secrets]", &carrying(&key), &plain());
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let both = "labels: {env: prod}, topics: [job.echo]";
    let elsewhere = request(|new, _| {
        new.topic = "job.other".into();
        new.labels.insert("env".into(), "prod".into());
    });
    tells_apart(both, &labelled("env", "prod"), &elsewhere);
    tells_apart(both, &labelled("env", "prod"), &plain());
}

#[test]
fn patterns_of_the_policy_are_scanners_too() {
    let policy = load(
        "version: 1
default: {decision: allow}
patterns:
  badge: {regex: 'BADGE-[0-9]{4}', keywords: [badge]}
rules:
  - {id: r, match: {scan: [badge]}, decision: deny, reason: no badges}
",
    );
    assert_eq!(decision(&policy, &carrying(r#""BADGE-1234""#)), Decision::Deny);
    assert_eq!(decision(&policy, &carrying(r#""BADGE-12""#)), Decision::Allow);
}

#[test]
fn velocity_matches_only_when_its_window_is_exceeded() {
    let policy = denying("topics: [job.echo], velocity: {max: 2, window: 10s, key: [tenant, labels.team]}");
    let windows = Windows::default();
    let ask = |id: &str, team: &str, second: i64| {
        let mut request = labelled("team", team);
        request.job_id = id.into();
        policy.evaluate(&Subject::new(&request, Timestamp::from_millis(second * 1000)), &windows).decision
    };
    assert_eq!(ask("a", "x", 0), Decision::Allow);
    assert_eq!(ask("b", "x", 1), Decision::Allow);
    assert_eq!(ask("b", "x", 1), Decision::Allow, "the same job again counts once");
    assert_eq!(ask("c", "y", 1), Decision::Allow, "another key is another window");
    assert_eq!(ask("d", "x", 2), Decision::Deny);
    assert_eq!(ask("e", "x", 20), Decision::Allow, "the window slid on");
}

#[test]
fn jobs_that_miss_another_condition_are_not_counted() {
    let policy = denying("labels: {env: prod}, when: 'job.priority == \"default\"', velocity: {max: 1, window: 1m}");
    let windows = Windows::default();
    for (id, env) in [("a", "dev"), ("b", "dev"), ("c", "prod")] {
        let mut request = labelled("env", env);
        request.job_id = id.into();
        let verdict = policy.evaluate(&Subject::new(&request, Timestamp::ZERO), &windows);
        assert_eq!(verdict.decision, Decision::Allow, "{id}");
    }
    assert_eq!(windows.0.borrow().values().map(BTreeMap::len).sum::<usize>(), 1);
}

#[test]
fn velocity_keys_cannot_be_confused_by_what_labels_hold() {
    let policy = denying("velocity: {max: 1, window: 1m, key: [labels.a, labels.b]}");
    let windows = Windows::default();
    for (id, a, b) in [("1", "x\",\"y", "z"), ("2", "x", "y\",\"z")] {
        let mut request = request(|new, _| {
            new.labels.insert("a".into(), a.into());
            new.labels.insert("b".into(), b.into());
        });
        request.job_id = id.into();
        assert_eq!(policy.evaluate(&Subject::new(&request, Timestamp::ZERO), &windows).decision, Decision::Allow);
    }
}

/// Rules that ask for more or less of the same number are passed over together; the verdict is that of a look at each.
#[test]
fn bounds_of_one_number_pass_over_no_rule_that_matches() {
    let amounts = ["-3", "0", "5", "5.5", "9007199254740993", "18446744073709551615", "1e300", "\"x\"", "null"];
    let bounds = [
        "payload.n > 100",
        "payload.n > 5",
        "payload.n >= 5.5",
        "payload.n > 9007199254740992",
        "payload.n < -2",
        "payload.n <= -3",
        "payload.n - 1 > 4",
        "payload.n > 4.0 && job.tenant == 'acme'",
        "payload.n >= 9007199254740992.0",
        "job.topic == 'job.echo' && payload.n < 1",
        "5 < payload.n",
        "payload.n > 3u",
    ];
    // Each rule comes first once, so that each has its turn to decide.
    for turn in 0..bounds.len() {
        let rule = |(place, _): (usize, &str)| {
            let when = bounds[(place + turn) % bounds.len()];
            format!("  - {{id: r{place}, match: {{when: \"{when}\"}}, decision: deny, reason: no}}\n")
        };
        let rules: String = bounds.iter().copied().enumerate().map(rule).collect();
        let text = format!("version: 1\nrules:\n{rules}  - {{id: last, match: {{}}, decision: allow, reason: yes}}\n");
        let policy = Policy::load("p.yaml", &text).unwrap();
        let payloads = amounts.iter().map(|amount| format!("{{\"n\":{amount}}}")).chain(["{}".to_owned()]);
        for payload in payloads {
            let request = carrying(&payload);
            let subject = Subject::new(&request, Timestamp::ZERO);
            let told = policy.explain(&subject, &Windows::default()).verdict;
            assert_eq!(policy.evaluate(&subject, &Windows::default()), told, "{payload}, turn {turn}");
        }
    }
}
