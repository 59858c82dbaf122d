//! The door: what is let in, what is refused, and what identity a request has.

use proptest::prelude::*;

use super::*;

fn caller() -> Caller {
    Caller::new("acme", "ann")
}

fn check(new: NewJob) -> Result<JobRequest, Vec<FieldError>> {
    JobRequest::check(new, &caller(), || JobId::from("fresh"))
}

fn echo() -> NewJob {
    NewJob { topic: "job.echo".into(), ..NewJob::default() }
}

fn hash(new: NewJob) -> RequestHash {
    check(new).unwrap().hash()
}

fn payload(text: &str) -> NewJob {
    NewJob { payload: Some(Json::parse(text).unwrap()), ..echo() }
}

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A request with every field set to something valid.
fn full() -> NewJob {
    NewJob {
        job_id: Some("job-1".into()),
        topic: "job.echo".into(),
        payload: Some(Json::parse("[1]").unwrap()),
        priority: Some(Priority::High),
        labels: map(&[("team", "blue")]),
        env: map(&[("MODE", "fast")]),
        idempotency_key: Some("key-1".into()),
        max_attempts: Some(5),
        retry: RetrySettings { base_ms: Some(50), ..RetrySettings::default() },
        timeout_ms: Some(1_000),
        not_before: Some(Timestamp::from_millis(7)),
        deadline_ms: Some(9_000),
        requires: BTreeSet::from(["gpu".to_owned()]),
        capability: Some("deploy".into()),
        risk_tags: BTreeSet::from(["prod".to_owned()]),
        trace_id: Some("trace-1".into()),
        traceparent: None,
        concurrency_key: Some("repo-7".into()),
        workflow_id: Some("order-7".into()),
        compensation: Some(Json::parse(r#"{"topic":"job.undo"}"#).unwrap()),
    }
}

#[test]
fn a_full_request_is_frozen_as_it_was_sent() {
    let request = check(full()).unwrap();
    assert!(request.id_chosen);
    assert_eq!((request.job_id.as_str(), request.tenant.as_str(), request.actor.as_str()), ("job-1", "acme", "ann"));
    assert_eq!((request.priority(), request.payload.as_str()), (Priority::High, "[1]"));
    assert_eq!(request.shape().to_string(), "job.echo+gpu concurrency_key=repo-7");
    let stored = serde_json::to_string(&request).unwrap();
    let read: JobRequest = serde_json::from_str(&stored).unwrap();
    assert_eq!(JobRequest { payload: request.payload.clone(), ..read }, request, "only the payload is stored elsewhere");
}

#[test]
fn defaults_are_filled_in_late_and_not_hashed() {
    let request = check(echo()).unwrap();
    let limits = Limits::default();
    assert!(!request.id_chosen);
    assert_eq!(request.job_id.as_str(), "fresh");
    assert_eq!((request.priority(), request.retry_policy(&limits, &Timeouts::default()).attempts), (Priority::Default, 3));
    assert_eq!(request.timeout(&Timeouts::default()), Duration::from_secs(300));
    assert_ne!(request.hash(), hash(NewJob { max_attempts: Some(3), ..echo() }), "asked for is not the same as defaulted");
}

#[test]
fn every_error_is_reported_at_once() {
    let new = NewJob {
        job_id: Some("a b".into()),
        topic: String::new(),
        payload: Some(Json::trusted(format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX)))),
        labels: map(&[("_internal", "x"), ("preferred_pool", "a b"), ("long", &"x".repeat(VALUE_BYTES_MAX + 1))]),
        env: map(&[("", "x")]),
        idempotency_key: Some("-".into()),
        max_attempts: Some(0),
        timeout_ms: Some(0),
        deadline_ms: Some(SPAN_MS_MAX + 1),
        requires: BTreeSet::from(["g p u".to_owned()]),
        trace_id: Some("t".repeat(200)),
        ..NewJob::default()
    };
    let errors = check(new).unwrap_err();
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    let expected = [
        "topic",
        "job_id",
        "idempotency_key",
        "trace_id",
        "payload",
        "max_attempts",
        "timeout_ms",
        "deadline_ms",
        "labels",
        "env",
        "labels",
        "labels",
        "requires",
    ];
    assert_eq!(fields, expected, "{errors:#?}");
}

#[test]
fn the_limits_themselves_are_allowed() {
    let text = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    let labels = (0..ENTRIES_MAX).map(|n| (format!("label-{n}"), "x".repeat(VALUE_BYTES_MAX))).collect();
    let requires = (0..ENTRIES_MAX).map(|n| format!("capability-{n}")).collect();
    let new = NewJob {
        payload: Some(Json::parse(&text).unwrap()),
        labels,
        requires,
        max_attempts: Some(ATTEMPTS_MAX),
        timeout_ms: Some(SPAN_MS_MAX),
        deadline_ms: Some(1),
        ..echo()
    };
    assert!(check(new).is_ok());
}

#[test]
fn one_entry_too_many_is_refused() {
    let many: BTreeMap<String, String> = (0..=ENTRIES_MAX).map(|n| (format!("n-{n}"), String::new())).collect();
    for (field, new) in [
        ("labels", NewJob { labels: many.clone(), ..echo() }),
        ("env", NewJob { env: many.clone(), ..echo() }),
        ("requires", NewJob { requires: many.keys().cloned().collect(), ..echo() }),
    ] {
        let errors = check(new).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), [field]);
    }
}

#[test]
fn text_that_is_not_json_is_no_payload() {
    for text in ["", "{", "{\"a\":}", "1 2", "nul"] {
        assert!(Json::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn the_hash_ignores_how_the_json_was_written() {
    let one = payload(r#"{"a": 1, "b": {"c": [1, 2], "d": "é"}}"#);
    let other = payload("{\"b\":{\"d\":\"\\u00e9\",\"c\":[1,2]},\n\"a\":1}");
    assert_eq!(hash(one), hash(other));
    assert_ne!(hash(payload("[1,2]")), hash(payload("[2,1]")));
}

#[test]
fn an_absent_payload_is_null() {
    assert_eq!(hash(echo()), hash(payload("null")));
}

#[test]
fn the_hash_depends_on_every_field_that_says_what_was_asked() {
    let other_undo = Json::parse(r#"{"topic":"job.undo","payload":1}"#).unwrap();
    let changed: [(&str, NewJob); 14] = [
        ("retry", NewJob { retry: RetrySettings::default(), ..full() }),
        ("workflow_id", NewJob { workflow_id: Some("order-8".into()), ..full() }),
        ("compensation", NewJob { compensation: Some(other_undo), ..full() }),
        ("job_id", NewJob { job_id: Some("job-2".into()), ..full() }),
        ("topic", NewJob { topic: "job.noop".into(), ..full() }),
        ("payload", NewJob { payload: Some(Json::parse("[2]").unwrap()), ..full() }),
        ("priority", NewJob { priority: Some(Priority::Low), ..full() }),
        ("labels", NewJob { labels: map(&[("team", "red")]), ..full() }),
        ("env", NewJob { env: map(&[("MODE", "slow")]), ..full() }),
        ("max_attempts", NewJob { max_attempts: Some(6), ..full() }),
        ("timeout_ms", NewJob { timeout_ms: None, ..full() }),
        ("not_before", NewJob { not_before: None, ..full() }),
        ("deadline_ms", NewJob { deadline_ms: Some(9_001), ..full() }),
        ("requires", NewJob { requires: BTreeSet::new(), ..full() }),
    ];
    for (field, new) in changed {
        assert_ne!(hash(new), hash(full()), "{field}");
    }
    let other_tenant = Caller { tenant: "other".into(), ..caller() };
    assert_ne!(JobRequest::check(full(), &other_tenant, || JobId::from("fresh")).unwrap().hash(), hash(full()));
}

#[test]
fn the_hash_does_not_depend_on_who_asked_or_how() {
    let other_actor = Caller { actor: "bob".into(), ..caller() };
    let by_other = JobRequest::check(full(), &other_actor, || JobId::from("fresh")).unwrap();
    assert_eq!(by_other.hash(), hash(full()));
    assert_eq!(hash(NewJob { trace_id: Some("trace-2".into()), ..full() }), hash(full()));
    assert_eq!(hash(NewJob { idempotency_key: None, ..full() }), hash(full()), "the key is where the hash is kept");
    let fresh = |id: &'static str| JobRequest::check(echo(), &caller(), || JobId::from(id)).unwrap().hash();
    assert_eq!(fresh("one"), fresh("two"), "an id that we made is not the client's");
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Into::into),
        "[a-z\"\\\\é]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            proptest::collection::btree_map("[a-z]{1,3}", inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Writes a value with the keys of every object the other way round and spaces between.
fn reversed(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => format!("[ {} ]", items.iter().map(reversed).collect::<Vec<_>>().join(" , ")),
        serde_json::Value::Object(map) => {
            let mut fields: Vec<String> =
                map.iter().map(|(key, value)| format!("{} : {}", serde_json::json!(key), reversed(value))).collect();
            fields.reverse();
            format!("{{\n{}}}", fields.join(","))
        }
        leaf => leaf.to_string(),
    }
}

proptest! {
    #[test]
    fn the_order_of_keys_never_matters(value in value()) {
        prop_assert_eq!(hash(payload(&value.to_string())), hash(payload(&reversed(&value))));
    }

    #[test]
    fn names_that_pass_the_check_are_kept_as_they_are(name in "[ -~é]{0,140}") {
        let checked = check(NewJob { topic: name.clone(), ..NewJob::default() });
        prop_assert_eq!(checked.is_ok(), check_name(&name).is_ok());
        if let Ok(request) = checked {
            prop_assert_eq!(request.topic.as_str(), name);
        }
    }
}

#[test]
fn what_undoes_a_job_is_checked_like_a_job_and_its_errors_name_the_place() {
    let undo = |text: &str| NewJob { compensation: Some(Json::parse(text).unwrap()), ..full() };
    for (text, field) in [
        ("[]", "compensation"),
        (r#"{"topic":"t","priority":"low"}"#, "compensation"),
        (r#"{"payload":1}"#, "compensation"),
        (r#"{"topic":"a b"}"#, "compensation.topic"),
        (r#"{"topic":"t","labels":{"_x":"1"}}"#, "compensation.labels"),
        (r#"{"topic":"t","env":{"":"1"}}"#, "compensation.env"),
        (r#"{"topic":"t","budget":{"max_attempts":0}}"#, "compensation.budget.max_attempts"),
        (r#"{"topic":"t","budget":{"timeout_ms":0}}"#, "compensation.budget.timeout_ms"),
    ] {
        let errors = check(undo(text)).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), [field], "{text}: {errors:?}");
    }
    let alone = check(NewJob { workflow_id: None, ..full() }).unwrap_err();
    assert_eq!(alone[0].field, "compensation", "a job without a workflow is never rolled back");
}

#[test]
fn a_workflow_is_a_label_too_and_the_two_do_not_disagree() {
    let request = check(full()).unwrap();
    assert_eq!(request.labels.get(WORKFLOW_LABEL).map(String::as_str), Some("order-7"));
    let part = request.run.expect("part of a saga");
    assert!(part.run.is_saga() && !part.undo);
    let other = Caller { tenant: "other".into(), ..caller() };
    assert_ne!(JobRequest::check(full(), &other, || JobId::from("j")).unwrap().run.unwrap().run, part.run);
    let errors = check(NewJob { labels: map(&[(WORKFLOW_LABEL, "other")]), ..full() }).unwrap_err();
    assert_eq!(errors[0].field, "labels");
    assert_ne!(
        hash(NewJob { workflow_id: Some("w".into()), ..echo() }),
        hash(NewJob { labels: map(&[(WORKFLOW_LABEL, "w")]), ..echo() })
    );
}

#[test]
fn ids_of_the_platforms_own_jobs_cannot_be_chosen() {
    for id in ["run-1", "run-0.3", "comp-7"] {
        let new = NewJob { job_id: Some(id.into()), topic: "job.echo".into(), ..NewJob::default() };
        let errors = JobRequest::check(new, &Caller::new("acme", "ann"), || JobId::from("j")).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), ["job_id"], "{id}");
    }
}
