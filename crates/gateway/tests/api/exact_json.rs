//! What is judged is what runs: JSON that two readers could understand differently is refused at every door, and a worker
//! gets the very bytes that were hashed and judged.

use std::sync::Arc;

use lockgate_core::request::Caller;
use lockgate_gateway::{Gateway, GatewaySettings};
use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::submit_jobs_response::item::Item;
use lockgate_proto::v1::worker_client::WorkerClient;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{ScriptedWorker, Server, hello, succeeded};

const NO_EVIL: &str = "\
version: 1
default: {decision: allow}
rules:
  - id: evil
    match: {when: payload.to == 'evil'}
    decision: deny
    reason: nothing goes there
";

/// Passes a policy that looks at the last `to`, and does evil with a parser that takes the first one.
const TWO_FACED: &str = r#"{"to":"evil","to":"ok"}"#;

fn new_job(payload: &str) -> v1::NewJob {
    v1::NewJob { topic: "job.send".into(), payload_json: payload.to_owned().into(), ..v1::NewJob::default() }
}

/// The message of the one job that was refused.
fn refusal(items: Vec<v1::submit_jobs_response::Item>) -> String {
    match items.into_iter().next().and_then(|item| item.item) {
        Some(Item::Error(error)) => error.message,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_payload_with_two_faces_is_refused_over_rest_grpc_and_nats() {
    let server = Server::start().await;
    server.apply(NO_EVIL).await;
    let reply = server.post_text("/v1/jobs", format!(r#"{{"topic":"job.send","payload":{TWO_FACED}}}"#)).await;
    reply.is_problem(400, "invalid_argument");
    assert_eq!(reply.fields(), ["payload.to"], "{reply:?}");
    let batch = format!(r#"{{"jobs":[{{"topic":"job.send","payload":{TWO_FACED}}}]}}"#);
    let reply = server.post_text("/v1/jobs:batch", batch).await;
    assert_eq!(reply.json["jobs"][0]["error"]["errors"][0]["field"], "payload.to", "{reply:?}");

    let mut grpc = server.grpc().await;
    let one = v1::SubmitJobRequest { job: Some(new_job(TWO_FACED)) };
    let status = grpc.submit_job(one).await.expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert!(status.message().contains("payload.to: is given twice"), "{status:?}");
    let many = v1::SubmitJobsRequest { jobs: vec![new_job(TWO_FACED)] };
    let told = refusal(grpc.submit_jobs(many).await.expect("an answer").into_inner().jobs);
    assert!(told.contains("payload.to: is given twice"), "{told}");

    // What the adapter for NATS hands over.
    let gateway = Gateway {
        engine: server.engine.clone(),
        clock: Arc::clone(&server.clock) as _,
        settings: GatewaySettings::default(),
    };
    let letters = gateway.letters(None).expect("open");
    let answer = letters.submit(&Caller::new("default", "ann"), None, vec![new_job(TWO_FACED)]).await.expect("an answer");
    assert!(refusal(answer.jobs).contains("payload.to: is given twice"));
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn labels_environment_compensation_and_parameters_have_each_name_once() {
    let server = Server::start().await;
    for (field, sent) in [
        ("labels.a", r#"{"topic":"job.x","labels":{"a":"1","b":"2","a":"3"}}"#),
        ("env.A", r#"{"topic":"job.x","env":{"A":"1","\u0041":"3"}}"#),
        ("payload[1].a.b", r#"{"topic":"job.x","payload":[0,{"a":{"b":1,"c":2,"\u0062":3}}]}"#),
        (
            "compensation.payload.x",
            r#"{"topic":"job.x","workflow_id":"w","compensation":{"topic":"u","payload":{"x":1,"x":2}}}"#,
        ),
        (
            "compensation.labels.l",
            r#"{"topic":"job.x","workflow_id":"w","compensation":{"topic":"u","labels":{"l":"1","l":"2"}}}"#,
        ),
    ] {
        let reply = server.post_text("/v1/jobs", sent).await;
        reply.is_problem(400, "invalid_argument");
        assert_eq!(reply.fields(), [field], "{reply:?}");
    }
    assert_eq!(server.stored().await, 0);

    let dag = "version: 1\ndag: d\nparams: {p: any}\nnodes: {a: {topic: job.x, payload: {v: '${params.p}'}}}\n";
    let stored = server.send(server.request("POST", "/v1/dags").header("content-type", "application/yaml"), dag).await;
    assert_eq!(stored.status, 200, "{stored:?}");
    let reply = server.post_text("/v1/runs", r#"{"dag":"d","params":{"p":{"a":1,"a":2}}}"#).await;
    reply.is_problem(400, "invalid_argument");
    assert_eq!(reply.fields(), ["params.p.a"], "{reply:?}");
    let mut grpc = OrchestratorClient::new(server.channel().await);
    let start =
        |params: &str| v1::StartDagRequest { dag: "d".into(), params_json: params.to_owned().into(), ..Default::default() };
    let status = grpc.start_dag(start(r#"{"p":1,"p":2}"#)).await.expect_err("refused");
    assert!(status.message().contains("params.p: is given twice"), "{status:?}");
    let status = grpc.start_dag(start(r#"{"p":[1,9007199254740993]}"#)).await.expect_err("refused");
    assert!(status.message().contains("params.p[1]: "), "{status:?}");
    let run = grpc.start_dag(start("{}")).await.expect_err("p must be given");
    assert_eq!(run.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_number_that_would_change_is_refused_with_its_path() {
    let server = Server::start().await;
    for number in [
        "9007199254740992",
        "-9007199254740992",
        "18446744073709551615",
        "123456789012345678901234567890",
        "1e400",
        "1e-400",
        "3.14159265358979323846",
    ] {
        let reply = server.post_text("/v1/jobs", format!(r#"{{"topic":"job.x","payload":{{"a":[0,{number}]}}}}"#)).await;
        reply.is_problem(400, "invalid_argument");
        assert_eq!(reply.fields(), ["payload.a[1]"], "{number}: {reply:?}");
    }
    let limits = r#"{"a":[9007199254740991,-9007199254740991,0.1,5e-324,1.7976931348623157e308]}"#;
    server.submit(json!({ "topic": "job.x", "payload": serde_json::from_str::<Value>(limits).expect("JSON") })).await;
}

#[tokio::test]
async fn the_worker_gets_the_bytes_that_were_judged() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let sent = "{\"topic\":\"job.x\",\"payload\": {\"z\": 0.9009004917506227,\n \"a\": \"\\u00e9\\/\", \"n\": 1E2}}";
    let reply = server.post_text("/v1/jobs", sent).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let assignment = worker.assignment().await;
    let canonical = r#"{"a":"é/","n":100.0,"z":0.9009004917506227}"#;
    assert_eq!(assignment.payload_json, canonical.as_bytes());
    assert!(!worker.report(&assignment, Some(succeeded("{\"b\":1, \"a\":0.30000000000000004}"))).await);
    let shown = server.get(&format!("/v1/jobs/{}", assignment.job_id)).await;
    assert!(shown.text.contains(canonical), "{shown:?}");
    assert!(shown.text.contains(r#"{"a":0.30000000000000004,"b":1}"#), "{shown:?}");
}

#[tokio::test]
async fn a_result_with_two_faces_fails_the_job_and_says_where() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    for (result, told) in [
        (r#"{"rows":[{"id":1,"id":2}]}"#, "result.rows[0].id: is given twice"),
        (r#"{"id":9007199254740993}"#, "result.id: "),
    ] {
        let id = server.submit(json!({ "topic": "job.x" })).await;
        worker.run_one(Some(succeeded(result))).await;
        let job = server.job(&id).await;
        assert_eq!(job["state"], "FAILED", "{job}");
        assert!(job["last_error"]["message"].as_str().is_some_and(|text| text.contains(told)), "{job}");
    }
}

#[tokio::test]
async fn a_child_with_two_faces_is_refused() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    server.submit(json!({ "topic": "job.parent" })).await;
    let parent = worker.assignment().await;
    let child = v1::NewChild { key: "a".into(), job: Some(new_job(TWO_FACED)) };
    let sent = v1::SubmitChildrenRequest { job_id: parent.job_id, token: parent.token, children: vec![child] };
    let answer = WorkerClient::new(server.channel().await).submit_children(sent).await.expect("an answer").into_inner();
    assert!(refusal(answer.jobs).contains("payload.to: is given twice"));
}
