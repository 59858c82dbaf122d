//! Predicates against the interpreter: whatever one of them tells, the other tells too.

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{PredicateScratch, ScratchLayout};
use crate::config::{ConfigReport, SourcePosition};
use crate::formula::Regexes;
use crate::ids::JobId;
use crate::policy::Subject;
use crate::policy::facts::Facts;
use crate::policy::when::{Evaluation, When};
use crate::request::{Caller, JobRequest, Json, NewJob};
use crate::time::Timestamp;

fn sample(of: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    prop::sample::select(of).prop_map(str::to_owned)
}

fn constant() -> impl Strategy<Value = String> {
    sample(&[
        "'acme'",
        "'job.echo'",
        "'job.'",
        "''",
        "'prod'",
        "'é'",
        "'a'",
        "0",
        "1",
        "2",
        "-1",
        "50",
        "9223372036854775807",
        "-9223372036854775808",
        "1u",
        "0u",
        "18446744073709551615u",
        "0.5",
        "1.0",
        "-0.0",
        "9223372036854775807.0",
        "true",
        "false",
        "null",
    ])
}

fn field() -> impl Strategy<Value = String> {
    sample(&[
        "job.id",
        "job.tenant",
        "job['topic']",
        "job.topic",
        "job.capability",
        "job.priority",
        "job.actor",
        "job.actor_type",
        "job.risk_tags",
        "job.requires",
        "job.labels",
        "job.labels.env",
        "job.labels['env']",
        "job.labels.missing",
        "now",
        "payload",
        "payload.a",
        "payload['a']",
        "payload.a.b",
        "payload.b",
        "payload.b.a",
        "payload.l",
        "payload.l[0]",
        "payload.l[1].a",
        "payload['l'][7]",
        "payload.missing",
        "payload.a[0]",
        "job.risk_tags[0]",
    ])
}

/// Nested expressions, and among them some that a predicate does not know.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => field(),
        3 => constant(),
        2 => (field(), sample(&["==", "!=", "<", "<=", ">", ">="]), constant()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => sample(&[
            "has(payload.a)", "has(payload.a.b)", "has(job.labels.env)", "has(job.labels.missing)", "has(payload.l.a)",
            "payload.l.exists(x, x == 1)", "payload.?a.orValue(1) == 1", "type(payload.a) == int", "b'a'", "{'a': 1}",
            "1 / 0 == 1", "'env' in job.labels", "'pii' in job.risk_tags", "job.tenant in ['acme', 'other']",
        ]),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            4 => (two.clone(), sample(&["&&", "||", "&&", "||", "==", "!=", "<", "<=", ">", ">=", "in"]))
                .prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            1 => (two.clone(), sample(&["+", "-", "*", "/", "%"])).prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            1 => (two.clone(), sample(&["startsWith", "endsWith", "contains"]))
                .prop_map(|((a, b), name)| format!("({a}).{name}({b})")),
            1 => (inner.clone(), sample(&["'^job'", "'o$'", "''", "'[0-9]'"])).prop_map(|(a, regex)| format!("({a}).matches({regex})")),
            1 => (inner.clone(), prop::collection::vec(constant(), 0..4)).prop_map(|(a, list)| format!("({a}) in [{}]", list.join(", "))),
            1 => (inner.clone(), two).prop_map(|(a, (b, c))| format!("({a}) in [{b}, {c}]")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            1 => inner.clone().prop_map(|a| format!("-({a})")),
            1 => inner.clone().prop_map(|a| format!("size({a})")),
            1 => inner.prop_map(|a| format!("({a}).size()")),
        ]
    })
}

fn payload() -> impl Strategy<Value = String> {
    let leaf = sample(&[
        "null",
        "true",
        "false",
        "0",
        "1",
        "50",
        "-1",
        "-0",
        "1.0",
        "0.5",
        "9223372036854775807",
        "18446744073709551615",
        "1e300",
        "\"acme\"",
        "\"job.echo\"",
        "\"\"",
        "\"\\u00e9\"",
        "\"a\"",
    ]);
    leaf.prop_recursive(3, 16, 4, |inner| {
        // Each name once: what has one twice is refused at the doors, and is no payload to a condition.
        let entries = prop::collection::btree_map(sample(&["a", "b", "l"]), inner.clone(), 0..4);
        let entry = |(name, inner): (_, String)| format!("\"{name}\":{inner}");
        prop_oneof![
            1 => prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            3 => entries.prop_map(move |entries| {
                format!("{{{}}}", entries.into_iter().map(entry).collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

fn request(payload: &str, labelled: bool) -> JobRequest {
    let mut new = NewJob { topic: "job.echo".into(), payload: Some(Json::trusted(payload)), ..NewJob::default() };
    if labelled {
        new.labels.insert("env".into(), "prod".into());
        new.risk_tags.insert("pii".into());
    }
    JobRequest::check(new, &Caller::new("acme", "ann"), || JobId::from("j")).unwrap()
}

type Said = Result<bool, String>;

/// What the condition says of the request: by its predicate, by the interpreter and as it is asked.
fn asked(text: &str, request: &JobRequest) -> Option<(Option<bool>, Said, Said)> {
    let (mut regexes, mut shelf, mut report) = (Regexes::new(), ScratchLayout::default(), ConfigReport::new("p.yaml"));
    // The expression may be too large to be accepted.
    let when = When::compile(text, "r", SourcePosition { line: 1, column: 1 }, &mut regexes, &mut shelf, &mut report)?;
    let (subject, regexes) = (Subject::new(request, Timestamp::from_millis(50)), Arc::new(regexes));
    let facts = Facts::new(&subject);
    let evaluation = Evaluation::new(&facts, &regexes);
    Some((when.predicate.holds(&PredicateScratch::new(&facts)), evaluation.interpret(&when), evaluation.holds(&when)))
}

/// Expressions of whose kinds nearly all fit together, so that most can be evaluated.
fn fitting() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        sample(&["payload.a", "payload.b.a", "payload.l[0]", "now", "size(job.labels)", "job.tenant.size()", "payload.t"]),
        sample(&["0", "1", "-1", "50", "1u", "0.5", "1.0", "18446744073709551615u", "9223372036854775807"]),
        (
            sample(&["payload.a", "now", "-(payload.b.a)"]),
            sample(&["+", "-", "*", "/", "%"]),
            sample(&["1", "3", "0.5", "0"])
        )
            .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
    ];
    let text =
        sample(&["job.tenant", "job['topic']", "job.labels.env", "payload.t", "payload.b.t", "'acme'", "'job.'", "'prod'"]);
    let compared = || sample(&["==", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        3 => (number.clone(), compared(), number.clone()).prop_map(|(a, order, b)| format!("{a} {order} {b}")),
        2 => (text.clone(), compared(), text.clone()).prop_map(|(a, order, b)| format!("{a} {order} {b}")),
        1 => (text.clone(), sample(&["startsWith", "endsWith", "contains"]), text.clone())
            .prop_map(|(a, test, b)| format!("{a}.{test}({b})")),
        1 => (text.clone(), sample(&["['acme', 'prod', 'x']", "job.labels", "job.risk_tags", "payload.l", "[1, 'acme', null]"]))
            .prop_map(|(a, list)| format!("{a} in {list}")),
        1 => (number.clone(), sample(&["[1, 2, 50]", "payload.l", "[1u, payload.a]", "[0.5, 1.0]"]))
            .prop_map(|(a, list)| format!("{a} in {list}")),
        1 => (text.clone(), sample(&["'^job'", "'o$'", "'[a-c]'"])).prop_map(|(a, regex)| format!("{a}.matches({regex})")),
        1 => (number, text).prop_map(|(a, b)| format!("{a} == {b}")),
        1 => sample(&[
            "has(payload.a)", "has(payload.b.t)", "has(job.labels.env)", "payload.f", "true", "false", "payload.missing == 1",
            "payload.l.exists(x, x == 1)", "1 / 0 == 1", "payload.b",
        ]),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            6 => (two, sample(&["&&", "||", "&&", "||", "==", "!="])).prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
            1 => inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

fn usual_payload() -> impl Strategy<Value = String> {
    let number = || sample(&["0", "1", "50", "-1", "0.5", "1.0", "1e300", "9223372036854775807", "18446744073709551615"]);
    let text = || sample(&["\"acme\"", "\"job.echo\"", "\"prod\"", "\"\"", "\"\\u00e9\""]);
    let truth = sample(&["true", "false"]);
    (number(), number(), text(), text(), truth, prop::collection::vec(prop_oneof![number(), text()], 0..4)).prop_map(
        |(a, inner, t, inner_text, f, list)| {
            let list = list.join(",");
            format!(r#"{{"a":{a},"b":{{"a":{inner},"t":{inner_text}}},"t":{t},"f":{f},"l":[{list}]}}"#)
        },
    )
}

/// Asks about many random conditions: how many of them could be evaluated, and how many of these without the interpreter.
fn compare(cases: u32, texts: impl Strategy<Value = String>, payloads: impl Strategy<Value = String>) -> (u32, u32) {
    let (truths, told) = (Cell::new(0), Cell::new(0));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&(texts, payloads, any::<bool>()), |(text, payload, labelled)| {
        let Some((predicate, interpreted, whole)) = asked(&text, &request(&payload, labelled)) else { return Ok(()) };
        prop_assert_eq!(&whole, &interpreted, "as asked: {} of {}", text, payload);
        if let Some(truth) = predicate {
            prop_assert_eq!(&Ok(truth), &interpreted, "{} of {}", text, payload);
            told.set(told.get() + 1);
        }
        truths.set(truths.get() + u32::from(interpreted.is_ok()));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    (truths.get(), told.get())
}

#[test]
fn a_predicate_tells_only_what_the_interpreter_tells() {
    compare(2_000, expression(), payload());
}

#[test]
fn a_predicate_tells_nearly_all_that_the_interpreter_tells() {
    let (truths, told) = compare(3_000, fitting(), usual_payload());
    // Else this would prove nothing.
    assert!(truths > 1_000, "only {truths} conditions could be evaluated");
    assert!(told * 10 > truths * 9, "predicates told {told} of {truths}");
}

#[test]
fn usual_conditions_need_no_interpreter() {
    let request = request(r#"{"a":{"b":1},"l":["x",{"a":1.5}],"big":18446744073709551615,"text":"acme"}"#, true);
    for (text, truth) in [
        ("job.tenant == 'acme' && job.topic.startsWith('job.') && job.priority != 'low'", true),
        ("job.actor in ['bob', 'eve'] || 'pii' in job.risk_tags && !('gpu' in job.requires)", true),
        ("has(payload.a.b) && payload.a.b - 100 > -100 && payload.l[1].a <= 1.5", true),
        ("'env' in job.labels && job.labels.env == 'prod' && job.labels['env'].matches('^p')", true),
        ("size(payload.l) == 2 && payload.l.size() > 1 && size(job.labels) < 2 && payload.text.contains('cm')", true),
        ("payload.big > 5 && payload.a.b in [1, 2, 3] && payload.a.b == 1.0 && now == 50", true),
        ("(payload.a.b > 5 ? 'x' : job.tenant) == payload.text", true),
        ("payload.missing == 1 && job.tenant == 'other'", false),
        ("payload.l.exists(x, x == 1) && job.tenant == 'other'", false),
        ("payload.l.exists(x, x == 1) || job.tenant == 'acme'", true),
        ("!(job.tenant == 'acme' || payload.missing)", false),
    ] {
        let (predicate, interpreted, _) = asked(text, &request).unwrap();
        assert_eq!(interpreted, Ok(truth), "{text}");
        assert_eq!(predicate, Some(truth), "{text}");
    }
}

#[test]
fn what_fails_is_told_by_the_interpreter() {
    let request = request(r#"{"a":1,"t":"x"}"#, false);
    for text in [
        "payload.missing == 1",
        "job.labels.env == 'prod'",
        "payload.a > payload.t",
        "payload.a",
        "1 / (payload.a - 1) == 1",
    ] {
        let (predicate, interpreted, whole) = asked(text, &request).unwrap();
        assert_eq!(predicate, None, "{text}");
        assert!(whole.is_err(), "{text}");
        assert_eq!(whole, interpreted, "{text}");
    }
}
