//! Quotas, ceilings, tenants: what clients are told, over both doors.

use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::admin_client::AdminClient;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::support::Server;

impl Server {
    async fn quotas(&self, text: &str) {
        let request = self.request("PUT", "/v1/config/quotas").header("content-type", "application/yaml");
        let reply = self.send(request, text.to_owned()).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    async fn admin(&self) -> AdminClient<tonic::transport::Channel> {
        AdminClient::new(self.channel().await)
    }
}

fn echo() -> Value {
    json!({ "topic": "job.echo", "payload": 1 })
}

#[tokio::test]
async fn who_is_too_fast_is_told_when_to_come_back_and_then_let_in() {
    let server = Server::start().await;
    server.quotas("defaults: {submit_rate: 2/m}\n").await;
    server.submit(echo()).await;
    server.submit(echo()).await;
    let reply = server.post("/v1/jobs", &echo()).await;
    reply.is_problem(429, "rate_limited");
    assert_eq!(reply.header("retry-after"), "30", "two a minute");
    let sent = server.grpc().await.submit_job(v1::SubmitJobRequest { job: Some(wire()) }).await.expect_err("too fast");
    assert_eq!(sent.code(), Code::ResourceExhausted);
    let again = sent.get_details_retry_info().and_then(|info| info.retry_delay).expect("told when");
    assert_eq!(again, Duration::from_secs(30));
    server.clock.advance(again);
    server.submit(echo()).await;
    assert_eq!(server.stored().await, 3, "what was refused was not stored");
}

#[tokio::test]
async fn who_is_too_fast_is_told_whose_rate_it_was() {
    let server = Server::start().await;
    server.quotas("defaults: {submit_rate: 3/m, actor_rate: 2/m}\n").await;
    let submit = async |actor: &str| {
        let request = server.request("POST", "/v1/jobs").header("content-type", "application/json");
        server.send(request.header("x-lockgate-actor", actor), echo().to_string()).await
    };
    assert_eq!((submit("ann").await.status, submit("ann").await.status), (201, 201));
    let own = submit("ann").await;
    own.is_problem(429, "rate_limited");
    assert!(own.text.contains("actor_rate") && own.text.contains("ann"), "the tenant may send one more: {own:?}");
    assert_eq!(submit("bob").await.status, 201);
    let all = submit("cleo").await;
    all.is_problem(429, "rate_limited");
    assert!(all.text.contains("submit_rate") && !all.text.contains("actor"), "she sent nothing herself: {all:?}");
    server.quotas("defaults: {actor_rate: 1/m}\n").await;
    assert_eq!(submit("dan").await.status, 201);
    let alone = submit("dan").await;
    assert!(alone.text.contains("actor_rate"), "there is no other rate: {alone:?}");
}

fn wire() -> v1::NewJob {
    v1::NewJob { topic: "job.echo".to_owned(), ..v1::NewJob::default() }
}

#[tokio::test]
async fn each_job_of_a_batch_is_let_in_alone() {
    let server = Server::start().await;
    server.quotas("tenants: {default: {jobs: 2}}\n").await;
    let reply = server.post("/v1/jobs:batch", &json!({ "jobs": [echo(), echo(), echo()] })).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let codes: Vec<&Value> = (0..3).map(|n| &reply.json["jobs"][n]["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &Value::Null, &json!("quota_exceeded")], "{reply:?}");
    assert!(reply.json["jobs"][2]["error"]["retry_after_ms"].as_u64().is_some_and(|wait| wait >= 1_000), "{reply:?}");
    let other = server.request("POST", "/v1/jobs").header("content-type", "application/json");
    let other = server.send(other.header("x-lockgate-tenant", "other"), echo().to_string()).await;
    assert_eq!(other.status, 201, "another tenant has its own: {other:?}");
}

#[tokio::test]
async fn quotas_are_put_in_force_looked_at_and_refused_like_other_configuration() {
    let server = Server::start().await;
    assert_eq!(server.get("/v1/config/quotas").await.json["snapshot"], "builtin:quotas");
    let request = server.request("PUT", "/v1/config/quotas").header("content-type", "application/yaml");
    let refused = server.send(request, "defaults: {job: 5}\n").await;
    refused.is_problem(400, "invalid_argument");
    assert!(refused.text.contains("did you mean \\\"jobs\\\"?"), "{refused:?}");
    server.quotas("defaults: {jobs: 5}\n").await;
    assert_eq!(server.get("/v1/config/quotas").await.json["text"], "defaults: {jobs: 5}\n");
}

#[tokio::test]
async fn tenants_are_listed_with_what_they_have_and_may_have() {
    let server = Server::start().await;
    server.quotas("defaults: {jobs: 5, submit_rate: 100/s}\n").await;
    server.submit(echo()).await;
    let listed = server.get("/v1/tenants").await.json;
    let expected = json!({ "name": "default", "jobs": 1, "ended": 0, "runs": 0, "stored_bytes": 1,
        "quota": { "jobs": 5, "submit_rate": "100/s" } });
    assert_eq!(listed["tenants"], json!([expected]), "{listed}");
    let grpc = server.admin().await.list_tenants(v1::ListTenantsRequest::default()).await.expect("listed").into_inner();
    assert_eq!((grpc.tenants[0].name.as_str(), grpc.tenants[0].jobs), ("default", 1));
    server.get("/v1/tenants?limit=0").await.is_problem(400, "invalid_argument");
}

#[tokio::test]
async fn a_tenant_is_erased_by_whoever_says_its_name_twice() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    server.post("/v1/tenants/default/erase", &json!({ "confirm": "defualt" })).await.is_problem(400, "invalid_argument");
    server
        .wait_for("everything is gone", async || {
            let reply = server.post("/v1/tenants/default/erase", &json!({ "confirm": "default" })).await;
            assert_eq!(reply.status, 200, "{reply:?}");
            reply.json["done"] == true
        })
        .await;
    server.get(&format!("/v1/jobs/{id}")).await.is_problem(404, "not_found");
    assert_eq!(server.stored().await, 0);
    let audit = server.get("/v1/audit?limit=1000").await.text;
    assert!(audit.contains("tenant_erased"), "{audit}");
}

#[tokio::test]
async fn the_idempotency_key_may_come_as_a_header() {
    let server = Server::start().await;
    let send = async |key: &str, body: Value| {
        let request = server.request("POST", "/v1/jobs").header("content-type", "application/json");
        server.send(request.header("Idempotency-Key", key), body.to_string()).await
    };
    let first = send("order-7", echo()).await;
    let second = send("order-7", echo()).await;
    assert_eq!((first.status, second.status, &first.json["job_id"]), (201, 200, &second.json["job_id"]));
    let named = json!({ "topic": "job.echo", "payload": 1, "idempotency_key": "order-7" });
    assert_eq!(send("order-7", named.clone()).await.status, 200, "the same key in both places");
    let differing = send("order-8", named).await;
    differing.is_problem(400, "invalid_argument");
    assert_eq!(differing.fields(), ["Idempotency-Key"]);
}

#[tokio::test]
async fn a_deadline_that_cannot_be_read_is_refused_and_one_that_can_is_kept() {
    let server = Server::start().await;
    let get = |value: &str| server.request("GET", "/v1/queues").header("x-lockgate-timeout-ms", value);
    server.send(get("soon"), "").await.is_problem(400, "invalid_argument");
    assert_eq!(server.send(get("60000"), "").await.status, 200);
}
