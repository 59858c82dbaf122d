//! Overlays make verdicts stricter and never looser.

use super::*;
use crate::verdict::Access;

const ORDER: [&str; 5] = ["allow", "allow_with_constraints", "throttle", "require_approval", "deny"];

fn rule(id: &str, decision: &str, more: &str) -> String {
    let constraints =
        if decision == "allow_with_constraints" && more.is_empty() { ", constraints: {network: deny}" } else { "" };
    format!("{{id: {id}, match: {{}}, decision: {decision}, reason: {id}{constraints}{more}}}")
}

fn layered(base: &str, tenant: &str, workflow: &str) -> Policy {
    load(&format!(
        "version: 1\nrules:\n  - {base}\ntenants:\n  acme:\n    rules:\n      - {tenant}\nworkflows:\n  nightly:\n    rules:\n      - {workflow}\n"
    ))
}

fn nightly() -> JobRequest {
    request(|new, _| drop(new.labels.insert(WORKFLOW_LABEL.into(), "nightly".into())))
}

#[test]
fn of_all_layers_the_strictest_decides() {
    for (i, base) in ORDER.iter().enumerate() {
        for (j, tenant) in ORDER.iter().enumerate() {
            for (k, workflow) in ORDER.iter().enumerate() {
                let policy = layered(&rule("b", base, ""), &rule("t", tenant, ""), &rule("w", workflow, ""));
                let verdict = judge(&policy, &nightly());
                let strictest = i.max(j).max(k);
                assert_eq!(verdict.decision.as_str(), ORDER[strictest], "{base} {tenant} {workflow}");
                let decider = if i == strictest {
                    "b"
                } else if j == strictest {
                    "t"
                } else {
                    "w"
                };
                assert_eq!(&*verdict.rule, decider);
            }
        }
    }
}

#[test]
fn an_overlay_does_not_lift_a_denial_by_default() {
    let policy = load("version: 1\ntenants:\n  acme:\n    rules:\n      - {id: t, match: {}, decision: allow, reason: t}\n");
    assert_eq!(&*judge(&policy, &request(|_, _| {})).rule, "default");
    assert_eq!(decision(&policy, &request(|_, _| {})), Decision::Deny);
}

#[test]
fn overlays_apply_to_their_own_tenant_and_workflow_only() {
    let policy = layered(&rule("b", "allow", ""), &rule("t", "deny", ""), &rule("w", "throttle", ""));
    let stranger = |workflow: &str| {
        request(|new, caller| {
            caller.tenant = "other".into();
            new.labels.insert(WORKFLOW_LABEL.into(), workflow.into());
        })
    };
    assert_eq!(decision(&policy, &stranger("weekly")), Decision::Allow);
    assert_eq!(decision(&policy, &stranger("nightly")), Decision::Throttle);
    assert_eq!(decision(&policy, &request(|_, _| {})), Decision::Deny);
}

#[test]
fn conditions_of_all_layers_hold_together() {
    let policy = layered(
        &rule("b", "allow", ", constraints: {max_runtime: 10s, network: allow}"),
        &rule("t", "require_approval", ", approval: {approvers: 1, valid_for: 1h}, constraints: {max_runtime: 20s}"),
        &rule("w", "require_approval", ", approval: {approvers: 3, valid_for: 2h}, constraints: {network: deny}"),
    );
    let verdict = judge(&policy, &nightly());
    assert_eq!((verdict.constraints.max_runtime_ms, verdict.constraints.network), (Some(10_000), Some(Access::Deny)));
    let approval = verdict.approval.as_ref().unwrap();
    assert_eq!((approval.approvers, approval.valid_for_ms), (3, Some(3_600_000)));
}

#[test]
fn a_hash_covers_every_rule_that_adds_conditions() {
    let base = rule("b", "require_approval", "");
    let hash = |tenant: &str| judge(&layered(&base, tenant, &rule("w", "allow", "")), &nightly()).rule_hash.clone();
    let alone = hash(&rule("t", "allow", ""));
    assert_eq!(alone, hash(&rule("t", "throttle", "")), "a looser rule without conditions adds nothing");
    let limited = hash(&rule("t", "allow", ", constraints: {max_retries: 1}"));
    assert_ne!(alone, limited);
    assert_ne!(limited, hash(&rule("t", "allow", ", constraints: {max_retries: 2}")));
}
