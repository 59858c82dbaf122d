//! What every method and every route needs. There is no other place where that is said.

use http::Method;
use lockgate_core::access::Permission::{
    self, Approve, Cancel, Check, Define, Enter, Explain, Govern, Judge, Look, LookAtRules, ManageCredentials, Operate,
    SeePayloads, Submit, Work,
};

use crate::dashboard;

/// What one call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequiredPermission {
    pub(crate) permission: Permission,
    pub(crate) of: PermissionScope,
}

/// Whose things are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermissionScope {
    /// One tenant's own.
    Tenant,
    /// Everybody's: only for those who reach everyone.
    Installation,
}

const fn own(permission: Permission) -> RequiredPermission {
    RequiredPermission { permission, of: PermissionScope::Tenant }
}

const fn all(permission: Permission) -> RequiredPermission {
    RequiredPermission { permission, of: PermissionScope::Installation }
}

/// By service and method.
const METHODS: &[(&str, &str, RequiredPermission)] = &[
    ("Access", "BindCertificate", all(ManageCredentials)),
    ("Access", "CreateKey", own(ManageCredentials)),
    ("Access", "ListCredentials", own(ManageCredentials)),
    ("Access", "RevokeCredential", own(ManageCredentials)),
    ("Access", "RotateKey", own(ManageCredentials)),
    ("Access", "WhoAmI", own(Enter)),
    ("Admin", "ActivatePolicy", all(Govern)),
    ("Admin", "EraseTenant", all(Govern)),
    ("Admin", "GetPolicy", all(LookAtRules)),
    ("Admin", "ListAudit", own(LookAtRules)),
    ("Admin", "ListBreakers", all(Look)),
    ("Admin", "ListPolicies", all(LookAtRules)),
    ("Admin", "ListTenants", own(Look)),
    ("Admin", "RollBackPolicy", all(Govern)),
    ("Admin", "VerifyAudit", all(LookAtRules)),
    ("Approvals", "Approve", own(Approve)),
    ("Approvals", "ListApprovals", own(Look)),
    ("Approvals", "Reject", own(Approve)),
    ("Approvals", "ReleaseOutput", own(Approve)),
    ("Monitor", "GetHealth", all(Look)),
    ("Orchestrator", "CancelDAG", own(Cancel)),
    ("Orchestrator", "GetDAG", own(Look)),
    ("Orchestrator", "GetDAGRun", own(Look)),
    ("Orchestrator", "ListDAGRuns", own(Look)),
    ("Orchestrator", "ListDAGs", own(Look)),
    ("Orchestrator", "PauseDAG", own(Operate)),
    ("Orchestrator", "PutDAG", own(Define)),
    ("Orchestrator", "RerunDAG", own(Operate)),
    ("Orchestrator", "ResolveCompensation", own(Operate)),
    ("Orchestrator", "ResumeDAG", own(Operate)),
    ("Orchestrator", "StartDAG", own(Submit)),
    ("Orchestrator", "WatchDAGRun", own(Look)),
    ("OutputPolicy", "CheckOutput", all(Judge)),
    ("Pools", "ActivateConfig", all(Govern)),
    ("Pools", "DrainWorker", all(Operate)),
    ("Pools", "GetConfig", all(LookAtRules)),
    ("Pools", "ListConfigs", all(LookAtRules)),
    ("Pools", "ListPools", all(Look)),
    ("Pools", "RollBackConfig", all(Govern)),
    ("Pools", "SetPoolState", all(Operate)),
    ("SafetyKernel", "Check", all(Check)),
    ("SafetyKernel", "CheckBatch", all(Judge)),
    ("SafetyKernel", "Explain", all(Explain)),
    ("SafetyKernel", "ListSnapshots", all(Explain)),
    ("SafetyKernel", "Simulate", all(Explain)),
    ("Scheduler", "CancelJob", own(Cancel)),
    ("Scheduler", "DiscardDeadLetter", own(Operate)),
    ("Scheduler", "ExplainJob", own(Look)),
    ("Scheduler", "GetJob", own(Look)),
    ("Scheduler", "GetJobLogs", own(SeePayloads)),
    ("Scheduler", "ListDeadLetters", own(Look)),
    ("Scheduler", "ListJobs", own(Look)),
    ("Scheduler", "ListQueues", all(Look)),
    ("Scheduler", "ListWorkers", all(Look)),
    ("Scheduler", "ReplayDeadLetters", own(Operate)),
    ("Scheduler", "RetryJob", own(Operate)),
    ("Scheduler", "SubmitJob", own(Submit)),
    ("Scheduler", "SubmitJobs", own(Submit)),
    ("Scheduler", "WatchJob", own(Look)),
    ("Scheduler", "WatchJobLogs", own(SeePayloads)),
    ("Schedules", "BackfillSchedule", own(Operate)),
    ("Schedules", "CancelBackfill", own(Operate)),
    ("Schedules", "GetSchedule", own(Look)),
    ("Schedules", "ListSchedules", own(Look)),
    ("Schedules", "ListSlots", own(Look)),
    ("Schedules", "PauseSchedule", own(Operate)),
    ("Schedules", "PutSchedules", own(Define)),
    ("Schedules", "RemoveSchedule", own(Define)),
    ("Schedules", "ResumeSchedule", own(Operate)),
    ("Schedules", "TriggerSchedule", own(Operate)),
    ("Worker", "Attach", all(Work)),
    ("Worker", "ListChildren", all(Work)),
    ("Worker", "SubmitChildren", all(Work)),
];

/// What autoscalers ask, in a package of their own: how much waits, and nothing about any job.
const SCALER: &str = "/externalscaler.ExternalScaler/";
const SCALER_METHODS: [&str; 4] = ["GetMetricSpec", "GetMetrics", "IsActive", "StreamIsActive"];

/// Methods that answer with a stream, and the routes that are the same.
const STREAMS: [&str; 7] = ["Attach", "StreamIsActive", "WatchDAGRun", "WatchJob", "WatchJobLogs", "events", "stream"];

/// Of those, where the request is a stream too.
const TALKS: [&str; 1] = ["Attach"];

/// Which method a route is: what it needs is said once.
const ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "/monitor/health", "Monitor/GetHealth"),
    ("GET", "/v1/approvals", "Approvals/ListApprovals"),
    ("GET", "/v1/audit", "Admin/ListAudit"),
    ("GET", "/v1/audit/verify", "Admin/VerifyAudit"),
    ("GET", "/v1/breakers", "Admin/ListBreakers"),
    ("GET", "/v1/config/{kind}", "Pools/GetConfig"),
    ("GET", "/v1/config/{kind}/snapshots", "Pools/ListConfigs"),
    ("GET", "/v1/config/{kind}/snapshots/{id}", "Pools/GetConfig"),
    ("GET", "/v1/credentials", "Access/ListCredentials"),
    ("GET", "/v1/dags", "Orchestrator/ListDAGs"),
    ("GET", "/v1/dags/{name}", "Orchestrator/GetDAG"),
    ("GET", "/v1/dead-letters", "Scheduler/ListDeadLetters"),
    ("GET", "/v1/dead-letters/{id}", "Scheduler/ListDeadLetters"),
    ("GET", "/v1/jobs", "Scheduler/ListJobs"),
    ("GET", "/v1/jobs/{id}", "Scheduler/GetJob"),
    ("GET", "/v1/jobs/{id}/events", "Scheduler/WatchJob"),
    ("GET", "/v1/jobs/{id}/logs", "Scheduler/GetJobLogs"),
    ("GET", "/v1/jobs/{id}/logs/stream", "Scheduler/WatchJobLogs"),
    ("GET", "/v1/jobs/{id}/why", "Scheduler/ExplainJob"),
    ("GET", "/v1/policy", "Admin/GetPolicy"),
    ("GET", "/v1/policy/snapshots", "Admin/ListPolicies"),
    ("GET", "/v1/policy/snapshots/{id}", "Admin/GetPolicy"),
    ("GET", "/v1/pools", "Pools/ListPools"),
    ("GET", "/v1/queues", "Scheduler/ListQueues"),
    ("GET", "/v1/runs", "Orchestrator/ListDAGRuns"),
    ("GET", "/v1/runs/{id}", "Orchestrator/GetDAGRun"),
    ("GET", "/v1/runs/{id}/events", "Orchestrator/WatchDAGRun"),
    ("GET", "/v1/runs/{id}/graph", "Orchestrator/GetDAGRun"),
    ("GET", "/v1/schedules", "Schedules/ListSchedules"),
    ("GET", "/v1/schedules/{name}", "Schedules/GetSchedule"),
    ("GET", "/v1/schedules/{name}/slots", "Schedules/ListSlots"),
    ("GET", "/v1/tenants", "Admin/ListTenants"),
    ("GET", "/v1/whoami", "Access/WhoAmI"),
    ("GET", "/v1/workers", "Scheduler/ListWorkers"),
    ("POST", "/v1/certificates", "Access/BindCertificate"),
    ("POST", "/v1/config/{kind}/rollback", "Pools/RollBackConfig"),
    ("POST", "/v1/credentials/{id}/revoke", "Access/RevokeCredential"),
    ("POST", "/v1/dags", "Orchestrator/PutDAG"),
    ("POST", "/v1/dead-letters/{id}/discard", "Scheduler/DiscardDeadLetter"),
    ("POST", "/v1/dead-letters/{id}/replay", "Scheduler/ReplayDeadLetters"),
    ("POST", "/v1/dead-letters:replay", "Scheduler/ReplayDeadLetters"),
    ("POST", "/v1/jobs", "Scheduler/SubmitJob"),
    ("POST", "/v1/jobs/{id}/approve", "Approvals/Approve"),
    ("POST", "/v1/jobs/{id}/cancel", "Scheduler/CancelJob"),
    ("POST", "/v1/jobs/{id}/reject", "Approvals/Reject"),
    ("POST", "/v1/jobs/{id}/release", "Approvals/ReleaseOutput"),
    ("POST", "/v1/jobs/{id}/retry", "Scheduler/RetryJob"),
    ("POST", "/v1/jobs:batch", "Scheduler/SubmitJobs"),
    ("POST", "/v1/keys", "Access/CreateKey"),
    ("POST", "/v1/keys/{id}/rotate", "Access/RotateKey"),
    ("POST", "/v1/policy/explain", "SafetyKernel/Explain"),
    ("POST", "/v1/policy/rollback", "Admin/RollBackPolicy"),
    ("POST", "/v1/pools/{pool}/drain", "Pools/SetPoolState"),
    ("POST", "/v1/pools/{pool}/pause", "Pools/SetPoolState"),
    ("POST", "/v1/pools/{pool}/resume", "Pools/SetPoolState"),
    ("POST", "/v1/runs", "Orchestrator/StartDAG"),
    ("POST", "/v1/runs/{id}/cancel", "Orchestrator/CancelDAG"),
    ("POST", "/v1/runs/{id}/pause", "Orchestrator/PauseDAG"),
    ("POST", "/v1/runs/{id}/rerun", "Orchestrator/RerunDAG"),
    ("POST", "/v1/runs/{id}/resolve", "Orchestrator/ResolveCompensation"),
    ("POST", "/v1/runs/{id}/resume", "Orchestrator/ResumeDAG"),
    ("POST", "/v1/schedules", "Schedules/PutSchedules"),
    ("POST", "/v1/schedules/{name}/backfills", "Schedules/BackfillSchedule"),
    ("POST", "/v1/schedules/{name}/backfills/{id}/cancel", "Schedules/CancelBackfill"),
    ("POST", "/v1/schedules/{name}/pause", "Schedules/PauseSchedule"),
    ("POST", "/v1/schedules/{name}/remove", "Schedules/RemoveSchedule"),
    ("POST", "/v1/schedules/{name}/resume", "Schedules/ResumeSchedule"),
    ("POST", "/v1/schedules/{name}/trigger", "Schedules/TriggerSchedule"),
    ("POST", "/v1/tenants/{tenant}/erase", "Admin/EraseTenant"),
    ("POST", "/v1/workers/{id}/drain", "Pools/DrainWorker"),
    ("PUT", "/v1/config/{kind}", "Pools/ActivateConfig"),
    ("PUT", "/v1/policy", "Admin/ActivatePolicy"),
];

/// Answered without a credential: whether the process lives and can work, and what the API looks like.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];
const OPEN_SERVICE: &str = "/grpc.health.v1.Health/";
const REFLECTION: [&str; 2] = ["/grpc.reflection.v1.ServerReflection/", "/grpc.reflection.v1alpha.ServerReflection/"];
const PACKAGE: &str = "/lockgate.v1.";

/// What a request turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestClass {
    /// For every client.
    Open,
    Needs(RequiredPermission),
    /// The path is known, its method is not. These are, as the header `Allow` names them.
    NoSuchMethod(&'static str),
    NoSuchPath,
}

pub(crate) fn of_grpc(path: &str) -> RequestClass {
    if path.starts_with(OPEN_SERVICE) {
        return RequestClass::Open;
    }
    if is_reflection(path) {
        return RequestClass::Needs(own(Enter));
    }
    if let Some(method) = path.strip_prefix(SCALER) {
        return if SCALER_METHODS.contains(&method) { RequestClass::Needs(all(Look)) } else { RequestClass::NoSuchPath };
    }
    let name = path.strip_prefix(PACKAGE).and_then(|rest| rest.split_once('/'));
    name.and_then(|(service, method)| method_need(service, method)).map_or(RequestClass::NoSuchPath, RequestClass::Needs)
}

pub(crate) fn of_rest(method: &Method, path: &str) -> RequestClass {
    if OPEN.contains(&path) || dashboard::has(path) {
        return RequestClass::Open;
    }
    // Axum answers HEAD with what answers GET.
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let (mut get, mut post, mut put) = (false, false, false);
    for (verb, _, name) in ROUTES.iter().filter(|(_, pattern, _)| fits(pattern, path)) {
        if *verb == method {
            let need = name.split_once('/').and_then(|(service, method)| method_need(service, method));
            return need.map_or(RequestClass::NoSuchPath, RequestClass::Needs);
        }
        match *verb {
            "GET" => get = true,
            "PUT" => put = true,
            _ => post = true,
        }
    }
    match (get, post, put) {
        (false, false, false) => RequestClass::NoSuchPath,
        (true, false, false) => RequestClass::NoSuchMethod("GET,HEAD"),
        (false, true, false) => RequestClass::NoSuchMethod("POST"),
        (false, false, true) => RequestClass::NoSuchMethod("PUT"),
        (true, true, false) => RequestClass::NoSuchMethod("GET,HEAD,POST"),
        (true, false, true) => RequestClass::NoSuchMethod("GET,HEAD,PUT"),
        (false, true, true) => RequestClass::NoSuchMethod("POST,PUT"),
        (true, true, true) => RequestClass::NoSuchMethod("GET,HEAD,POST,PUT"),
    }
}

/// The gRPC service whose method answers a route, as `needs` lists it.
pub(crate) fn service_of(method: &str, route: &str) -> Option<&'static str> {
    let (_, _, name) = ROUTES.iter().find(|(verb, pattern, _)| *verb == method && *pattern == route)?;
    name.split_once('/').map(|(service, _)| service)
}

fn is_reflection(path: &str) -> bool {
    REFLECTION.iter().any(|service| path.starts_with(service))
}

/// Whether the answer goes on until a side ends it: methods by their last part, routes by theirs.
pub(crate) fn goes_on(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    STREAMS.contains(&last) || is_reflection(path)
}

/// Whether the request goes on as well, for as long as the caller likes.
pub(crate) fn comes_on(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    TALKS.contains(&last) || is_reflection(path)
}

fn method_need(service: &str, method: &str) -> Option<RequiredPermission> {
    let at = METHODS.binary_search_by(|(of, name, _)| (*of, *name).cmp(&(service, method))).ok()?;
    Some(METHODS[at].2)
}

/// Part by part; a part in braces takes any text.
fn fits(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    pattern
        .split('/')
        .all(|wanted| parts.next().is_some_and(|part| wanted.starts_with('{') && !part.is_empty() || wanted == part))
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use lockgate_proto::v1;
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn every_method_of_every_service_has_an_entry_and_nothing_else_has() {
        let files = FileDescriptorSet::decode(v1::DESCRIPTORS).expect("descriptors");
        let services = files.file.iter().filter(|file| file.package() == "lockgate.v1").flat_map(|file| &file.service);
        let mut named: Vec<(&str, &str)> =
            services.flat_map(|service| service.method.iter().map(|method| (service.name(), method.name()))).collect();
        named.sort_unstable();
        let listed: Vec<(&str, &str)> = METHODS.iter().map(|(service, method, _)| (*service, *method)).collect();
        assert_eq!(listed, named, "in this order, for it is searched");
        let scalers = files.file.iter().filter(|file| file.package() == "externalscaler").flat_map(|file| &file.service);
        let mut asked: Vec<&str> = scalers.flat_map(|service| service.method.iter().map(|method| method.name())).collect();
        asked.sort_unstable();
        assert_eq!(asked, SCALER_METHODS);
    }

    #[test]
    fn every_stream_is_known_to_go_on() {
        let files = FileDescriptorSet::decode(v1::DESCRIPTORS).expect("descriptors");
        for service in files.file.iter().flat_map(|file| &file.service) {
            for method in &service.method {
                let path = format!("/lockgate.v1.{}/{}", service.name(), method.name());
                assert_eq!(goes_on(&path), method.server_streaming(), "{path}");
                assert_eq!(comes_on(&path), method.client_streaming(), "{path}");
            }
        }
        for (_, pattern, name) in ROUTES {
            let path = format!("/lockgate.v1.{name}");
            assert_eq!(goes_on(pattern), goes_on(&path), "{pattern} as {name}");
        }
    }

    #[test]
    fn every_route_is_a_method() {
        for (verb, pattern, name) in ROUTES {
            let path = pattern.replace(['{', '}'], "x");
            let verb = Method::from_bytes(verb.as_bytes()).expect("a method");
            assert!(matches!(of_rest(&verb, &path), RequestClass::Needs(_)), "{pattern} as {name}");
        }
    }

    #[test]
    fn what_is_not_listed_is_not_there() {
        assert_eq!(of_rest(&Method::DELETE, "/v1/jobs"), RequestClass::NoSuchMethod("GET,HEAD,POST"));
        assert_eq!(of_rest(&Method::GET, "/v1/keys"), RequestClass::NoSuchMethod("POST"));
        assert_eq!(of_rest(&Method::POST, "/v1/policy"), RequestClass::NoSuchMethod("GET,HEAD,PUT"));
        for path in
            ["/v1/jobs/", "/ui/", "/ui/views", "/v1/jobs//why", "/v1/jobs/a/b/c", "/v1//jobs", "/V1/jobs", "/metrics"]
        {
            assert_eq!(of_rest(&Method::GET, path), RequestClass::NoSuchPath, "{path}");
        }
        for path in ["/lockgate.v1.Scheduler/", "/lockgate.v1.Scheduler/Nothing", "/lockgate.v2.Scheduler/GetJob", "/x"] {
            assert_eq!(of_grpc(path), RequestClass::NoSuchPath, "{path}");
        }
        assert_eq!(of_grpc("/grpc.health.v1.Health/Check"), RequestClass::Open);
    }
}
