//! Every reason for which a job may wait is reached from outside, and told by `why`.

use std::time::Duration;

use lockgate_proto::v1::{self, Beat, WorkerMessage};
use serde_json::json;

use crate::support::{POLICY, ScriptedWorker, Server, hello};

fn of_pool(session: &str, pool: &str) -> v1::Hello {
    v1::Hello { pool: pool.to_owned(), worker_id: session.to_owned(), ..hello(session) }
}

#[tokio::test]
async fn no_pool_mapping_is_told_with_the_tries_and_ends_the_job_when_they_are_used_up() {
    let server = Server::with_pools().await;
    let id = server.submit(json!({ "topic": "job.unheard" })).await;
    let why = server.why_until(&id, |why| why["tries_max"] == 50).await;
    assert_eq!((&why["state"], &why["reason"], &why["tries"]), (&json!("SCHEDULED"), &json!("no_pool_mapping"), &json!(0)));
    assert!(why["next_step"].as_str().is_some_and(|text| text.contains("pools.yaml")), "{why}");
    let queues = server.get("/v1/queues").await.json;
    assert_eq!(queues["queues"][0]["pool"], "", "no pool may take it: {queues}");

    // Each wait has up to half a second on top.
    server.clock.advance(Duration::from_secs(4));
    assert_eq!(server.why(&id).await["tries"], 2, "after one second, and after two more");
    // Five doubling steps and 45 of half a minute.
    server.clock.advance(Duration::from_secs(2 + 3 + 5 + 9 + 17 + 45 * 30));
    server.job_in(&id, "FAILED").await;
    let letter = server.get(&format!("/v1/dead-letters/{id}")).await.json;
    assert_eq!(letter["reason"], "no_pool_mapping", "{letter}");
}

#[tokio::test]
async fn no_workers_is_told_with_what_each_worker_lacks() {
    let server = Server::with_pools().await;
    let id = server.submit(json!({ "topic": "job.echo", "requires": ["gpu"] })).await;
    let why = server.why_of(&id, "no_workers").await;
    assert_eq!(why["pools"][0]["workers"], json!([]), "{why}");
    let _worker = ScriptedWorker::attach(&server, of_pool("s-1", "echo")).await;
    let why = server.why_of(&id, "no_workers").await;
    let lacking = json!({ "worker_id": "s-1", "verdict": "missing_capability:gpu", "free_slots": 8 });
    assert_eq!(why["pools"][0]["workers"], json!([lacking]), "{why}");
    assert_eq!(why["pools"][1]["pool"], "spare", "the whole route is shown: {why}");
}

#[tokio::test]
async fn pool_overloaded_is_told_when_every_fitting_worker_is_too_busy_to_be_asked() {
    let server = Server::with_pools().await;
    let mut worker = ScriptedWorker::attach(&server, of_pool("s-1", "scan")).await;
    let beat = Beat { number: 1, active_jobs: 0, cpu_load: Some(97), memory_load: Some(40), ..Beat::default() };
    worker.send(WorkerMessage { beat: Some(beat), ..WorkerMessage::default() });
    worker.until(|message| message.beat_ack).await;
    let workers = server.get("/v1/workers").await.json;
    let load = ["cpu_load", "memory_load", "gpu_utilization"].map(|field| workers["workers"][0][field].clone());
    assert_eq!(load, [json!(97), json!(40), json!(null)], "{workers}");

    let id = server.submit(json!({ "topic": "job.scan" })).await;
    let why = server.why_of(&id, "pool_overloaded").await;
    assert_eq!(why["pools"][0]["workers"][0]["verdict"], "overloaded:cpu", "{why}");
    assert_eq!(why.get("tries"), None, "who is overloaded will not always be: {why}");
}

#[tokio::test]
async fn tenant_limit_is_told_with_the_limit_that_is_full() {
    let server = Server::with_pools().await;
    let mut worker = ScriptedWorker::attach(&server, of_pool("s-1", "one")).await;
    server.submit(json!({ "topic": "job.one" })).await;
    worker.assignment().await;
    let id = server.submit(json!({ "topic": "job.one" })).await;
    let why = server.why_of(&id, "tenant_limit").await;
    let limit = json!({ "name": "tenant/one/default", "max": 1, "held": 1, "full": true });
    assert_eq!(why["limits"], json!([limit]), "{why}");
    let mut grpc = server.grpc().await;
    let explained = grpc.explain_job(v1::ExplainJobRequest { job_id: id }).await.expect("found").into_inner();
    assert_eq!((explained.reason.as_str(), explained.pools[0].pool.as_str()), ("tenant_limit", "one"));
    assert_eq!((explained.limits[0].held, explained.limits[0].full), (1, true));

    let request = server.request("POST", "/v1/jobs").header("content-type", "application/json");
    let reply = server.send(request.header("x-lockgate-tenant", "acme"), r#"{"topic":"job.one"}"#).await;
    assert_eq!(
        worker.assignment().await.job_id,
        reply.json["job_id"].as_str().expect("accepted"),
        "another tenant has room"
    );
}

#[tokio::test]
async fn safety_denied_is_told_with_what_would_help() {
    let server = Server::start().await;
    server.apply(POLICY).await;
    let id = server.submit(json!({ "topic": "job.forbidden" })).await;
    let why = server.why(&id).await;
    assert_eq!((&why["reason"], &why["state"]), (&json!("safety_denied"), &json!("DENIED")), "{why}");
    assert_eq!(why["next_step"], "Use the safe one", "{why}");
}

#[tokio::test]
async fn dispatch_failed_is_told_when_a_job_was_sent_and_never_started() {
    let server = Server::start().await;
    server.configure("timeouts", "defaults: {dispatch: 2s}\n").await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit(json!({ "topic": "job.echo" })).await;
    worker.assignment().await;
    assert_eq!(server.why(&id).await["reason"], "dispatched");
    // Long enough to start, too short to count as silent; the next attempt is due later and this clock stands still.
    server.clock.advance(Duration::from_secs(3));
    let why = server.why_of(&id, "dispatch_failed").await;
    assert_eq!(why["state"], "SCHEDULED", "{why}");
    assert!(why["next_at"].is_string(), "{why}");
}

#[tokio::test]
async fn limits_of_rates_and_keys_are_told_apart() {
    let server = Server::with_pools().await;
    let mut worker = ScriptedWorker::attach(&server, of_pool("s-1", "spare")).await;
    server.submit(json!({ "topic": "job.mail" })).await;
    worker.assignment().await;
    let mail = server.submit(json!({ "topic": "job.mail" })).await;
    let why = server.why_of(&mail, "rate_limited").await;
    assert_eq!(why["next_at"], why["limits"][0]["again_at"], "{why}");

    server
        .configure(
            "pools",
            "topics: {job.*: spare}\npools: {spare: {}}\nlimits:\n  - {name: locks, per: [key], max_concurrent: 1}\n",
        )
        .await;
    server.submit(json!({ "topic": "job.deploy", "concurrency_key": "prod" })).await;
    worker.assignment().await;
    let second = server.submit(json!({ "topic": "job.deploy", "concurrency_key": "prod" })).await;
    let why = server.why_of(&second, "limit_full").await;
    assert_eq!(why["limits"][0]["name"], "limit/locks/prod", "{why}");
    let other = server.submit(json!({ "topic": "job.deploy", "concurrency_key": "test" })).await;
    worker.until(|message| message.assignments.into_iter().find(|assignment| assignment.job_id == other)).await;
}

#[tokio::test]
async fn pools_that_a_job_or_the_policy_rules_out_are_told_apart() {
    let server = Server::with_pools().await;
    let labels = json!({ "preferred_pool": "scan" });
    let id = server.submit(json!({ "topic": "job.echo", "labels": labels })).await;
    server.why_of(&id, "preferred_pool_not_mapped").await;

    let policy = "version: 1\ndefault: {decision: allow}\nrules:\n  - {id: away, match: {topics: [job.echo]}, \
                  decision: allow_with_constraints, reason: r, constraints: {allowed_pools: [scan], max_concurrent: 3}}\n";
    server.apply(policy).await;
    let id = server.submit(json!({ "topic": "job.echo" })).await;
    server.why_of(&id, "no_allowed_pool").await;
    let job = server.job(&id).await;
    assert_eq!(job["verdict"]["constraints"], json!({ "allowed_pools": ["scan"], "max_concurrent": 3 }));
}
