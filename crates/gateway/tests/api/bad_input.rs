//! What is refused: each with a clear error, and nothing stored.

use lockgate_core::limits::PAYLOAD_BYTES_MAX;
use lockgate_proto::v1;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::{ScriptedWorker, Server, echo, hello, succeeded};

/// What was sent, and which field must be named.
fn bad_jobs() -> Vec<(Value, &'static str)> {
    let with = |field: &str, value: Value| {
        let mut job = echo();
        job[field] = value;
        job
    };
    vec![
        (json!({}), "topic"),
        (json!([]), "body"),
        (with("colour", json!("red")), "colour"),
        (with("payload", json!("x".repeat(PAYLOAD_BYTES_MAX))), "payload"),
        (with("priority", json!("urgent")), "priority"),
        (with("topic", json!("not a topic")), "topic"),
        (with("topic", json!("")), "topic"),
        (with("topic", json!(7)), "topic"),
        (with("job_id", json!("a/b")), "job_id"),
        (with("max_attempts", json!(-1)), "max_attempts"),
        (with("max_attempts", json!(0)), "max_attempts"),
        (with("timeout_ms", json!(-5)), "timeout_ms"),
        (with("timeout_ms", json!(1.5)), "timeout_ms"),
        (with("deadline_ms", json!(0)), "deadline_ms"),
        (with("not_before", json!("tomorrow")), "not_before"),
        (with("not_before", json!(5)), "not_before"),
        (with("labels", json!({ "_platform": "x" })), "labels"),
        (with("labels", json!({ "a": 1 })), "labels.a"),
        (with("requires", json!(["a b"])), "requires"),
        (with("capability", json!("to pay")), "capability"),
        (with("risk_tags", json!(["much money"])), "risk_tags"),
        (with("workflow_id", json!("w 1")), "workflow_id"),
        (with("compensation", json!({ "topic": "undo" })), "compensation"),
    ]
}

#[tokio::test]
async fn a_bad_job_is_refused_with_the_field_named_and_nothing_is_stored() {
    let server = Server::start().await;
    for (job, field) in bad_jobs() {
        let reply = server.post("/v1/jobs", &job).await;
        reply.is_problem(400, "invalid_argument");
        let named = reply.fields().contains(&field);
        assert!(named && !reply.text.contains("JobBody"), "{field} is not named in {reply:?}");
    }
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn a_bad_job_in_a_batch_is_refused_alone() {
    let server = Server::start().await;
    let bad = bad_jobs();
    let mut jobs: Vec<Value> = bad.iter().map(|(job, _)| job.clone()).collect();
    jobs.insert(0, json!({ "topic": "job.x", "job_id": "first" }));
    jobs.push(json!({ "topic": "job.x", "job_id": "last" }));
    let reply = server.post("/v1/jobs:batch", &json!({ "jobs": jobs })).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let items = reply.json["jobs"].as_array().expect("a list");
    assert_eq!(items.len(), jobs.len());
    assert_eq!((&items[0]["job_id"], &items[jobs.len() - 1]["job_id"]), (&json!("first"), &json!("last")));
    for ((job, field), item) in bad.iter().zip(&items[1..]) {
        assert_eq!(item["error"]["code"], "invalid_argument", "{item}");
        assert!(item["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{item}");
        let named = item["error"]["errors"].as_array().is_some_and(|all| all.iter().any(|e| e["field"] == *field));
        assert!(named, "{field} is not named in {item} for {job}");
    }
    assert_eq!(server.stored().await, 2);
}

#[tokio::test]
async fn every_bad_field_is_told_at_once() {
    let server = Server::start().await;
    let job = json!({ "topic": "a b", "job_id": "-", "max_attempts": 0, "timeout_ms": 0 });
    let reply = server.post("/v1/jobs", &job).await;
    assert_eq!(reply.fields(), ["topic", "job_id", "max_attempts", "timeout_ms"], "{reply:?}");
}

#[tokio::test]
async fn a_body_that_is_not_json_text_is_refused_with_the_place() {
    let server = Server::start().await;
    let cases: [(&[u8], &str, &str); 5] = [
        (b"{\"topic\": ", "invalid_json", "line 1 column 10"),
        (b"{\"topic\": \"job.x\"} x", "invalid_json", "column 20"),
        (b"", "invalid_json", "missing"),
        (b"{\"topic\": \"job.\xff\"}", "invalid_utf8", "byte 15"),
        (b"{\"topic\": \"job.x\", \"payload\": {\"a\": tru}}", "invalid_json", "column"),
    ];
    for (body, code, place) in cases {
        let reply = server.post_text("/v1/jobs", body.to_vec()).await;
        reply.is_problem(400, code);
        let detail = reply.json["detail"].as_str().expect("a detail");
        assert!(detail.contains(place), "{place:?} is not in {detail:?}");
    }
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn a_batch_that_is_empty_too_long_or_no_list_is_refused_whole() {
    let server = Server::start().await;
    let jobs = |n: usize| json!({ "jobs": vec![json!({ "topic": "job.noop" }); n] });
    for (batch, field) in [
        (jobs(0), "jobs"),
        (jobs(10_001), "jobs"),
        (json!({}), "jobs"),
        (json!({ "jobs": { "topic": "job.x" } }), "jobs"),
        (json!({ "jobs": [{ "topic": "job.x" }], "colour": 1 }), "colour"),
    ] {
        let reply = server.post("/v1/jobs:batch", &batch).await;
        reply.is_problem(400, "invalid_argument");
        assert!(reply.fields() == [field], "{field} is not named in {reply:?}");
    }
    let cut_off = server.post_text("/v1/jobs:batch", r#"{"jobs":[{"topic":"job.x"},{"topic":"#).await;
    cut_off.is_problem(400, "invalid_json");
    assert_eq!(server.stored().await, 0);
    let reply = server.post("/v1/jobs:batch", &jobs(10_000)).await;
    assert_eq!(reply.status, 200);
    assert_eq!(server.stored().await, 10_000);
}

#[tokio::test]
async fn unknown_parameters_and_bad_values_are_refused() {
    let server = Server::start().await;
    for (path, field) in [
        ("/v1/jobs?colour=red", "query"),
        ("/v1/jobs?state=TIRED", "state"),
        ("/v1/jobs?limit=0", "limit"),
        ("/v1/jobs?limit=1001", "limit"),
        ("/v1/jobs?limit=-1", "limit"),
        ("/v1/jobs?cursor=zz", "cursor"),
        ("/v1/jobs?label=x", "label"),
        ("/v1/jobs?topic=a&topic=b", "topic"),
        ("/v1/dead-letters?state=FAILED", "query"),
        ("/v1/dead-letters?priority=urgent", "priority"),
        ("/v1/dead-letters?reason=tired", "reason"),
        ("/v1/dead-letters?label=a", "label"),
        ("/v1/jobs/x/events?after=-1", "after"),
        ("/v1/queues?colour=red", "query"),
        ("/v1/workers?tenant=acme", "query"),
        ("/v1/workers?label=gpu", "label"),
    ] {
        let reply = server.get(path).await;
        reply.is_problem(400, "invalid_argument");
        assert_eq!(reply.fields(), [field], "{path}: {reply:?}");
    }
    let reply = server.get("/v1/jobs?state=TIRED&limit=x&label=y").await;
    assert_eq!(reply.fields(), ["state", "label", "limit"], "{reply:?}");
}

#[tokio::test]
async fn bad_bodies_of_other_calls_are_refused() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    for (path, body) in [
        (format!("/v1/jobs/{id}/cancel"), json!({ "why": "x" })),
        (format!("/v1/dead-letters/{id}/replay"), json!({ "force": true })),
        ("/v1/dead-letters:replay".to_owned(), json!({ "state": "FAILED" })),
        ("/v1/dead-letters:replay".to_owned(), json!({ "rate": 0 })),
        ("/v1/dead-letters:replay".to_owned(), json!({ "limit": -1 })),
        ("/v1/dead-letters:replay".to_owned(), json!({ "reason": "tired" })),
    ] {
        server.post(&path, &body).await.is_problem(400, "invalid_argument");
    }
    assert_eq!(server.get(&format!("/v1/jobs/{id}")).await.json["state"], "SCHEDULED");
}

#[tokio::test]
async fn an_unknown_job_is_not_found_anywhere() {
    let server = Server::start().await;
    for path in ["/v1/jobs/nope", "/v1/jobs/nope/why", "/v1/jobs/nope/logs", "/v1/jobs/nope/events", "/v1/dead-letters/nope"]
    {
        server.get(path).await.is_problem(404, "not_found");
    }
    for path in ["/v1/jobs/nope/cancel", "/v1/dead-letters/nope/replay"] {
        server.post(path, &json!({})).await.is_problem(404, "not_found");
    }
    let status = server.grpc().await.get_job(v1::GetJobRequest { job_id: "nope".into() }).await.expect_err("unknown");
    is_status(&status, Code::NotFound, "not_found");
}

#[tokio::test]
async fn a_bad_tenant_or_actor_names_its_header() {
    let server = Server::start().await;
    for header in ["x-lockgate-tenant", "x-lockgate-actor"] {
        let reply = server.send(server.request("GET", "/v1/jobs").header(header, "a b"), "").await;
        reply.is_problem(400, "invalid_argument");
        assert_eq!(reply.fields(), [header]);
        let mut request = tonic::Request::new(v1::GetJobRequest::default());
        request.metadata_mut().insert(header, "a b".parse().expect("metadata"));
        let status = server.grpc().await.get_job(request).await.expect_err("refused");
        assert_eq!(violations(&status), [header]);
    }
}

fn is_status(status: &Status, code: Code, reason: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    let info = status.get_details_error_info().expect("error info");
    assert_eq!((info.reason.as_str(), info.domain.as_str()), (reason, "lockgate"));
}

fn violations(status: &Status) -> Vec<String> {
    is_status(status, Code::InvalidArgument, "invalid_argument");
    let bad = status.get_details_bad_request().expect("field violations");
    bad.field_violations.into_iter().map(|violation| violation.field).collect()
}

#[tokio::test]
async fn grpc_refuses_the_same_with_field_violations() {
    let server = Server::start().await;
    let mut grpc = server.grpc().await;
    let job = |change: fn(&mut v1::NewJob)| {
        let mut job = v1::NewJob { topic: "job.echo".into(), ..v1::NewJob::default() };
        change(&mut job);
        v1::SubmitJobRequest { job: Some(job) }
    };
    let cases: Vec<(v1::SubmitJobRequest, &str)> = vec![
        (v1::SubmitJobRequest { job: None }, "job"),
        (job(|job| job.topic = "a b".into()), "topic"),
        (job(|job| job.payload_json = "{".into()), "payload"),
        (job(|job| job.payload_json = vec![b'"', 0xff, b'"'].into()), "payload"),
        (job(|job| job.payload_json = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX)).into()), "payload"),
        (job(|job| job.priority = 77), "priority"),
        (job(|job| job.max_attempts = Some(0)), "max_attempts"),
        (job(|job| job.capability = "to pay".into()), "capability"),
        (job(|job| job.risk_tags = vec!["much money".into()]), "risk_tags"),
        (job(|job| job.workflow_id = "w w".into()), "workflow_id"),
        (job(|job| job.compensation_json = r#"{"topic":"undo"}"#.into()), "compensation"),
    ];
    for (request, field) in cases {
        let status = grpc.submit_job(request).await.expect_err("refused");
        assert_eq!(violations(&status), [field]);
    }
    for n in [0, 10_001] {
        let jobs = vec![v1::NewJob { topic: "job.noop".into(), ..v1::NewJob::default() }; n];
        let status = grpc.submit_jobs(v1::SubmitJobsRequest { jobs }).await.expect_err("refused");
        assert_eq!(violations(&status), ["jobs"]);
    }
    let list = v1::ListJobsRequest { state: 99, ..v1::ListJobsRequest::default() };
    assert_eq!(violations(&grpc.list_jobs(list).await.expect_err("refused")), ["state"]);
    let replay = grpc.replay_dead_letters(v1::ReplayDeadLettersRequest::default()).await.expect_err("refused");
    assert_eq!(violations(&replay), ["job_id"]);
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn cancel_of_a_finished_job_and_replay_of_a_live_one_are_conflicts() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    server.post(&format!("/v1/dead-letters/{id}/replay"), &json!({})).await.is_problem(409, "wrong_state");
    server.get(&format!("/v1/dead-letters/{id}")).await.is_problem(404, "not_found");
    let mut grpc = server.grpc().await;
    for dry_run in [true, false] {
        let replay = v1::ReplayDeadLettersRequest { job_id: id.clone(), dry_run, ..v1::ReplayDeadLettersRequest::default() };
        let status = grpc.replay_dead_letters(replay).await.expect_err("refused");
        is_status(&status, Code::FailedPrecondition, "wrong_state");
    }
    assert_eq!(server.get(&format!("/v1/jobs/{id}")).await.json["life"], 1);

    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    worker.run_one(Some(succeeded("1"))).await;
    server.post(&format!("/v1/jobs/{id}/cancel"), &json!({})).await.is_problem(409, "already_ended");
    let cancel = v1::CancelJobRequest { job_id: id, reason: String::new() };
    is_status(&grpc.cancel_job(cancel).await.expect_err("refused"), Code::FailedPrecondition, "already_ended");
}

#[tokio::test]
async fn a_repeated_cancel_of_a_cancelled_job_succeeds_and_changes_nothing() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    for _ in 0..2 {
        let reply = server.post(&format!("/v1/jobs/{id}/cancel"), &json!({})).await;
        assert_eq!((reply.status, &reply.json["state"]), (200, &json!("CANCELLED")), "{reply:?}");
    }
    let cancel = v1::CancelJobRequest { job_id: id.clone(), reason: "again".into() };
    let state = server.grpc().await.cancel_job(cancel).await.expect("cancelled").into_inner().state;
    assert_eq!(state, i32::from(v1::JobState::Cancelled));
    let events = server.events(&id, None).await.all().await;
    assert_eq!(events.iter().filter(|(_, kind)| kind == "cancelled").count(), 1, "{events:?}");
}
