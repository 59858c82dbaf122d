//! A rule's hash moves when what the rule says moves, and only then.

use super::*;

const RULE: &str = "
  - id: r
    description: for people
    match: {topics: [job.echo], scan: [badge, pii]}
    decision: deny
    reason: no";

fn policy(rules: &str, badge: &str) -> Policy {
    load(&format!("version: 1\npatterns:\n  badge: {{regex: '{badge}'}}\n  other: {{regex: zzz}}\nrules:{rules}\n"))
}

fn hash(policy: &Policy) -> Arc<str> {
    let rule = &policy.base.rules.iter().find(|rule| &*rule.terms.id == "r").unwrap().terms;
    assert_eq!(rule.hash.len(), 64);
    rule.hash.clone()
}

#[test]
fn an_unrelated_change_keeps_the_hash_of_a_rule() {
    let before = policy(RULE, "BADGE");
    let moved = "
  - {id: new, match: {tenants: [x]}, decision: allow, reason: new}
  # a comment
  - {reason: 'no', decision: deny, match: {scan: [badge, pii], topics: [\"job.echo\"]}, id: r, description: other words}";
    let after = policy(moved, "BADGE");
    assert_eq!(hash(&before), hash(&after));
    assert_ne!(before.snapshot(), after.snapshot());
}

#[test]
fn a_change_of_the_rule_or_of_its_patterns_moves_the_hash() {
    let before = hash(&policy(RULE, "BADGE"));
    assert_ne!(before, hash(&policy(RULE, "BADGES")), "the pattern it scans for");
    for (from, to) in [("reason: no", "reason: never"), ("deny", "throttle"), ("job.echo", "job.*"), ("pii", "secrets")] {
        assert_ne!(before, hash(&policy(&RULE.replace(from, to), "BADGE")), "{to}");
    }
}

#[test]
fn a_rule_says_something_else_in_another_scope() {
    let inner = "rules: [{id: r, match: {}, decision: deny, reason: no}]";
    let base = load(&format!("version: 1\n{inner}\n"));
    let tenant = load(&format!("version: 1\ntenants: {{acme: {{{inner}}}}}\n"));
    assert_ne!(hash(&base), tenant.tenants["acme"].rules[0].terms.hash);
}
