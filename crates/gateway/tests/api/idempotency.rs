//! One key, one job.

use std::sync::Arc;

use lockgate_proto::v1;
use serde_json::json;
use tonic::Code;

use crate::support::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_submits_with_one_key_make_one_job() {
    let server = Arc::new(Server::start().await);
    let job = json!({ "topic": "job.echo", "payload": 1, "idempotency_key": "order-7" });
    let submits = (0..100).map(|_| {
        let (server, job) = (server.clone(), job.clone());
        tokio::spawn(async move { server.post("/v1/jobs", &job).await })
    });
    let submits: Vec<_> = submits.collect();
    let mut replies = Vec::new();
    for submit in submits {
        replies.push(submit.await.expect("no panic"));
    }
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 99);
    let mut ids: Vec<&str> = replies.iter().filter_map(|reply| reply.json["job_id"].as_str()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(server.stored().await, 1);
}

#[tokio::test]
async fn the_same_key_with_another_payload_is_a_conflict_that_names_the_first_job() {
    let server = Server::start().await;
    let job = |payload: u32| json!({ "topic": "job.echo", "payload": payload, "idempotency_key": "order-7" });
    let first = server.submit(job(1)).await;
    let reply = server.post("/v1/jobs", &job(2)).await;
    reply.is_problem(409, "idempotency_conflict");
    assert!(reply.json["detail"].as_str().is_some_and(|detail| detail.contains(&first)), "{reply:?}");

    let wire = v1::NewJob { topic: "job.x".into(), idempotency_key: "order-7".into(), ..v1::NewJob::default() };
    let request = v1::SubmitJobRequest { job: Some(wire) };
    let status = server.grpc().await.submit_job(request).await.expect_err("refused");
    assert_eq!(status.code(), Code::AlreadyExists);
    assert!(status.message().contains(&first), "{status:?}");
    assert_eq!(server.stored().await, 1);
}

#[tokio::test]
async fn a_chosen_id_is_a_key_too_and_keys_are_per_tenant() {
    let server = Server::start().await;
    let job = json!({ "topic": "job.echo", "job_id": "mine" });
    assert_eq!(server.post("/v1/jobs", &job).await.status, 201);
    let again = server.post("/v1/jobs", &job).await;
    assert_eq!((again.status, &again.json["existing"]), (200, &json!(true)));
    server
        .post("/v1/jobs", &json!({ "topic": "job.other", "job_id": "mine" }))
        .await
        .is_problem(409, "idempotency_conflict");

    let keyed = json!({ "topic": "job.echo", "idempotency_key": "k" }).to_string();
    for tenant in ["one", "two"] {
        let request = server.request("POST", "/v1/jobs").header("content-type", "application/json");
        let reply = server.send(request.header("x-lockgate-tenant", tenant), keyed.clone()).await;
        assert_eq!(reply.status, 201, "{reply:?}");
    }
}
