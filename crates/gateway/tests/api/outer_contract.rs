//! Names, defaults and shapes of the requirement documents, from outside.

use std::time::Duration;

use lockgate_gateway::REQUEST_BYTES_MAX;
use lockgate_proto::v1::scheduler_client::SchedulerClient;
use lockgate_proto::v1::{self, result};
use serde_json::{Value, json};
use tonic::codec::CompressionEncoding::Gzip;
use tonic_types::StatusExt;

use crate::support::{PATIENCE, ScriptedWorker, Server, hello};

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
async fn a_letter_of_an_attempt_that_never_started_is_found_by_dispatch_failed() {
    let server = Server::start().await;
    server.configure("timeouts", "defaults: {dispatch: 1s}\n").await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    server.submit(json!({ "topic": "job.echo", "job_id": "never", "retry": { "losses": 0 } })).await;
    worker.assignment().await;
    // Long enough to start, too short to count as silent.
    server.clock.advance(Duration::from_secs(3));
    server.wait_for("the loss", async || server.why("never").await["reason"] == "ended").await;
    assert_eq!(dead(&server, "reason=dispatch_failed").await, ["never"]);
    assert_eq!(server.get("/v1/dead-letters/never").await.json["reason"], "dispatch_lost");
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

#[tokio::test]
async fn a_page_of_large_jobs_ends_early_so_that_stock_clients_can_read_it() {
    let server = Server::start().await;
    let env: serde_json::Map<String, Value> = (0..64).map(|n| (format!("e{n}"), json!("x".repeat(4_096)))).collect();
    for n in 0..20 {
        server.submit(json!({ "topic": "job.echo", "job_id": format!("large-{n}"), "env": env })).await;
    }
    let mut grpc = server.grpc().await;
    let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let request = v1::ListJobsRequest { limit: 1_000, cursor, ..v1::ListJobsRequest::default() };
        let page = grpc.list_jobs(request).await.expect("a page that fits").into_inner();
        assert!(!page.jobs.is_empty());
        seen.extend(page.jobs.into_iter().map(|job| job.job_id));
        (pages, cursor) = (pages + 1, page.next_cursor);
        if cursor.is_empty() {
            break;
        }
    }
    let expected: Vec<String> = (0..20).rev().map(|n| format!("large-{n}")).collect();
    assert_eq!(seen, expected);
    assert!(pages >= 2, "{pages} pages");
}

#[tokio::test]
async fn retries_are_those_of_the_job_else_of_its_topic_and_are_shown() {
    let server = Server::start().await;
    server.configure("timeouts", "topics: {job.pay: {retry: {attempts: 7, base: 2s, non_retryable: [gone]}}}\n").await;
    let usual = server.submit(json!({ "topic": "job.pay" })).await;
    let job = server.get(&format!("/v1/jobs/{usual}")).await.json;
    assert_eq!((&job["max_attempts"], &job["losses"]), (&json!(7), &json!(0)));
    let expected = json!({ "base_ms": 2000, "factor_percent": 200, "cap_ms": 30000, "jitter_percent": 50,
        "non_retryable": ["gone"], "losses": 6 });
    assert_eq!(job["retry"], expected);

    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let failed = |code: &str| {
        let failed = result::FailedRetryable { error: "no".into(), code: code.into(), ..Default::default() };
        Some(result::Outcome::FailedRetryable(failed))
    };
    worker.run_one(failed("gone")).await;
    let job = server.get(&format!("/v1/jobs/{usual}")).await.json;
    assert_eq!(job["state"], "FAILED", "{job}");
    assert!(
        job["last_error"]["message"].as_str().is_some_and(|text| text.contains("the code gone is not tried again")),
        "{job}"
    );

    let own = json!({ "topic": "job.pay", "max_attempts": 2, "retry": { "base_ms": 60000, "cap_ms": 60000, "jitter_percent": 0, "losses": 0 } });
    let own = server.submit(own).await;
    worker.run_one(failed("busy")).await;
    let why = server.why_of(&own, "waiting_for_retry").await;
    let next = "The next attempt starts by itself. Failures: 1 of 2, losses: 0 of 0.";
    assert_eq!(why["next_step"], next, "{why}");

    let wrong = json!({ "topic": "job.pay", "retry": { "factor_percent": 5, "total_ms": 0 } });
    let refused = server.post("/v1/jobs", &wrong).await;
    refused.is_problem(400, "invalid_argument");
    assert_eq!(refused.fields(), ["retry.factor_percent", "retry.total_ms"]);
}

#[tokio::test]
async fn a_run_has_the_time_of_its_workflow_unless_its_dag_says_so() {
    let server = Server::start().await;
    server.configure("timeouts", "workflows: {nightly: {running: 1h}}\n").await;
    let put = async |name: &str, more: &str| {
        let text =
            format!("version: 1\ndag: {name}\n{more}nodes: {{a: {{topic: job.x, retry: {{losses: 0, base: 9s}}}}}}\n");
        let request = server.request("POST", "/v1/dags").header("content-type", "application/yaml");
        let reply = server.send(request, text).await;
        assert!(reply.status < 300, "{reply:?}");
        let run = server.post("/v1/runs", &json!({ "dag": name })).await.json["run_id"].clone();
        server.get(&format!("/v1/runs/{}", run.as_str().expect("started"))).await.json
    };
    let nightly = put("nightly", "").await;
    assert!(nightly["deadline_at"].is_string(), "{nightly}");
    assert_eq!(put("other", "").await["deadline_at"], json!(null));
    let job = nightly["nodes"][0]["job_id"].as_str().expect("a job");
    let retry = server.get(&format!("/v1/jobs/{job}")).await.json["retry"].clone();
    assert_eq!((&retry["losses"], &retry["base_ms"]), (&json!(0), &json!(9000)), "{retry}");
}

#[tokio::test]
async fn a_stream_ends_with_the_time_that_its_client_gave_it() {
    let server = Server::start().await;
    let id = server.submit(json!({ "topic": "job.echo" })).await;
    let mut watch = tonic::Request::new(v1::WatchJobRequest { job_id: id, after: 0 });
    // Not `set_timeout`, with which the client itself would give up.
    watch.metadata_mut().insert("grpc-timeout", "300m".parse().expect("ascii"));
    let mut stream = server.grpc().await.watch_job(watch).await.expect("found").into_inner();
    let end = async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the job has not ended"),
                Err(status) => return status,
            }
        }
    };
    let status = tokio::time::timeout(PATIENCE, end).await.expect("it ends");
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
}

#[tokio::test]
async fn a_budget_sets_the_fields_of_the_job() {
    let server = Server::start().await;
    let id = server.submit(json!({ "topic": "job.echo", "budget": { "deadline_ms": 60_000, "max_attempts": 7 } })).await;
    let job = server.get(&format!("/v1/jobs/{id}")).await.json;
    assert_eq!(job["max_attempts"], 7);
    assert!(job["deadline_at"].is_string(), "{job}");
    let both = json!({ "topic": "job.echo", "deadline_ms": 1, "budget": { "deadline_ms": 2 } });
    let refused = server.post("/v1/jobs", &both).await;
    refused.is_problem(400, "invalid_argument");
    assert_eq!(refused.fields(), ["budget.deadline_ms"]);
    let budget = v1::JobBudget { deadline_ms: Some(0), ..v1::JobBudget::default() };
    let job = v1::NewJob { topic: "job.echo".into(), budget: Some(budget), ..v1::NewJob::default() };
    let refused = server.grpc().await.submit_job(v1::SubmitJobRequest { job: Some(job) }).await.expect_err("refused");
    assert!(refused.message().contains("deadline_ms"), "{refused:?}");
}

#[tokio::test]
async fn a_tenant_in_the_environment_counts_where_the_call_names_none() {
    let server = Server::start().await;
    let job = |tenant: &str| json!({ "topic": "job.echo", "env": { "tenant_id": tenant } });
    let id = server.submit(job("acme")).await;
    let path = format!("/v1/jobs/{id}");
    server.get(&path).await.is_problem(404, "not_found");
    let of_acme = server.request("GET", &path).header("x-lockgate-tenant", "acme");
    assert_eq!(server.send(of_acme, "").await.json["tenant"], "acme");
    let json = || server.request("POST", "/v1/jobs").header("content-type", "application/json");
    let as_acme = || json().header("x-lockgate-tenant", "acme");
    assert_eq!(server.send(as_acme(), job("acme").to_string()).await.status, 201, "both say one thing");
    let refused = server.send(as_acme(), job("other").to_string()).await;
    refused.is_problem(400, "invalid_argument");
    assert_eq!(refused.fields(), ["env.tenant_id"]);
    let refused = server.post("/v1/jobs", &job("a b")).await;
    assert_eq!(refused.fields(), ["env.tenant_id"]);
    let batch = json!({ "jobs": [job("acme"), job("other"), json!({ "topic": "job.echo" })] });
    let answers = server.post("/v1/jobs:batch", &batch).await.json;
    assert!(answers["jobs"][0]["job_id"].is_string(), "{answers}");
    for other in 1..=2 {
        assert!(answers["jobs"][other].to_string().contains("env.tenant_id"), "{answers}");
    }
}

#[tokio::test]
async fn messages_over_grpc_may_be_gzip_both_ways() {
    let server = Server::start().await;
    let plain = SchedulerClient::new(server.channel().await);
    let mut packed = plain.clone().send_compressed(Gzip).accept_compressed(Gzip);
    let job = v1::NewJob {
        topic: "job.echo".into(),
        payload_json: format!("\"{}\"", "x".repeat(100_000)).into(),
        ..v1::NewJob::default()
    };
    let submitted = packed.submit_job(v1::SubmitJobRequest { job: Some(job) }).await.expect("accepted").into_inner();
    let get = || v1::GetJobRequest { job_id: submitted.job_id.clone() };
    let (unpacked, read) = (packed.get_job(get()).await.expect("found"), plain.clone().get_job(get()).await.expect("found"));
    assert_eq!(unpacked.metadata().get("grpc-encoding").map(|value| value.as_bytes()), Some(&b"gzip"[..]));
    assert_eq!(read.metadata().get("grpc-encoding"), None);
    assert_eq!(unpacked.into_inner(), read.into_inner());
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_with_its_code_also_if_it_is_small_while_packed() {
    let server = Server::start().await;
    let plain = SchedulerClient::new(server.channel().await);
    let job = || {
        let payload = format!("\"{}\"", "x".repeat(REQUEST_BYTES_MAX));
        v1::SubmitJobRequest {
            job: Some(v1::NewJob { topic: "job.echo".into(), payload_json: payload.into(), ..v1::NewJob::default() }),
        }
    };
    let refused = plain.clone().submit_job(job()).await.expect_err("refused");
    assert_eq!(refused.code(), tonic::Code::OutOfRange, "{refused:?}");
    assert_eq!(refused.get_error_details().error_info().map(|info| &*info.reason), Some("payload_too_large"));
    plain.send_compressed(Gzip).submit_job(job()).await.expect_err("refused");
    assert_eq!(server.stored().await, 0);
}
