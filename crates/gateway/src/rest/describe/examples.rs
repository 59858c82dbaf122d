//! A body that is accepted, for every operation that takes one. A test sends each.

use serde_json::{Value, json};

use super::for_each_operation;

const POLICY: &str = "\
version: 1
rules:
  - id: payments-by-people
    match: {topics: [job.pay.*]}
    decision: require_approval
    reason: money leaves the house
default: {decision: allow}
";
const POOLS: &str = "topics: {job.echo: echo, job.noop: default}\npools: {echo: {}, default: {max_concurrent: 100}}\n";
const DAG: &str = "\
version: 1
dag: greet
params: {name: {type: text, default: you}}
nodes:
  ask: {topic: job.echo, payload: {who: \"${params.name}\"}}
  tell: {topic: job.echo, needs: [ask], payload: \"${nodes.ask.output.who}\"}
";
const SCHEDULES: &str = "\
version: 1
schedules:
  nightly: {cron: \"0 3 * * *\", time_zone: Europe/Berlin, job: {topic: job.noop}}
";

pub(super) fn add_to(document: &mut Value) {
    for_each_operation(document, |id, operation| {
        let contents = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut);
        for (kind, content) in contents.into_iter().flatten() {
            if let Some(example) = of(id, kind != "application/json") {
                content["example"] = example;
            }
        }
    });
}

fn of(operation: &str, yaml: bool) -> Option<Value> {
    let file = |text: &str| if yaml { json!(text) } else { json!({ "text": text }) };
    let key = || json!({ "actor": "deploy-bot", "roles": ["submitter"], "tenant": "acme", "lasts_ms": 86_400_000 });
    let job = || json!({ "topic": "job.echo", "payload": { "hello": "world" }, "labels": { "team": "blue" } });
    let answer = || json!({ "request_hash": "0".repeat(64), "rule_hash": "0".repeat(64), "note": "seen with finance" });
    Some(match operation {
        "submit_job" | "explain_policy" => job(),
        "submit_jobs" => json!({ "jobs": [job(), { "topic": "job.noop", "priority": "low" }] }),
        "cancel_job" => json!({ "reason": "ordered twice" }),
        "retry_job" => json!({ "reason": "the other side is back" }),
        "approve_job" | "reject_job" => answer(),
        "release_result" => json!({ "note": "a test card number" }),
        "discard_dead_letter" => json!({ "reason": "the customer was refunded by hand" }),
        "replay_dead_letters" => json!({ "reason": "agent_lost", "dry_run": true, "rate": 10 }),
        "put_dag" => file(DAG),
        "start_run" => json!({ "dag": "greet", "params": { "name": "Ada" } }),
        "cancel_run" => json!({ "reason": "no longer needed", "compensate": true }),
        "rerun_run" => json!({ "from": ["tell"] }),
        "resolve_compensation" => json!({ "node": "ask", "retry": true }),
        "put_schedules" => file(SCHEDULES),
        "backfill_schedule" => json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-07T00:00:00Z" }),
        "put_policy" => file(POLICY),
        "put_config" => file(POOLS),
        "roll_back_policy" => json!({ "snapshot": "builtin:allow" }),
        "roll_back_config" => json!({ "snapshot": "builtin:default" }),
        "create_key" => key(),
        "rotate_key" => json!({ "overlap_ms": 3_600_000 }),
        "bind_certificate" => json!({ "subject": "dns:scheduler.example", "credential": key() }),
        "erase_tenant" => json!({ "confirm": "acme" }),
        _ => return None,
    })
}
