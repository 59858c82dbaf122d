//! `when:` conditions: what they see, and that nothing they do gets past a denial.

use super::*;

/// What a rule `allow when <expression>` makes of the request: allowed, denied by default, or denied for failing.
fn outcome(expression: &str, request: &JobRequest) -> Verdict {
    let text = serde_json::Value::from(expression);
    let policy =
        load(&format!("version: 1\nrules:\n  - {{id: r, match: {{when: {text}}}, decision: allow, reason: yes}}\n"));
    judge(&policy, request)
}

fn full() -> JobRequest {
    request(|new, caller| {
        new.capability = Some("db.write".into());
        new.risk_tags = ["pii".into()].into();
        new.requires = ["gpu".into()].into();
        new.labels.insert("env".into(), "prod".into());
        // A number that large is taken no more, and may still be stored.
        let text = r#"{"amount":50,"big":18446744073709551615,"rate":0.5,"items":[{"n":1},{"n":2}],"none":null}"#;
        new.payload = Some(Json::trusted(text));
        caller.actor_type = Some("agent".into());
    })
}

#[test]
fn expressions_see_the_job_its_payload_and_the_time() {
    for expression in [
        "job.id == 'job-1' && job.tenant == 'acme' && job.topic.startsWith('job.')",
        "job.capability == 'db.write' && job.priority == 'default'",
        "job.actor == 'ann' && job.actor_type == 'agent'",
        "'pii' in job.risk_tags && 'gpu' in job.requires && size(job.requires) == 1",
        "job.labels.env == 'prod' && job.labels['env'] == 'prod' && !('x' in job.labels) && !has(job.labels.x)",
        "payload.amount + 1 > 50 && payload.rate < 1.0 && payload.big > 0u && payload.none == null",
        "payload.items.exists(i, i.n == 2) && payload.items.all(i, i.n > 0)",
        "now == 1000",
        "job.topic.matches('^job[.]e') && 'a'.matches('a') && matches(job.topic, 'echo$')",
        "payload.?missing.orValue(3) == 3",
        "payload.items[0].n == 1 && payload.items.map(i, i.n)[1] == 2 && {'a': payload.amount}.a == 50",
        "!has(payload.a.b) || true",
    ] {
        let verdict = outcome(expression, &full());
        assert_eq!(verdict.decision, Decision::Allow, "{expression}: {}", verdict.reason);
    }
}

#[test]
fn what_is_absent_is_empty_text() {
    assert_eq!(outcome("job.capability == '' && job.actor_type == ''", &request(|_, _| {})).decision, Decision::Allow);
}

#[test]
fn what_cannot_be_evaluated_denies_and_says_why() {
    for (expression, reason) in [
        ("payload.missing == 1", "\"missing\" is absent; ask with has() or in first"),
        ("1 / (payload.amount - 50) == 1", "it divides by zero"),
        ("payload.amount", "it gave int, not true or false"),
        ("payload.items[9].n == 1", "an index is out of bounds"),
        ("payload.amount + 9223372036854775807 > 0", "add overflows"),
    ] {
        let verdict = outcome(expression, &full());
        assert_eq!(verdict.decision, Decision::Deny, "{expression}");
        assert_eq!(&*verdict.reason, format!("rule r could not be evaluated: {reason}"), "{expression}");
        assert_eq!(&*verdict.rule, "r");
    }
}

#[test]
fn reasons_do_not_repeat_the_payload() {
    let secret = request(|new, _| new.payload = Json::parse(r#"{"password":"hunter2"}"#).ok());
    for expression in
        ["payload.password > 1", "int(payload.password) == 1", "payload.password[0] == 'h'", "payload.password.x == 1"]
    {
        let verdict = outcome(expression, &secret);
        assert_eq!(verdict.decision, Decision::Deny, "{expression}");
        assert!(!verdict.reason.contains("hunter2"), "{}", verdict.reason);
    }
}

#[test]
fn the_payload_is_parsed_only_for_expressions_that_use_it() {
    let mut broken = request(|_, _| {});
    broken.payload = Json::trusted("{");
    assert_eq!(outcome("job.tenant == 'acme'", &broken).decision, Decision::Allow);
    let verdict = outcome("job.tenant == 'acme' || payload.x == 1", &broken);
    assert!(verdict.reason.contains("the payload is not JSON"), "{}", verdict.reason);
}

#[test]
fn the_largest_expressions_accepted_fit_a_small_stack() {
    // Threads of the engine have two mebibytes; half of that leaves room for what calls us.
    let chains = [
        ("(", "1 == 1", ")", 48),
        ("[", "1", "]", 48),
        ("!", "true", "", 319),
        ("-", "1", "", 319),
        ("1 + ", "1", "", 319),
        ("1 in ", "1", "", 319),
        ("true || ", "true", "", 159),
        ("true ? 1 : ", "1", "", 159),
        ("size([", "1", "])", 24),
        ("", "payload", ".a", 319),
        ("", "payload", "[0].b(1)", 24),
        ("(1 + ", "1", ")", 48),
        ("{1: 1 + ", "1", "}", 48),
        ("payload.all(x, ", "true", ")", 48),
    ];
    let run = move || {
        for (before, middle, after, count) in chains {
            let text = format!("{}{middle}{}", before.repeat(count), after.repeat(count));
            let yaml = format!(
                "version: 1\nrules:\n  - {{id: r, match: {{when: {}}}, decision: allow, reason: yes}}\n",
                serde_json::Value::from(text)
            );
            if let Ok(policy) = Policy::load("policy.yaml", &yaml) {
                judge(&policy, &full());
            }
        }
    };
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(run).unwrap().join().unwrap();
}

/// A fixed walk over all doubles: the same ones in every run, and no two alike.
fn doubles() -> impl Iterator<Item = f64> {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from_bits(seed ^ (seed >> 29))
    })
    .filter(|double| double.is_finite())
}

#[test]
fn a_number_in_a_payload_is_the_number_that_a_condition_writes() {
    // Of all magnitudes, and between 0 and 1 as most are.
    let usual = doubles().map(|double| (double.to_bits() >> 11) as f64 / (1_u64 << 53) as f64);
    let all: Vec<f64> = doubles().take(5_000).chain(usual.take(5_000)).collect();
    let wrong = |double: &&f64| {
        let payload = Json::parse(&format!("{{\"x\":{double:?}}}")).ok();
        let verdict = outcome(&format!("payload.x == {double:?}"), &request(|new, _| new.payload = payload));
        verdict.decision != Decision::Allow
    };
    let wrong: Vec<&f64> = all.iter().filter(wrong).collect();
    assert_eq!(wrong.len(), 0, "of {}, such as {:?}", all.len(), wrong.first());
}
