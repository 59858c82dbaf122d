//! Workflows of plain jobs over both doors: submitted, seen, rolled back, and closed.

use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::result::{FailedFatal, Outcome};
use serde_json::{Value, json};

use crate::support::{ScriptedWorker, Server, hello, succeeded};

fn step(id: &str) -> Value {
    json!({ "topic": "job.echo", "job_id": id, "workflow_id": "trip", "compensation": { "topic": "job.echo", "payload": id } })
}

/// The saga of the workflow, once it is as wanted.
async fn wait_until(server: &Server, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..1_000 {
        let listed = server.get("/v1/runs?sagas=true&dag=trip").await.json;
        if let Some(id) = listed["runs"][0]["run_id"].as_str() {
            last = server.get(&format!("/v1/runs/{id}")).await.json;
            if wanted(&last) {
                return last;
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it did not happen: {last}");
}

#[tokio::test]
async fn a_workflow_of_plain_jobs_is_seen_rolled_back_and_closed() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    assert_eq!(server.post("/v1/jobs", &step("a")).await.status, 201);
    worker.run_one(Some(succeeded("1"))).await;
    let open = wait_until(&server, |run| run["done"] == 1).await;
    assert_eq!((&open["state"], &open["dag"], &open["nodes"][0]["name"]), (&json!("RUNNING"), &json!("trip"), &json!("a")));
    assert_eq!(server.get("/v1/runs").await.json["runs"], json!([]), "runs of DAGs are listed apart");

    let id = open["run_id"].as_str().expect("an id");
    let cancelled = server.post(&format!("/v1/runs/{id}/cancel"), &json!({ "compensate": true })).await;
    assert_eq!((cancelled.status, &cancelled.json["state"]), (200, &json!("COMPENSATING")));
    worker.run_one(Some(succeeded("1"))).await;
    let over = wait_until(&server, |run| run["state"] == "COMPENSATED").await;
    assert!(over["nodes"][0]["undo"]["job_id"].as_str().is_some_and(|id| id.starts_with("comp-")), "{over}");

    server.post("/v1/jobs", &step("late")).await.is_problem(409, "wrong_state");
    server.post(&format!("/v1/runs/{id}/pause"), &json!({})).await.is_problem(409, "wrong_state");
    let mut grpc = OrchestratorClient::new(server.channel().await);
    let request = v1::ListDagRunsRequest { sagas: true, limit: 10, ..Default::default() };
    let listed = grpc.list_dag_runs(request).await.expect("listed").into_inner();
    assert_eq!(listed.runs.iter().map(|run| run.dag.as_str()).collect::<Vec<_>>(), ["trip"]);
}

#[tokio::test]
async fn a_stuck_undo_tells_the_reason_code_over_rest() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    assert_eq!(server.post("/v1/jobs", &step("a")).await.status, 201);
    worker.run_one(Some(succeeded("1"))).await;
    let open = wait_until(&server, |run| run["done"] == 1).await;
    let id = open["run_id"].as_str().expect("an id");
    server.post(&format!("/v1/runs/{id}/cancel"), &json!({ "compensate": true })).await;
    worker.run_one(Some(Outcome::FailedFatal(FailedFatal { error: "nothing to undo".to_owned() }))).await;
    let stuck = wait_until(&server, |run| run["state"] == "COMPENSATION_STUCK").await;
    let undo = &stuck["nodes"][0]["undo"];
    assert_eq!((&undo["state"], &undo["error"]["reason"]), (&json!("STUCK"), &json!("fatal")), "{stuck}");
    assert!(undo["error"]["message"].as_str().is_some_and(|text| text.contains("nothing to undo")), "{stuck}");
}

#[tokio::test]
async fn an_undo_has_the_idempotency_key_that_its_job_gave_it() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let mut job = step("a");
    job["compensation"]["idempotency_key"] = json!("refund-7");
    assert_eq!(server.post("/v1/jobs", &job).await.status, 201);
    worker.run_one(Some(succeeded("1"))).await;
    let open = wait_until(&server, |run| run["done"] == 1).await;
    let id = open["run_id"].as_str().expect("an id");
    server.post(&format!("/v1/runs/{id}/cancel"), &json!({ "compensate": true })).await;
    let over = wait_until(&server, |run| run["nodes"][0]["undo"]["job_id"].is_string()).await;
    let undo = over["nodes"][0]["undo"]["job_id"].as_str().expect("an id");
    let undo = server.get(&format!("/v1/jobs/{undo}")).await.json;
    assert_eq!(undo["env"]["saga_idempotency_key"], "refund-7", "{undo}");

    job["compensation"]["idempotency_key"] = json!("-");
    let refused = server.post("/v1/jobs", &job).await;
    refused.is_problem(400, "invalid_argument");
    assert_eq!(refused.fields(), ["compensation.idempotency_key"]);
}
