//! Workflows over both doors: stored, started, followed, stopped, and every way to get that wrong.

use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use serde_json::{Value, json};
use tonic::Code;
use tonic::transport::Channel;

use crate::support::{Reply, ScriptedWorker, Server, hello, succeeded};

const PAIR: &str = "
version: 1
dag: pair
description: two jobs
params: { who: text }
output: \"${nodes.second.output}\"
nodes:
  first: { topic: job.echo, payload: \"${params.who}\" }
  second: { needs: first, topic: job.echo, payload: \"${nodes.first.output}\" }
";

async fn grpc(server: &Server) -> OrchestratorClient<Channel> {
    OrchestratorClient::new(server.channel().await)
}

async fn put(server: &Server, text: &str) -> Reply {
    server.send(server.request("POST", "/v1/dags").header("content-type", "application/yaml"), text.to_owned()).await
}

async fn start(server: &Server, body: &Value) -> String {
    let reply = server.post("/v1/runs", body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json["run_id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_workflow_is_stored_started_and_followed_to_its_answer() {
    let server = Server::start().await;
    let stored = put(&server, PAIR).await;
    assert_eq!(
        (stored.status, &stored.json["version"], &stored.json["uncompensated"]),
        (200, &json!(1), &json!(["first", "second"]))
    );
    assert_eq!(put(&server, PAIR).await.json["version"], 1, "the same text is the same version");
    let listed = server.get("/v1/dags").await.json;
    assert_eq!((&listed["dags"][0]["name"], &listed["dags"][0]["nodes"]), (&json!("pair"), &json!(2)));
    assert_eq!(server.get("/v1/dags/pair?version=1").await.json["text"], PAIR);

    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let run = start(&server, &json!({ "dag": "pair", "params": { "who": "ann" } })).await;
    for _ in 0..2 {
        worker.run_one(Some(succeeded("\"ann\""))).await;
    }
    let request = v1::WatchDagRunRequest { run_id: run.clone(), after: 0 };
    let mut stream = grpc(&server).await.watch_dag_run(request).await.expect("watched").into_inner();
    let mut percent = 0;
    let mut last = None;
    while let Some(event) = stream.message().await.expect("a stream") {
        assert!(event.percent >= percent, "it only grows");
        percent = event.percent;
        let nodes = &event.run.as_ref().expect("a run").nodes;
        let about = nodes.last().map(|node| (node.name.clone(), node.state()));
        assert_eq!((!event.node_id.is_empty()).then(|| (event.node_id.clone(), event.status())), about, "{event:?}");
        last = about.or(last);
    }
    assert_eq!((percent, last), (100, Some(("second".to_owned(), v1::NodeState::Succeeded))));
    let seen = server.get(&format!("/v1/runs/{run}")).await.json;
    assert_eq!(
        (&seen["state"], &seen["output"], &seen["nodes"][1]["name"]),
        (&json!("SUCCEEDED"), &json!("ann"), &json!("second"))
    );
    let runs = server.get("/v1/runs?dag=pair&state=SUCCEEDED").await.json;
    assert_eq!((&runs["runs"][0]["run_id"], runs["runs"][0].get("nodes")), (&json!(run), None));
}

#[tokio::test]
async fn a_key_gives_the_same_run_and_refuses_another_request() {
    let server = Server::start().await;
    put(&server, PAIR).await;
    let body = json!({ "dag": "pair", "params": { "who": "ann" }, "idempotency_key": "k" });
    let run = start(&server, &body).await;
    let again = server.post("/v1/runs", &body).await;
    assert_eq!((again.status, &again.json["run_id"], &again.json["existing"]), (200, &json!(run), &json!(true)));
    let other = json!({ "dag": "pair", "params": { "who": "bob" }, "idempotency_key": "k" });
    server.post("/v1/runs", &other).await.is_problem(409, "idempotency_conflict");
}

#[tokio::test]
async fn orders_are_taken_in_the_states_that_allow_them() {
    let server = Server::start().await;
    put(&server, PAIR).await;
    let run = start(&server, &json!({ "dag": "pair", "params": { "who": "ann" } })).await;
    let path = |verb: &str| format!("/v1/runs/{run}/{verb}");
    assert_eq!(server.post(&path("pause"), &json!({})).await.json["state"], "PAUSED");
    assert_eq!(server.post(&path("resume"), &json!({})).await.json["state"], "RUNNING");
    server.post(&path("rerun"), &json!({ "from": ["first"] })).await.is_problem(409, "wrong_state");
    let unknown = server.post(&path("rerun"), &json!({ "from": ["third"] })).await;
    unknown.is_problem(400, "invalid_argument");
    assert_eq!(unknown.fields(), ["node"]);
    let cancelled = server.post(&path("cancel"), &json!({ "reason": "enough" })).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    server.post(&path("resolve"), &json!({ "node": "first" })).await.is_problem(409, "wrong_state");
    assert!(server.get("/v1/audit").await.json.to_string().contains("run_cancelled"));
}

#[tokio::test]
async fn what_is_wrong_is_named_and_what_is_not_there_is_not_found() {
    let server = Server::start().await;
    let bad = put(&server, "version: 1\ndag: x\nnodes: { a: { topic: job.echo, needs: b } }\n").await;
    bad.is_problem(400, "invalid_argument");
    assert!(bad.json["detail"].as_str().is_some_and(|text| text.contains("dag.yaml:3")), "{bad:?}");
    server.get("/v1/dags/x").await.is_problem(404, "not_found");
    server.get("/v1/runs/run-x").await.is_problem(404, "not_found");
    server.post("/v1/runs", &json!({ "dag": "x" })).await.is_problem(404, "not_found");
    server.get("/v1/runs?state=ASLEEP").await.is_problem(400, "invalid_argument");
    put(&server, PAIR).await;
    let refused = server.post("/v1/runs", &json!({ "dag": "pair", "params": { "who": 7 } })).await;
    refused.is_problem(400, "invalid_argument");
    assert_eq!(refused.fields(), ["params.who"]);
    let status = grpc(&server)
        .await
        .start_dag(v1::StartDagRequest { dag: "pair".into(), params_json: "[".into(), ..v1::StartDagRequest::default() })
        .await;
    assert_eq!(status.expect_err("no JSON").code(), Code::InvalidArgument);
    // Another tenant's is not there.
    let mut request = tonic::Request::new(v1::GetDagRequest { name: "pair".into(), version: None });
    request.metadata_mut().insert("x-lockgate-tenant", "other".parse().expect("ASCII"));
    assert_eq!(grpc(&server).await.get_dag(request).await.expect_err("not theirs").code(), Code::NotFound);
}

#[tokio::test]
async fn a_node_tells_how_often_its_job_was_tried_and_events_name_the_node() {
    let server = Server::start().await;
    put(&server, "version: 1\ndag: each\nnodes:\n  one: {topic: job.echo, for_each: \"[1]\", retry: {base: 1ms, jitter_percent: 0}}\n")
        .await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let run = start(&server, &json!({ "dag": "each" })).await;
    let path = format!("/v1/runs/{run}");
    let before = server.get(&path).await.json;
    assert_eq!((&before["nodes"][1]["state"], before["nodes"][1].get("attempts")), (&json!("RUNNING"), None), "{before}");
    let failed = v1::result::FailedRetryable { error: "away".into(), ..Default::default() };
    worker.run_one(Some(v1::result::Outcome::FailedRetryable(failed))).await;
    server.clock.advance(std::time::Duration::from_secs(1));
    worker.run_one(Some(succeeded("1"))).await;
    let text = server.get(&format!("{path}/events")).await.text;
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let events: Vec<Value> = events.map(|data| serde_json::from_str(data).expect("JSON")).collect();
    let named = events.iter().filter_map(|event| Some((event["node_id"].as_str()?, event["status"].as_str()?)));
    assert!(named.clone().any(|about| about == ("one[0]", "SUCCEEDED")), "{text}");
    let seen = server.get(&path).await.json;
    let item = &seen["nodes"][1];
    assert_eq!((&item["attempts"], &item["losses"]), (&json!(2), &json!(0)), "{seen}");
    let whole = grpc(&server).await.get_dag_run(v1::GetDagRunRequest { run_id: run }).await.expect("there").into_inner();
    assert_eq!(whole.nodes.iter().map(|node| node.attempts).collect::<Vec<_>>(), [None, Some(2)]);
}
