//! Names, defaults and shapes of the requirement documents, from outside.

use lockgate_proto::v1;
use serde_json::{Value, json};

use crate::support::Server;

/// Ids of the dead letters that a filter finds.
async fn dead(server: &Server, filter: &str) -> Vec<Value> {
    let reply = server.get(&format!("/v1/dead-letters?{filter}")).await;
    assert_eq!(reply.status, 200, "{filter}: {reply:?}");
    let letters = reply.json["dead_letters"].as_array().expect("a list");
    letters.iter().map(|letter| letter["job_id"].clone()).collect()
}

#[tokio::test]
async fn dead_letters_are_found_by_the_six_reason_codes() {
    let server = Server::governed().await;
    server.submit(json!({ "topic": "job.forbidden", "job_id": "refused" })).await;
    let letter = server.get("/v1/dead-letters/refused").await.json;
    assert_eq!((&letter["reason"], &letter["state"]), (&json!("safety_denied"), &json!("DENIED")));
    assert_eq!(dead(&server, "reason=safety_denied").await, ["refused"]);
    assert_eq!(dead(&server, "reason=denied").await, ["refused"], "as it was called before");
    for other in ["no_pool_mapping", "no_workers", "pool_overloaded", "tenant_limit", "dispatch_failed"] {
        assert!(dead(&server, &format!("reason={other}")).await.is_empty(), "{other}");
    }
    server.get("/v1/dead-letters?reason=tired").await.is_problem(400, "invalid_argument");
    let replay = server.post("/v1/dead-letters:replay", &json!({ "reason": "safety_denied", "dry_run": true })).await;
    assert_eq!(replay.json["matched"], 1, "{replay:?}");
    let filter = v1::DeadLetterFilter { reason: "safety_denied".into(), ..v1::DeadLetterFilter::default() };
    let request = v1::ListDeadLettersRequest { filter: Some(filter), ..v1::ListDeadLettersRequest::default() };
    let listed = server.grpc().await.list_dead_letters(request).await.expect("listed").into_inner();
    assert_eq!(listed.dead_letters[0].reason, "safety_denied");
}

#[tokio::test]
async fn jobs_are_listed_by_trace() {
    let server = Server::start().await;
    for (id, trace) in [("a", "t-1"), ("b", "t-2"), ("c", "t-1")] {
        server.submit(json!({ "topic": "job.echo", "job_id": id, "trace_id": trace })).await;
    }
    let listed = server.get("/v1/jobs?trace=t-1").await.json;
    let ids: Vec<&Value> = listed["jobs"].as_array().expect("a list").iter().map(|job| &job["job_id"]).collect();
    assert_eq!(ids, ["c", "a"]);
    let request = v1::ListJobsRequest { trace_id: "t-2".into(), ..v1::ListJobsRequest::default() };
    let listed = server.grpc().await.list_jobs(request).await.expect("listed").into_inner();
    assert_eq!(listed.jobs.len(), 1);
    assert_eq!(listed.jobs[0].job_id, "b");
}
