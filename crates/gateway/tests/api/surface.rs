//! Everything around the calls: unknown paths, health, reflection, description, metrics, shutdown.

use std::collections::BTreeSet;

use bytes::Bytes;
use lockgate_gateway::{GatewaySettings, REQUEST_BYTES_MAX};
use lockgate_proto::v1::WatchJobRequest;
use serde_json::json;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::support::{ScriptedWorker, Server, echo, hello};

#[tokio::test]
async fn http_errors_are_problem_documents_too() {
    let server = Server::start().await;
    server.get("/v1/nothing").await.is_problem(404, "no_such_route");
    let reply = server.send(server.request("DELETE", "/v1/jobs"), "").await;
    reply.is_problem(405, "method_not_allowed");
    let mut allowed: Vec<&str> = reply.header("allow").split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    let form = server.request("POST", "/v1/jobs").header("content-type", "application/x-www-form-urlencoded");
    server.send(form, echo().to_string()).await.is_problem(415, "unsupported_media_type");
    server.send(server.request("POST", "/v1/jobs"), echo().to_string()).await.is_problem(415, "unsupported_media_type");
    let charset = server.request("POST", "/v1/jobs").header("content-type", "application/json; charset=utf-8");
    assert_eq!(server.send(charset, echo().to_string()).await.status, 201);
}

#[tokio::test]
async fn a_body_over_the_cap_is_refused() {
    let server = Server::start().await;
    // Only announced: the answer must not wait for the bytes.
    let announced = server.request("POST", "/v1/jobs").header("content-type", "application/json");
    let announced = announced.header("content-length", REQUEST_BYTES_MAX + 1);
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let unending =
        http_body_util::StreamBody::new(futures::stream::pending::<Result<hyper::body::Frame<Bytes>, std::io::Error>>());
    let response = client.request(announced.body(unending).expect("a request")).await.expect("an answer");
    assert_eq!(response.status(), 413);

    let chunk = Bytes::from(vec![b' '; 1024 * 1024]);
    let chunks = (0..40).map(move |_| Ok::<_, std::io::Error>(hyper::body::Frame::data(chunk.clone())));
    let body = http_body_util::StreamBody::new(futures::stream::iter(chunks));
    let client =
        hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).http2_only(true).build_http();
    let request = server.request("POST", "/v1/jobs").header("content-type", "application/json").body(body);
    let response = client.request(request.expect("a request")).await.expect("an answer");
    assert_eq!(response.status(), 413);
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn a_web_page_that_leads_its_own_name_here_is_turned_away() {
    let server = Server::start().await;
    let with = |name: &str, value: &str| server.request("GET", "/v1/jobs").header(name, value);
    server.send(with("host", "evil.example"), "").await.is_problem(421, "wrong_host");
    server.send(with("origin", "http://evil.example"), "").await.is_problem(403, "wrong_origin");
    for (name, value) in [("host", "localhost:1"), ("origin", "http://localhost:3000")] {
        assert_eq!(server.send(with(name, value), "").await.status, 200, "{name}: {value}");
    }
    for (name, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
        let call = server.request("POST", "/lockgate.v1.Scheduler/ListQueues").header("content-type", "application/grpc");
        let reply = server.send(call.header(name, value), "").await;
        let denied = (Code::PermissionDenied as i32).to_string();
        assert_eq!((reply.status, reply.header("grpc-status")), (200, denied.as_str()), "{name}");
    }

    let open = Server::start_with(GatewaySettings { any_host: true, ..GatewaySettings::default() }).await;
    let request = open.request("GET", "/v1/jobs").header("host", "jobs.example").header("origin", "http://ui.example");
    assert_eq!(open.send(request, "").await.status, 200);
}

#[tokio::test]
async fn health_and_readiness_answer_on_both_doors() {
    let server = Server::start().await;
    assert_eq!(server.get("/healthz").await.json, json!({ "status": "alive" }));
    server.wait_for("it is up", async || server.get("/readyz").await.json == json!({ "status": "ready" })).await;
    let mut health = HealthClient::new(server.channel().await);
    for service in ["", "lockgate.v1.Scheduler", "lockgate.v1.Worker", "lockgate.v1.Pools", "lockgate.v1.SafetyKernel"] {
        let check = health.check(HealthCheckRequest { service: service.to_owned() }).await.expect("an answer");
        assert_eq!(check.into_inner().status(), ServingStatus::Serving, "{service:?}");
    }
}

#[tokio::test]
async fn reflection_knows_every_service() {
    let server = Server::start().await;
    let ask =
        ServerReflectionRequest { host: String::new(), message_request: Some(MessageRequest::ListServices(String::new())) };
    let mut client = ServerReflectionClient::new(server.channel().await);
    let mut answers = client.server_reflection_info(futures::stream::iter([ask])).await.expect("an answer").into_inner();
    let answer: Option<ServerReflectionResponse> = answers.message().await.expect("an unbroken stream");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.and_then(|answer| answer.message_response) else {
        panic!("a list of services")
    };
    let mut names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    let expected = [
        "externalscaler.ExternalScaler",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "lockgate.v1.Access",
        "lockgate.v1.Admin",
        "lockgate.v1.Approvals",
        "lockgate.v1.Monitor",
        "lockgate.v1.Orchestrator",
        "lockgate.v1.OutputPolicy",
        "lockgate.v1.Pools",
        "lockgate.v1.SafetyKernel",
        "lockgate.v1.Scheduler",
        "lockgate.v1.Schedules",
        "lockgate.v1.Worker",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn clients_of_the_old_reflection_are_answered() {
    use tonic_reflection::pb::v1alpha::ServerReflectionRequest;
    use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1alpha::server_reflection_response::MessageResponse;

    let server = Server::start().await;
    let wanted = MessageRequest::FileContainingSymbol("lockgate.v1.Scheduler".to_owned());
    let ask = ServerReflectionRequest { host: String::new(), message_request: Some(wanted) };
    let mut client = ServerReflectionClient::new(server.channel().await);
    let mut answers = client.server_reflection_info(futures::stream::iter([ask])).await.expect("an answer").into_inner();
    let answer = answers.message().await.expect("an unbroken stream").and_then(|answer| answer.message_response);
    assert!(matches!(answer, Some(MessageResponse::FileDescriptorResponse(_))), "{answer:?}");
}

#[tokio::test]
async fn a_body_in_another_coding_is_refused_by_name() {
    let server = Server::start().await;
    let json = || server.request("POST", "/v1/jobs").header("content-type", "application/json");
    let reply = server.send(json().header("content-encoding", "gzip"), &b"\x1f\x8b\x08"[..]).await;
    reply.is_problem(415, "unsupported_content_coding");
    assert!(reply.text.contains("gzip"), "{reply:?}");
    let plain = server.send(json().header("content-encoding", "identity"), echo().to_string()).await;
    assert_eq!(plain.status, 201, "{plain:?}");
}

#[tokio::test]
async fn an_unknown_grpc_method_is_unimplemented() {
    let server = Server::start().await;
    let request = server.request("POST", "/lockgate.v1.Nobody/Nothing").header("content-type", "application/grpc");
    let reply = server.send(request, "").await;
    assert_eq!((reply.status, reply.header("grpc-status")), (200, (Code::Unimplemented as i32).to_string().as_str()));
}

const ROUTES: [&str; 74] = [
    "get /healthz",
    "get /monitor/health",
    "get /readyz",
    "get /v1/approvals",
    "get /v1/audit",
    "get /v1/audit/verify",
    "get /v1/breakers",
    "get /v1/config/{kind}",
    "get /v1/config/{kind}/snapshots",
    "get /v1/config/{kind}/snapshots/{id}",
    "get /v1/credentials",
    "get /v1/dags",
    "get /v1/dags/{name}",
    "get /v1/dead-letters",
    "get /v1/dead-letters/{id}",
    "get /v1/jobs",
    "get /v1/jobs/{id}",
    "get /v1/jobs/{id}/events",
    "get /v1/jobs/{id}/logs",
    "get /v1/jobs/{id}/logs/stream",
    "get /v1/jobs/{id}/why",
    "get /v1/policy",
    "get /v1/policy/snapshots",
    "get /v1/policy/snapshots/{id}",
    "get /v1/pools",
    "get /v1/queues",
    "get /v1/runs",
    "get /v1/runs/{id}",
    "get /v1/runs/{id}/events",
    "get /v1/runs/{id}/graph",
    "get /v1/schedules",
    "get /v1/schedules/{name}",
    "get /v1/schedules/{name}/slots",
    "get /v1/tenants",
    "get /v1/whoami",
    "get /v1/workers",
    "post /v1/certificates",
    "post /v1/config/{kind}/rollback",
    "post /v1/credentials/{id}/revoke",
    "post /v1/dags",
    "post /v1/dead-letters/{id}/discard",
    "post /v1/dead-letters/{id}/replay",
    "post /v1/dead-letters:replay",
    "post /v1/jobs",
    "post /v1/jobs/{id}/approve",
    "post /v1/jobs/{id}/cancel",
    "post /v1/jobs/{id}/reject",
    "post /v1/jobs/{id}/release",
    "post /v1/jobs/{id}/retry",
    "post /v1/jobs:batch",
    "post /v1/keys",
    "post /v1/keys/{id}/rotate",
    "post /v1/policy/explain",
    "post /v1/policy/rollback",
    "post /v1/pools/{pool}/drain",
    "post /v1/pools/{pool}/pause",
    "post /v1/pools/{pool}/resume",
    "post /v1/runs",
    "post /v1/runs/{id}/cancel",
    "post /v1/runs/{id}/pause",
    "post /v1/runs/{id}/rerun",
    "post /v1/runs/{id}/resolve",
    "post /v1/runs/{id}/resume",
    "post /v1/schedules",
    "post /v1/schedules/{name}/backfills",
    "post /v1/schedules/{name}/backfills/{id}/cancel",
    "post /v1/schedules/{name}/pause",
    "post /v1/schedules/{name}/remove",
    "post /v1/schedules/{name}/resume",
    "post /v1/schedules/{name}/trigger",
    "post /v1/tenants/{tenant}/erase",
    "post /v1/workers/{id}/drain",
    "put /v1/config/{kind}",
    "put /v1/policy",
];

#[tokio::test]
async fn the_description_lists_every_route() {
    let server = Server::start().await;
    let reply = server.get("/openapi.json").await;
    assert_eq!((reply.status, &reply.json["openapi"]), (200, &json!("3.1.0")));
    let paths = reply.json["paths"].as_object().expect("paths");
    let mut listed: Vec<String> = Vec::new();
    // Generators name functions after these.
    let mut ids = BTreeSet::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().expect("operations") {
            listed.push(format!("{method} {path}"));
            assert!(ids.insert(operation["operationId"].as_str()), "{method} {path} has an id of its own");
            assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{method} {path}");
            let responses = operation["responses"].as_object().expect("responses");
            for (status, response) in responses {
                assert_ne!(response["description"].as_str().unwrap_or_default(), "", "{method} {path}: {status}");
            }
            assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path} says how it succeeds");
            assert!(responses.contains_key("default"), "{method} {path} says how it fails");
        }
    }
    listed.sort();
    assert_eq!(listed, ROUTES);
}

#[tokio::test]
async fn every_reference_of_the_description_leads_somewhere() {
    let server = Server::start().await;
    let reply = server.get("/openapi.json").await;
    let references: Vec<&str> =
        reply.text.split("\"$ref\":\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(references.contains(&"Problem") && references.contains(&"Job"), "{references:?}");
    for name in references {
        assert!(reply.json["components"]["schemas"].get(name).is_some(), "{name} is not described");
    }
    let sent = &reply.json["components"]["schemas"]["NewJob"];
    assert_eq!(sent["additionalProperties"], false, "{sent}");
}

#[tokio::test]
async fn metrics_are_served_on_their_own_port() {
    let server = Server::start().await;
    server.submit(echo()).await;
    let address = server.metrics(GatewaySettings::default()).await;
    let at = |path: &str| http::Request::builder().uri(format!("http://{address}{path}"));
    let plain = server.send(at("/metrics"), "").await;
    assert!(plain.header("content-type").starts_with("text/plain; version=0.0.4"), "{plain:?}");
    assert!(plain.text.contains("# TYPE lockgate_tasks_enqueued_total counter"), "{plain:?}");
    let reply = server.send(at("/metrics").header("accept", "application/openmetrics-text;version=1.0.0"), "").await;
    assert!(reply.header("content-type").starts_with("application/openmetrics-text"), "{reply:?}");
    assert!(reply.text.contains("lockgate_tasks_enqueued_total{priority=\"default\"} 1"), "{reply:?}");
    assert!(reply.text.ends_with("# EOF\n"));
    assert_eq!(server.send(at("/healthz"), "").await.status, 200);
    server.send(at("/v1/jobs"), "").await.is_problem(404, "no_such_route");
}

#[tokio::test]
async fn shutdown_ends_open_streams_and_does_not_wait_for_them() {
    let server = Server::start().await;
    let id = server.submit(json!({ "topic": "other" })).await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let mut events = server.events(&id, None).await;
    let watch = WatchJobRequest { job_id: id, after: 0 };
    let mut watch = server.grpc().await.watch_job(watch).await.expect("found").into_inner();

    let mut health = HealthClient::new(server.channel().await).watch(HealthCheckRequest::default()).await;
    let health = health.as_mut().expect("an answer").get_mut();
    let said = health.message().await.expect("an unbroken stream").expect("a status");
    assert_eq!(said.status(), ServingStatus::Serving);

    server.stop().await;
    let said = health.message().await.expect("an unbroken stream").expect("a status");
    assert_eq!(said.status(), ServingStatus::NotServing);
    assert_eq!(worker.next().await.expect("a clean end"), None);
    while events.next().await.is_some() {}
    while watch.message().await.expect("a clean end").is_some() {}
}
