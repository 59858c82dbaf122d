//! Which operation goes on with what another one returned.

use serde_json::{Value, json};

use super::for_each_operation;

/// An operation, where its answer names a thing, and the operations that take that name as a parameter of their path.
struct Lead {
    from: &'static str,
    found: &'static str,
    parameter: &'static str,
    to: &'static [&'static str],
}

const fn lead(from: &'static str, found: &'static str, parameter: &'static str, to: &'static [&'static str]) -> Lead {
    Lead { from, found, parameter, to }
}

const JOB: &[&str] = &["get_job", "explain_job", "get_job_logs", "cancel_job", "retry_job"];
const DEAD_LETTER: &[&str] = &["get_dead_letter", "replay_dead_letter", "discard_dead_letter"];
const RUN: &[&str] =
    &["get_run", "get_run_graph", "pause_run", "resume_run", "rerun_run", "cancel_run", "resolve_compensation"];
const SCHEDULE: &[&str] = &[
    "get_schedule",
    "list_slots",
    "trigger_schedule",
    "pause_schedule",
    "resume_schedule",
    "backfill_schedule",
    "remove_schedule",
];
const LEADS: [Lead; 15] = [
    lead("submit_job", "$response.body#/job_id", "id", JOB),
    lead("list_jobs", "$response.body#/jobs/0/job_id", "id", JOB),
    lead("list_dead_letters", "$response.body#/dead_letters/0/job_id", "id", DEAD_LETTER),
    lead("list_approvals", "$response.body#/approvals/0/job_id", "id", &["approve_job", "reject_job"]),
    lead("put_dag", "$response.body#/name", "name", &["get_dag"]),
    lead("list_dags", "$response.body#/dags/0/name", "name", &["get_dag"]),
    lead("start_run", "$response.body#/run_id", "id", RUN),
    lead("list_runs", "$response.body#/runs/0/run_id", "id", RUN),
    lead("put_schedules", "$response.body#/schedules/0/name", "name", SCHEDULE),
    lead("list_schedules", "$response.body#/schedules/0/name", "name", SCHEDULE),
    lead("create_key", "$response.body#/credential/id", "id", &["rotate_key", "revoke_credential"]),
    lead("bind_certificate", "$response.body#/id", "id", &["revoke_credential"]),
    lead("list_credentials", "$response.body#/credentials/0/id", "id", &["rotate_key", "revoke_credential"]),
    lead("put_policy", "$response.body#/snapshot", "id", &["get_policy_snapshot"]),
    lead("get_policy", "$response.body#/snapshot", "id", &["get_policy_snapshot"]),
];

pub(super) fn add_to(document: &mut Value) {
    for_each_operation(document, |id, operation| {
        for Lead { found, parameter, to, .. } in LEADS.iter().filter(|lead| lead.from == id) {
            to.iter().for_each(|to| link(operation, to, &json!({ "operationId": to, "parameters": { *parameter: found } })));
        }
        match id {
            "put_dag" => {
                let body = json!({ "dag": "$response.body#/name" });
                link(operation, "start_run", &json!({ "operationId": "start_run", "requestBody": body }));
            }
            "put_config" | "get_config" => {
                let parameters = json!({ "kind": "$request.path.kind", "id": "$response.body#/snapshot" });
                link(
                    operation,
                    "get_config_snapshot",
                    &json!({ "operationId": "get_config_snapshot", "parameters": parameters }),
                );
            }
            "backfill_schedule" => {
                let parameters = json!({ "name": "$request.path.name", "id": "$response.body#/id" });
                link(operation, "cancel_backfill", &json!({ "operationId": "cancel_backfill", "parameters": parameters }));
            }
            _ => {}
        }
    });
}

/// From every answer that is a success.
fn link(operation: &mut Value, name: &str, link: &Value) {
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, response) in responses.filter(|(status, _)| matches!(status.as_str(), "200" | "201")) {
        response["links"][name] = link.clone();
    }
}
