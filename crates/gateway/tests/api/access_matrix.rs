//! Every method and every route, for every role: who may do what, written down a second time.

use crate::support::{Closed, Reply};

/// Whose things a call touches: one tenant's, or everybody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Own,
    All,
}

use Of::{All, Own};

/// Letters of roles that may: **v**iewer, **s**ubmitter, **a**pprover, **o**perator, **A**dmin, **w**orker, sc**h**eduler.
pub(crate) const MATRIX: [(&str, Of, &str); 149] = [
    ("POST /externalscaler.ExternalScaler/GetMetricSpec", All, "vsaoA"),
    ("POST /externalscaler.ExternalScaler/GetMetrics", All, "vsaoA"),
    ("POST /externalscaler.ExternalScaler/IsActive", All, "vsaoA"),
    ("POST /externalscaler.ExternalScaler/StreamIsActive", All, "vsaoA"),
    ("POST /lockgate.v1.Access/BindCertificate", All, "A"),
    ("POST /lockgate.v1.Access/CreateKey", Own, "A"),
    ("POST /lockgate.v1.Access/ListCredentials", Own, "A"),
    ("POST /lockgate.v1.Access/RevokeCredential", Own, "A"),
    ("POST /lockgate.v1.Access/RotateKey", Own, "A"),
    ("POST /lockgate.v1.Access/WhoAmI", Own, "vsaoAwh"),
    ("POST /lockgate.v1.Admin/ActivatePolicy", All, "A"),
    ("POST /lockgate.v1.Admin/EraseTenant", All, "A"),
    ("POST /lockgate.v1.Admin/GetPolicy", All, "aoA"),
    ("POST /lockgate.v1.Admin/ListAudit", Own, "aoA"),
    ("POST /lockgate.v1.Admin/ListBreakers", All, "vsaoA"),
    ("POST /lockgate.v1.Admin/ListPolicies", All, "aoA"),
    ("POST /lockgate.v1.Admin/ListTenants", Own, "vsaoA"),
    ("POST /lockgate.v1.Admin/RollBackPolicy", All, "A"),
    ("POST /lockgate.v1.Admin/VerifyAudit", All, "aoA"),
    ("POST /lockgate.v1.Approvals/Approve", Own, "aA"),
    ("POST /lockgate.v1.Approvals/ListApprovals", Own, "vsaoA"),
    ("POST /lockgate.v1.Approvals/Reject", Own, "aA"),
    ("POST /lockgate.v1.Approvals/ReleaseOutput", Own, "aA"),
    ("POST /lockgate.v1.Monitor/GetHealth", All, "vsaoA"),
    ("POST /lockgate.v1.Orchestrator/CancelDAG", Own, "soA"),
    ("POST /lockgate.v1.Orchestrator/GetDAG", Own, "vsaoA"),
    ("POST /lockgate.v1.Orchestrator/GetDAGRun", Own, "vsaoA"),
    ("POST /lockgate.v1.Orchestrator/ListDAGRuns", Own, "vsaoA"),
    ("POST /lockgate.v1.Orchestrator/ListDAGs", Own, "vsaoA"),
    ("POST /lockgate.v1.Orchestrator/PauseDAG", Own, "oA"),
    ("POST /lockgate.v1.Orchestrator/PutDAG", Own, "oA"),
    ("POST /lockgate.v1.Orchestrator/RerunDAG", Own, "oA"),
    ("POST /lockgate.v1.Orchestrator/ResolveCompensation", Own, "oA"),
    ("POST /lockgate.v1.Orchestrator/ResumeDAG", Own, "oA"),
    ("POST /lockgate.v1.Orchestrator/StartDAG", Own, "soA"),
    ("POST /lockgate.v1.Orchestrator/WatchDAGRun", Own, "vsaoA"),
    ("POST /lockgate.v1.OutputPolicy/CheckOutput", All, "Ah"),
    ("POST /lockgate.v1.Pools/ActivateConfig", All, "A"),
    ("POST /lockgate.v1.Pools/DrainWorker", All, "oA"),
    ("POST /lockgate.v1.Pools/GetConfig", All, "aoA"),
    ("POST /lockgate.v1.Pools/ListConfigs", All, "aoA"),
    ("POST /lockgate.v1.Pools/ListPools", All, "vsaoA"),
    ("POST /lockgate.v1.Pools/RollBackConfig", All, "A"),
    ("POST /lockgate.v1.Pools/SetPoolState", All, "oA"),
    ("POST /lockgate.v1.SafetyKernel/Check", All, "Awh"),
    ("POST /lockgate.v1.SafetyKernel/CheckBatch", All, "Ah"),
    ("POST /lockgate.v1.SafetyKernel/Explain", All, "aoAh"),
    ("POST /lockgate.v1.SafetyKernel/ListSnapshots", All, "aoAh"),
    ("POST /lockgate.v1.SafetyKernel/Simulate", All, "aoAh"),
    ("POST /lockgate.v1.Scheduler/CancelJob", Own, "soA"),
    ("POST /lockgate.v1.Scheduler/DiscardDeadLetter", Own, "oA"),
    ("POST /lockgate.v1.Scheduler/ExplainJob", Own, "vsaoA"),
    ("POST /lockgate.v1.Scheduler/GetJob", Own, "vsaoA"),
    ("POST /lockgate.v1.Scheduler/GetJobLogs", Own, "vsaoA"),
    ("POST /lockgate.v1.Scheduler/ListDeadLetters", Own, "vsaoA"),
    ("POST /lockgate.v1.Scheduler/ListJobs", Own, "vsaoA"),
    ("POST /lockgate.v1.Scheduler/ListQueues", All, "vsaoA"),
    ("POST /lockgate.v1.Scheduler/ListWorkers", All, "vsaoA"),
    ("POST /lockgate.v1.Scheduler/ReplayDeadLetters", Own, "oA"),
    ("POST /lockgate.v1.Scheduler/RetryJob", Own, "oA"),
    ("POST /lockgate.v1.Scheduler/SubmitJob", Own, "soA"),
    ("POST /lockgate.v1.Scheduler/SubmitJobs", Own, "soA"),
    ("POST /lockgate.v1.Scheduler/WatchJob", Own, "vsaoA"),
    ("POST /lockgate.v1.Scheduler/WatchJobLogs", Own, "vsaoA"),
    ("POST /lockgate.v1.Worker/Attach", All, "w"),
    ("POST /lockgate.v1.Worker/ListChildren", All, "w"),
    ("POST /lockgate.v1.Worker/SubmitChildren", All, "w"),
    ("GET /monitor/health", All, "vsaoA"),
    ("GET /v1/approvals", Own, "vsaoA"),
    ("GET /v1/audit", Own, "aoA"),
    ("GET /v1/audit/verify", All, "aoA"),
    ("GET /v1/breakers", All, "vsaoA"),
    ("GET /v1/config/{kind}", All, "aoA"),
    ("GET /v1/config/{kind}/snapshots", All, "aoA"),
    ("GET /v1/config/{kind}/snapshots/{id}", All, "aoA"),
    ("GET /v1/credentials", Own, "A"),
    ("GET /v1/dags", Own, "vsaoA"),
    ("GET /v1/dags/{name}", Own, "vsaoA"),
    ("GET /v1/dead-letters", Own, "vsaoA"),
    ("GET /v1/dead-letters/{id}", Own, "vsaoA"),
    ("GET /v1/jobs", Own, "vsaoA"),
    ("GET /v1/jobs/{id}", Own, "vsaoA"),
    ("GET /v1/jobs/{id}/events", Own, "vsaoA"),
    ("GET /v1/jobs/{id}/logs", Own, "vsaoA"),
    ("GET /v1/jobs/{id}/logs/stream", Own, "vsaoA"),
    ("GET /v1/jobs/{id}/why", Own, "vsaoA"),
    ("GET /v1/policy", All, "aoA"),
    ("GET /v1/policy/snapshots", All, "aoA"),
    ("GET /v1/policy/snapshots/{id}", All, "aoA"),
    ("GET /v1/pools", All, "vsaoA"),
    ("GET /v1/queues", All, "vsaoA"),
    ("GET /v1/runs", Own, "vsaoA"),
    ("GET /v1/runs/{id}", Own, "vsaoA"),
    ("GET /v1/runs/{id}/events", Own, "vsaoA"),
    ("GET /v1/runs/{id}/graph", Own, "vsaoA"),
    ("GET /v1/tenants", Own, "vsaoA"),
    ("GET /v1/whoami", Own, "vsaoAwh"),
    ("GET /v1/workers", All, "vsaoA"),
    ("POST /v1/certificates", All, "A"),
    ("POST /v1/config/{kind}/rollback", All, "A"),
    ("POST /v1/credentials/{id}/revoke", Own, "A"),
    ("POST /v1/dags", Own, "oA"),
    ("POST /v1/dead-letters/{id}/discard", Own, "oA"),
    ("POST /v1/dead-letters/{id}/replay", Own, "oA"),
    ("POST /v1/dead-letters:replay", Own, "oA"),
    ("POST /v1/jobs", Own, "soA"),
    ("POST /v1/jobs/{id}/approve", Own, "aA"),
    ("POST /v1/jobs/{id}/cancel", Own, "soA"),
    ("POST /v1/jobs/{id}/reject", Own, "aA"),
    ("POST /v1/jobs/{id}/release", Own, "aA"),
    ("POST /v1/jobs/{id}/retry", Own, "oA"),
    ("POST /v1/jobs:batch", Own, "soA"),
    ("POST /v1/keys", Own, "A"),
    ("POST /v1/keys/{id}/rotate", Own, "A"),
    ("POST /v1/policy/explain", All, "aoAh"),
    ("POST /v1/policy/rollback", All, "A"),
    ("POST /v1/pools/{pool}/drain", All, "oA"),
    ("POST /v1/pools/{pool}/pause", All, "oA"),
    ("POST /v1/pools/{pool}/resume", All, "oA"),
    ("POST /v1/runs", Own, "soA"),
    ("POST /v1/runs/{id}/cancel", Own, "soA"),
    ("POST /v1/runs/{id}/pause", Own, "oA"),
    ("POST /v1/runs/{id}/rerun", Own, "oA"),
    ("POST /v1/runs/{id}/resolve", Own, "oA"),
    ("POST /v1/runs/{id}/resume", Own, "oA"),
    ("POST /v1/tenants/{tenant}/erase", All, "A"),
    ("POST /v1/workers/{id}/drain", All, "oA"),
    ("PUT /v1/config/{kind}", All, "A"),
    ("PUT /v1/policy", All, "A"),
    ("POST /lockgate.v1.Schedules/BackfillSchedule", Own, "oA"),
    ("POST /lockgate.v1.Schedules/CancelBackfill", Own, "oA"),
    ("POST /lockgate.v1.Schedules/GetSchedule", Own, "vsaoA"),
    ("POST /lockgate.v1.Schedules/ListSchedules", Own, "vsaoA"),
    ("POST /lockgate.v1.Schedules/ListSlots", Own, "vsaoA"),
    ("POST /lockgate.v1.Schedules/PauseSchedule", Own, "oA"),
    ("POST /lockgate.v1.Schedules/PutSchedules", Own, "oA"),
    ("POST /lockgate.v1.Schedules/RemoveSchedule", Own, "oA"),
    ("POST /lockgate.v1.Schedules/ResumeSchedule", Own, "oA"),
    ("POST /lockgate.v1.Schedules/TriggerSchedule", Own, "oA"),
    ("GET /v1/schedules", Own, "vsaoA"),
    ("GET /v1/schedules/{name}", Own, "vsaoA"),
    ("GET /v1/schedules/{name}/slots", Own, "vsaoA"),
    ("POST /v1/schedules", Own, "oA"),
    ("POST /v1/schedules/{name}/backfills", Own, "oA"),
    ("POST /v1/schedules/{name}/backfills/{id}/cancel", Own, "oA"),
    ("POST /v1/schedules/{name}/pause", Own, "oA"),
    ("POST /v1/schedules/{name}/remove", Own, "oA"),
    ("POST /v1/schedules/{name}/resume", Own, "oA"),
    ("POST /v1/schedules/{name}/trigger", Own, "oA"),
];

const ROLES: [(char, &str); 7] = [
    ('v', "viewer"),
    ('s', "submitter"),
    ('a', "approver"),
    ('o', "operator"),
    ('A', "admin"),
    ('w', "worker"),
    ('h', "scheduler"),
];

/// What became of a request at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    Unknown,
    Forbidden,
    /// Failed too often to be looked at; a good credential is never made to wait.
    Braked,
}

fn door(reply: &Reply, is_grpc: bool) -> Door {
    let code = if is_grpc { reply.header("grpc-status").to_owned() } else { reply.status.to_string() };
    match code.as_str() {
        "16" | "401" => Door::Unknown,
        "7" | "403" => Door::Forbidden,
        "8" | "429" => Door::Braked,
        _ => Door::Open,
    }
}

pub(crate) async fn knock(server: &Closed, row: &str, key: Option<&str>, tenant: Option<&str>) -> Door {
    let (method, pattern) = row.split_once(' ').expect("method and path");
    let is_grpc = pattern.starts_with("/lockgate.") || pattern.starts_with("/externalscaler.");
    let mut request = server.request(method, &pattern.replace(['{', '}'], "x"));
    if is_grpc {
        request = request.header("content-type", "application/grpc");
    }
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    if let Some(tenant) = tenant {
        request = request.header("x-lockgate-tenant", tenant);
    }
    door(&server.send(request, "").await, is_grpc)
}

#[tokio::test]
async fn nothing_is_answered_without_a_credential() {
    let server = Closed::start().await;
    for (row, ..) in MATRIX {
        assert_eq!(knock(&server, row, None, None).await, Door::Unknown, "{row}");
    }
    for open in ["GET /healthz", "GET /readyz", "GET /openapi.json", "GET /", "GET /ui/app.js"] {
        assert_eq!(knock(&server, open, None, None).await, Door::Open, "{open}");
    }
    for closed in ["GET /v1/nothing", "DELETE /v1/jobs", "GET /ui/"] {
        assert_eq!(knock(&server, closed, None, None).await, Door::Unknown, "{closed}");
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_answered_with_those_that_it_takes() {
    let server = Closed::start().await;
    let key = server.key("viewer", None).await;
    for (method, path, allow) in
        [("DELETE", "/v1/jobs", "GET,HEAD,POST"), ("GET", "/v1/keys", "POST"), ("POST", "/v1/policy", "GET,HEAD,PUT")]
    {
        let request = server.request(method, path).header("authorization", format!("Bearer {key}"));
        let reply = server.send(request, "").await;
        reply.is_problem(405, "method_not_allowed");
        assert_eq!(reply.header("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn every_role_may_do_what_the_matrix_says_and_nothing_else() {
    let server = Closed::start().await;
    for (letter, role) in ROLES {
        let everyone = server.key(role, None).await;
        // Machines are for every tenant.
        let bound = if ["worker", "scheduler"].contains(&role) { None } else { Some(server.key(role, Some("acme")).await) };
        for (row, of, bus_submits) in MATRIX {
            let may = bus_submits.contains(letter);
            let expected = if may { Door::Open } else { Door::Forbidden };
            assert_eq!(knock(&server, row, Some(&everyone), None).await, expected, "{role} of everyone: {row}");
            let Some(bound) = &bound else { continue };
            let expected = if may && of == Own { Door::Open } else { Door::Forbidden };
            assert_eq!(knock(&server, row, Some(bound), None).await, expected, "{role} of acme: {row}");
            assert_eq!(knock(&server, row, Some(bound), Some("acme")).await, expected, "{role} of acme, said: {row}");
            let stranger = knock(&server, row, Some(bound), Some("other")).await;
            assert_eq!(stranger, Door::Forbidden, "{role} of acme for another tenant: {row}");
        }
    }
}

#[tokio::test]
async fn the_matrix_has_every_route() {
    let server = Closed::start().await;
    let key = server.key("viewer", None).await;
    let request = server.request("GET", "/openapi.json").header("authorization", format!("Bearer {key}"));
    let reply = server.send(request, "").await;
    let paths = reply.json["paths"].as_object().expect("paths");
    let mut described: Vec<String> = Vec::new();
    for (path, item) in paths {
        let methods = item.as_object().expect("operations").keys();
        described.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
    }
    described.retain(|row| !["GET /healthz", "GET /readyz"].contains(&row.as_str()));
    described.sort();
    let mut listed: Vec<&str> = MATRIX
        .iter()
        .map(|(row, ..)| *row)
        .filter(|row| !row.contains("/lockgate.") && !row.contains("/externalscaler."))
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, described);
}
