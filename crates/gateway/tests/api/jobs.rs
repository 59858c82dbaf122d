//! Submit, look, list, stop.

use lockgate_proto::v1::{self, result};
use serde_json::json;

use crate::support::{ScriptedWorker, Server, echo, hello, succeeded};

#[tokio::test]
async fn a_submitted_job_is_acknowledged_and_readable() {
    let server = Server::start().await;
    let reply = server
        .post_text(
            "/v1/jobs",
            r#"{"topic":"job.echo","payload":{"b": 1,  "a": 2.0},"job_id":"mine","priority":"high","labels":{"team":"x"},
                "env":{"E":"1"},"max_attempts":5,"timeout_ms":2000,"deadline_ms":60000,"requires":["gpu"],"trace_id":"t-1","concurrency_key":"k-1"}"#,
        )
        .await;
    assert_eq!(reply.status, 201, "{reply:?}");
    assert_eq!(reply.json, json!({ "job_id": "mine", "state": "SCHEDULED", "ack": "fsynced", "existing": false }));

    let reply = server.get("/v1/jobs/mine").await;
    assert!(reply.text.contains(r#""payload":{"a":2.0,"b":1}"#), "the payload is kept in canonical form: {reply:?}");
    let job = &reply.json;
    let expected = [
        ("tenant", json!("default")),
        ("actor", json!("anonymous")),
        ("topic", json!("job.echo")),
        ("priority", json!("high")),
        ("labels", json!({ "team": "x" })),
        ("env", json!({ "E": "1" })),
        ("max_attempts", json!(5)),
        ("timeout_ms", json!(2000)),
        ("requires", json!(["gpu"])),
        ("trace_id", json!("t-1")),
        ("concurrency_key", json!("k-1")),
        ("state", json!("SCHEDULED")),
        ("phase", json!("QUEUED")),
        ("life", json!(1)),
        ("attempt", json!(0)),
        ("failures", json!(0)),
    ];
    for (field, value) in expected {
        assert_eq!(job[field], value, "{field}");
    }
    let times: Vec<&str> = ["submitted_at", "due_at", "deadline_at"].iter().filter_map(|f| job[f].as_str()).collect();
    assert!(times.len() == 3 && times.iter().all(|time| time.len() == 24 && time.ends_with('Z')), "{times:?}");
    assert_eq!(job["request_hash"].as_str().map(str::len), Some(64));
    assert!(job.get("result").is_none() && job.get("ended_at").is_none());
}

#[tokio::test]
async fn a_job_is_shown_with_its_attempts_and_result() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    worker.run_one(Some(succeeded(r#"{"n": 1}"#))).await;
    let reply = server.get(&format!("/v1/jobs/{id}")).await;
    assert!(reply.text.contains(r#""result":{"n":1}"#), "{reply:?}");
    assert_eq!(reply.json["state"], "SUCCEEDED");
    assert_eq!(reply.json["attempt"], 1);
    assert_eq!(reply.json["attempts"][0]["worker_id"], "scripted");
    assert_eq!(reply.json["attempts"][0]["outcome"], "succeeded");
    assert!(reply.json["attempts"][0]["rule"].as_str().is_some_and(|rule| rule.contains("builtin:allow")), "{reply:?}");
}

#[tokio::test]
async fn lists_filter_by_state_topic_and_label_and_go_on_by_cursor() {
    let server = Server::start().await;
    for n in 0..5 {
        server.submit(json!({ "topic": format!("job.t{}", n % 2), "labels": { "n": n.to_string(), "all": "1" } })).await;
    }
    let count = async |query: &str| {
        let reply = server.get(&format!("/v1/jobs?{query}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json["jobs"].as_array().expect("a list").len()
    };
    assert_eq!(count("").await, 5);
    assert_eq!(count("topic=job.t0").await, 3);
    assert_eq!(count("state=scheduled&topic=job.t1").await, 2);
    assert_eq!(count("state=RUNNING").await, 0);
    assert_eq!(count("label=n=3&label=all=1").await, 1);
    assert_eq!(count("label=n=3&label=all=2").await, 0);

    let mut seen = Vec::new();
    let mut path = "/v1/jobs?limit=2".to_owned();
    loop {
        let page = server.get(&path).await.json;
        let ids = page["jobs"].as_array().expect("a list").iter().map(|job| job["job_id"].clone());
        seen.extend(ids);
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/jobs?limit=2&cursor={cursor}");
    }
    seen.sort_by_key(ToString::to_string);
    seen.dedup();
    assert_eq!(seen.len(), 5);
}

#[tokio::test]
async fn another_tenants_job_does_not_exist() {
    let server = Server::start().await;
    let other = server.request("POST", "/v1/jobs").header("content-type", "application/json");
    let other = other.header("x-lockgate-tenant", "acme").header("x-lockgate-actor", "ann");
    let reply = server.send(other, echo().to_string()).await;
    let id = reply.json["job_id"].as_str().expect("accepted").to_owned();

    for path in ["", "/why", "/logs", "/events"] {
        server.get(&format!("/v1/jobs/{id}{path}")).await.is_problem(404, "not_found");
    }
    server.post(&format!("/v1/jobs/{id}/cancel"), &json!({})).await.is_problem(404, "not_found");
    assert_eq!(server.get("/v1/jobs").await.json["jobs"], json!([]));
    for tenant in ["acme", "*"] {
        let jobs = server.get(&format!("/v1/jobs?tenant={tenant}")).await.json;
        assert_eq!(jobs["jobs"][0]["actor"], "ann", "{jobs}");
    }
}

#[tokio::test]
async fn a_job_is_cancelled_once() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    let path = format!("/v1/jobs/{id}/cancel");
    let reply = server.post(&path, &json!({ "reason": "not needed" })).await;
    assert_eq!(reply.json, json!({ "job_id": id, "state": "CANCELLED" }));
    assert_eq!(server.send(server.request("POST", &path), "").await.json, reply.json, "once more changes nothing");
    let job = server.get(&format!("/v1/jobs/{id}")).await.json;
    assert_eq!(job["last_error"], json!({ "reason": "cancelled", "message": "not needed" }));
}

#[tokio::test]
async fn why_and_queues_say_what_waits() {
    let server = Server::start().await;
    let id = server.submit(json!({ "topic": "job.x", "requires": ["gpu"] })).await;
    let why = server.get(&format!("/v1/jobs/{id}/why")).await.json;
    assert_eq!((&why["reason"], &why["job_id"]), (&json!("no_workers"), &json!(id)));
    let _worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let why = server.get(&format!("/v1/jobs/{id}/why")).await.json;
    assert_eq!(why["reason"], "no_workers");
    assert_eq!(why["pools"][0]["workers"][0]["verdict"], "missing_capability:gpu");

    let queues = server.get("/v1/queues").await.json;
    assert_eq!(queues["queues"][0]["shape"], "job.x+gpu");
    assert_eq!((&queues["live"], &queues["held"]), (&json!(1), &json!(0)));
    let workers = server.get("/v1/workers").await.json;
    assert_eq!(workers["workers"][0]["status"], "attached");
    assert_eq!(workers["workers"][0]["topics"], json!(["job.*"]));
}

#[tokio::test]
async fn queues_are_filtered_by_tenant_and_workers_by_label() {
    let server = Server::start().await;
    for tenant in ["acme", "other"] {
        let request = server.request("POST", "/v1/jobs").header("content-type", "application/json");
        let reply = server.send(request.header("x-lockgate-tenant", tenant), r#"{"topic":"elsewhere"}"#).await;
        assert_eq!(reply.status, 201, "{reply:?}");
    }
    let tenants = async |query: &str| {
        let queues = server.get(&format!("/v1/queues?{query}")).await.json;
        assert_eq!(queues["live"], 2, "totals are not filtered");
        let queues = queues["queues"].as_array().expect("a list").clone();
        let mut tenants: Vec<String> = queues.iter().map(|q| q["tenant"].as_str().expect("a name").to_owned()).collect();
        tenants.sort();
        tenants
    };
    assert_eq!(tenants("").await, ["acme", "other"]);
    assert_eq!(tenants("tenant=*").await, ["acme", "other"]);
    assert_eq!(tenants("tenant=acme").await, ["acme"]);
    assert_eq!(tenants("tenant=nobody").await.len(), 0);

    let labels = |zone: &str| [("zone".to_owned(), zone.to_owned()), ("disk".to_owned(), "ssd".to_owned())].into();
    let _a = ScriptedWorker::attach(&server, v1::Hello { labels: labels("a"), ..hello("s-1") }).await;
    let _b = ScriptedWorker::attach(&server, v1::Hello { labels: labels("b"), ..hello("s-2") }).await;
    let sessions = async |query: &str| {
        let workers = server.get(&format!("/v1/workers?{query}")).await.json;
        workers["workers"].as_array().expect("a list").iter().map(|worker| worker["session"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(sessions("").await, ["s-1", "s-2"]);
    assert_eq!(sessions("label=disk=ssd").await, ["s-1", "s-2"]);
    assert_eq!(sessions("label=disk=ssd&label=zone=b").await, ["s-2"]);
    assert_eq!(sessions("label=gpu=1").await.len(), 0);
}

#[tokio::test]
async fn a_batch_is_answered_in_the_order_sent() {
    let server = Server::start().await;
    let jobs = json!({ "jobs": [
        { "topic": "job.a", "job_id": "a" },
        { "topic": "not a topic" },
        { "topic": "job.b", "workflow_id": "w w" },
        { "topic": "job.c", "job_id": "c" },
    ]});
    let reply = server.post("/v1/jobs:batch", &jobs).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let items = &reply.json["jobs"];
    assert_eq!((&items[0]["job_id"], &items[3]["job_id"]), (&json!("a"), &json!("c")));
    for (refused, field) in [(1, "topic"), (2, "workflow_id")] {
        let error = &items[refused]["error"];
        assert_eq!(error["code"], "invalid_argument", "{reply:?}");
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with(field)), "{reply:?}");
    }
    assert_eq!(server.stored().await, 2);
}

#[tokio::test]
async fn both_doors_show_the_same_job() {
    let server = Server::start().await;
    let mut grpc = server.grpc().await;
    let mut request = tonic::Request::new(v1::SubmitJobRequest {
        job: Some(v1::NewJob {
            topic: "job.echo".to_owned(),
            payload_json: r#"{"hello":"world"}"#.into(),
            priority: v1::Priority::Low.into(),
            not_before_ms: Some(4_102_444_800_000),
            ..v1::NewJob::default()
        }),
    });
    request.metadata_mut().insert("x-lockgate-actor", "ann".parse().expect("metadata"));
    let submitted = grpc.submit_job(request).await.expect("accepted").into_inner();
    assert_eq!((submitted.ack.as_str(), submitted.existing), ("fsynced", false));

    let job_id = submitted.job_id;
    let job = grpc.get_job(v1::GetJobRequest { job_id: job_id.clone() }).await.expect("found").into_inner();
    let shown = server.get(&format!("/v1/jobs/{job_id}")).await.json;
    assert_eq!(shown["due_at"], "2100-01-01T00:00:00.000Z");
    assert_eq!(shown["actor"], "ann");
    assert_eq!(shown["priority"], "low");
    assert_eq!(shown["request_hash"], job.request_hash);
    assert_eq!(job.due_at_ms, Some(4_102_444_800_000));
    assert_eq!(&job.payload_json[..], br#"{"hello":"world"}"#);
    assert_eq!(job.state(), v1::JobState::Scheduled);

    let why = grpc.explain_job(v1::ExplainJobRequest { job_id: job_id.clone() }).await.expect("found").into_inner();
    assert_eq!(why.reason, "waiting_for_time");
    let list = v1::ListJobsRequest { state: v1::JobState::Scheduled.into(), limit: 10, ..v1::ListJobsRequest::default() };
    let listed = grpc.list_jobs(list).await.expect("listed").into_inner().jobs;
    assert_eq!(listed.iter().map(|job| &*job.payload_json).collect::<Vec<_>>(), [b""], "no payload is not null");
    let listed = server.get("/v1/jobs").await.json;
    assert_eq!((&listed["jobs"][0]["job_id"], listed["jobs"][0].get("payload")), (&json!(job_id), None));
    let queues = grpc.list_queues(v1::ListQueuesRequest {}).await.expect("queues").into_inner();
    assert_eq!(queues.live, 1);
    let cancel = v1::CancelJobRequest { job_id, reason: String::new() };
    assert_eq!(grpc.cancel_job(cancel).await.expect("cancelled").into_inner().state(), v1::JobState::Cancelled);
}

#[tokio::test]
async fn rest_works_over_http_2_as_well() {
    let server = Server::start().await;
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .http2_only(true)
        .build_http::<http_body_util::Full<bytes::Bytes>>();
    let uri = format!("http://{}/healthz", server.address).parse().expect("a URL");
    let response = client.get(uri).await.expect("an answer");
    assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
}

#[tokio::test]
async fn a_job_that_waits_for_its_next_attempt_is_tried_at_once_on_demand() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let retry = json!({ "base_ms": 3_600_000, "cap_ms": 3_600_000, "jitter_percent": 0 });
    let id = server.submit(json!({ "topic": "job.a", "max_attempts": 4, "retry": retry })).await;
    let path = format!("/v1/jobs/{id}/retry");
    let failed = || {
        let failed = result::FailedRetryable { error: "away".into(), ..result::FailedRetryable::default() };
        Some(result::Outcome::FailedRetryable(failed))
    };
    worker.run_one(failed()).await;
    let waiting = server.get(&format!("/v1/jobs/{id}/why")).await.json;
    assert_eq!(waiting["reason"], "waiting_for_retry", "{waiting}");

    let reply = server.post(&path, &json!({ "reason": "the other side is back" })).await;
    assert_eq!(reply.json, json!({ "job_id": id, "state": "SCHEDULED" }), "{reply:?}");
    assert_eq!(worker.run_one(failed()).await.attempt, 2);
    let mut grpc = server.grpc().await;
    let order = || v1::RetryJobRequest { job_id: id.clone(), reason: String::new() };
    grpc.retry_job(order()).await.expect("waits again");
    assert_eq!(worker.run_one(Some(succeeded("1"))).await.attempt, 3);

    let job = server.get(&format!("/v1/jobs/{id}")).await.json;
    assert_eq!((&job["state"], &job["failures"]), (&json!("SUCCEEDED"), &json!(2)), "the budget is spent as before");
    assert_eq!(job["attempts"].as_array().map(Vec::len), Some(3), "{job}");
    let refused = server.post(&path, &json!({})).await;
    refused.is_problem(409, "wrong_state");
    assert!(refused.text.contains("SUCCEEDED"), "{refused:?}");
    let status = grpc.retry_job(order()).await.expect_err("it has ended");
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    let rows = server.get("/v1/audit").await.json["rows"].as_array().expect("rows").clone();
    let forced: Vec<_> = rows.iter().filter(|row| row["action"] == "retry_forced").collect();
    assert_eq!(forced.len(), 2, "{rows:?}");
    assert_eq!((&forced[0]["subject"], &forced[0]["actor"]), (&json!(id), &json!("anonymous")));
    assert_eq!(forced[0]["detail"]["event"]["message"], "the other side is back");
}
