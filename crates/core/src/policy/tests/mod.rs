//! Policies as their authors write them and subjects as the engine asks about them.

mod cases;
mod hashes;
mod load_errors;
mod matching;
mod output;
mod overlays;
mod properties;
mod schema;
mod when;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::ids::JobId;
use crate::request::{Caller, JobRequest, Json, NewJob};
use crate::time::Timestamp;

/// A window implementation good enough for tests: a list of (when, job) per rule and key.
#[derive(Default)]
struct Windows(RefCell<BTreeMap<(String, String), BTreeMap<String, Timestamp>>>);

impl Velocity for Windows {
    fn count(&self, window: &VelocityWindow<'_>) -> u64 {
        let mut windows = self.0.borrow_mut();
        let jobs = windows.entry((window.rule.to_owned(), window.key.to_owned())).or_default();
        jobs.insert(window.job_id.to_owned(), window.now);
        jobs.retain(|_, at| window.now.since(*at) < window.span);
        jobs.len() as u64
    }
}

fn load(text: &str) -> Policy {
    Policy::load("policy.yaml", text).unwrap_or_else(|errors| panic!("{}", shown(&errors).join("\n")))
}

fn shown(errors: &[ConfigError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// The errors of a text that must not load.
fn errors(text: &str) -> Vec<String> {
    shown(&Policy::load("policy.yaml", text).expect_err("a broken policy was loaded"))
}

/// A policy with one rule that denies what `conditions` match, and allows all else.
fn denying(conditions: &str) -> Policy {
    load(&format!(
        "version: 1\ndefault: {{decision: allow}}\nrules:\n  - id: r\n    match: {{{conditions}}}\n    decision: deny\n    reason: no\n"
    ))
}

fn request(change: impl FnOnce(&mut NewJob, &mut Caller)) -> JobRequest {
    let mut new = NewJob { topic: "job.echo".into(), payload: Json::parse(r#"{"amount":50}"#).ok(), ..NewJob::default() };
    let mut caller = Caller::new("acme", "ann");
    change(&mut new, &mut caller);
    JobRequest::check(new, &caller, || JobId::from("job-1")).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn judge(policy: &Policy, request: &JobRequest) -> Verdict {
    Arc::unwrap_or_clone(policy.evaluate(&Subject::new(request, Timestamp::from_millis(1_000)), &Windows::default()))
}

fn decision(policy: &Policy, request: &JobRequest) -> Decision {
    judge(policy, request).decision
}

#[test]
fn a_policy_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Policy>();
}

#[test]
fn without_a_match_and_a_default_the_answer_is_no() {
    let policy = load("version: 1\n");
    let verdict = judge(&policy, &request(|_, _| {}));
    assert_eq!((verdict.decision, &*verdict.rule, &*verdict.reason), (Decision::Deny, "default", "no rule matched"));
    assert_eq!(verdict.snapshot, *policy.snapshot());
    assert_eq!(policy.source(), "version: 1\n");
    assert_eq!(&policy.snapshot()[..7], "sha256:");
    assert_eq!(policy.snapshot().len(), 7 + 64);
}

#[test]
fn the_first_rule_in_order_decides() {
    let policy = load(
        "version: 1
rules:
  - {id: narrow, match: {topics: [job.echo], tenants: [acme]}, decision: throttle, reason: first}
  - {id: wide, match: {topics: ['job.*']}, decision: allow, reason: second}
  - {id: exact, match: {topics: [job.echo]}, decision: deny, reason: third}
",
    );
    assert_eq!(&*judge(&policy, &request(|_, _| {})).rule, "narrow");
    assert_eq!(&*judge(&policy, &request(|_, caller| caller.tenant = "other".into())).rule, "wide");
    assert_eq!(&*judge(&policy, &request(|new, _| new.topic = "x".into())).rule, "default");
}

#[test]
fn a_rule_gives_everything_it_attaches() {
    let policy = load(
        "version: 1
rules:
  - id: ask
    match: {}
    decision: require_approval
    reason: needs a second person
    constraints: {max_runtime: 30s, max_retries: 0, max_output_bytes: 10, allowed_pools: [eu], network: deny, exec: allow}
    approval: {approvers: 2, request_expiry: 30m, valid_for: 24h}
    remediations:
      - {title: use the sandbox, summary: it needs no approval, replacement_topic: job.sandbox}
",
    );
    let verdict = judge(&policy, &request(|_, _| {}));
    let constraints = serde_json::to_value(&verdict.constraints).unwrap();
    assert_eq!(
        constraints,
        serde_json::json!({"max_runtime_ms": 30_000, "max_retries": 0, "max_output_bytes": 10,
            "allowed_pools": ["eu"], "network": "deny", "exec": "allow"})
    );
    let approval = verdict.approval.as_ref().unwrap();
    assert_eq!(
        (approval.approvers, approval.request_expiry_ms, approval.valid_for_ms),
        (2, Some(1_800_000), Some(86_400_000))
    );
    assert_eq!(verdict.remediations[0].replacement_topic.as_deref(), Some("job.sandbox"));
}

#[test]
fn allow_with_constraints_is_what_allow_becomes_when_it_has_some() {
    let policy = load(
        "version: 1
rules:
  - {id: a, match: {}, decision: allow, reason: short, constraints: {max_runtime_ms: 5}}
",
    );
    let verdict = judge(&policy, &request(|_, _| {}));
    assert_eq!((verdict.decision, verdict.constraints.max_runtime_ms), (Decision::AllowWithConstraints, Some(5)));
}

#[test]
fn an_approval_without_terms_asks_one_person() {
    let policy = load("version: 1\nrules:\n  - {id: a, match: {}, decision: require_approval, reason: ask}\n");
    assert_eq!(judge(&policy, &request(|_, _| {})).approval.as_ref().map(|terms| terms.approvers), Some(1));
}

#[test]
fn an_explanation_tells_each_rule_and_agrees_with_the_verdict() {
    let policy = load(
        "version: 1
rules:
  - {id: a, match: {tenants: [other]}, decision: deny, reason: a}
  - {id: b, match: {topics: [x]}, decision: deny, reason: b}
  - {id: c, match: {labels: {env: prod}}, decision: deny, reason: c}
  - {id: g, match: {label_not_in: {env: [dev]}}, decision: deny, reason: g}
  - {id: d, match: {when: 'payload.amount > 10'}, decision: allow, reason: d}
  - {id: e, match: {}, decision: deny, reason: e}
tenants:
  acme:
    rules:
      - {id: f, match: {when: 'payload.missing == 1'}, decision: allow, reason: f}
",
    );
    let request = request(|_, _| {});
    let subject = Subject::new(&request, Timestamp::ZERO);
    let explanation = policy.explain(&subject, &Windows::default());
    assert_eq!(explanation.verdict, policy.evaluate(&subject, &Windows::default()));
    let looks: Vec<_> = explanation.looks.iter().map(|look| (look.scope, &*look.rule, look.outcome.clone())).collect();
    let missed = |text: &str| LookOutcome::Missed(text.to_owned());
    assert_eq!(
        looks,
        [
            (RuleScope::Base, "a", missed("tenant \"acme\" is not in tenants")),
            (RuleScope::Base, "b", missed("topic \"job.echo\" matches none of topics")),
            (RuleScope::Base, "c", missed("its labels do not equal labels")),
            (RuleScope::Base, "g", missed("no label of label_not_in has a value outside of its list")),
            (RuleScope::Base, "d", LookOutcome::Matched),
            (RuleScope::Tenant, "f", LookOutcome::Failed("\"missing\" is absent; ask with has() or in first".to_owned())),
        ]
    );
    assert_eq!(&*explanation.verdict.rule, "f");
}

#[test]
fn an_open_input_policy_closes_at_its_time() {
    let policy = load("version: 1\ninput_policy: {fail_mode: open, until: '1970-01-01T00:00:02Z'}\n");
    assert_eq!(policy.input().fail_mode(Timestamp::from_millis(1_999)), FailMode::Open);
    assert_eq!(policy.input().fail_mode(Timestamp::from_millis(2_000)), FailMode::Closed);
    assert_eq!(load("version: 1\n").input().fail_mode(Timestamp::ZERO), FailMode::Closed);
}
