//! What comes out: redacted, held back, let go.

use lockgate_proto::v1;
use lockgate_proto::v1::approvals_client::ApprovalsClient;
use serde_json::json;

use crate::support::{ScriptedWorker, Server, hello, succeeded};

/// A key that no scanner lets pass, put together so that none finds it here.
fn key() -> String {
    ["AKIA", "Z7QX5M2LW9TB4KPC"].concat()
}

#[tokio::test]
async fn a_private_address_is_cut_out_of_a_result() {
    let server = Server::governed().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit_as_ann(json!({ "topic": "job.mail" })).await;
    worker.run_one(Some(succeeded(r#"{"to":"ann.smith@example.org","n":1}"#))).await;
    let job = server.job_in(&id, "SUCCEEDED").await;
    assert_eq!(job["result"]["n"], 1, "{job}");
    assert!(!job.to_string().contains("ann.smith"), "{job}");
    let output = &job["output"];
    assert_eq!(
        (&output["stage"], &output["decision"], &output["rule"]),
        (&json!("checked"), &json!("redact"), &json!("no-addresses"))
    );
    let finding = output["findings"][0].as_object().expect("a finding");
    assert_eq!((&finding["kind"], &finding["length"]), (&json!("pii"), &json!("ann.smith@example.org".len())));
    assert_eq!(finding.keys().collect::<Vec<_>>(), ["hash", "kind", "length", "offset", "rule"], "never the text itself");
}

#[tokio::test]
async fn a_key_is_held_back_until_somebody_lets_it_go() {
    let server = Server::governed().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let result = json!({ "aws_access_key_id": key() });
    let id = server.submit_as_ann(json!({ "topic": "job.leak" })).await;
    worker.run_one(Some(succeeded(&result.to_string()))).await;

    let job = server.job_in(&id, "OUTPUT_QUARANTINED").await;
    assert!(job.get("result").is_none() && !job.to_string().contains(&key()), "{job}");
    assert_eq!(
        (&job["output"]["decision"], &job["last_error"]["reason"]),
        (&json!("quarantine"), &json!("output_quarantined"))
    );
    let mut grpc = server.grpc().await;
    let seen = grpc.get_job(v1::GetJobRequest { job_id: id.clone() }).await.expect("found").into_inner();
    assert!(seen.result_json.is_empty());
    let output = seen.output.expect("checked");
    assert_eq!((output.stage.as_str(), output.rule.as_str(), output.findings.len()), ("checked", "no-keys", 1));

    let reply = server.post_as("bob", &format!("/v1/jobs/{id}/release"), &json!({ "note": "a test key" })).await;
    assert_eq!((reply.status, &reply.json), (200, &json!({ "job_id": id, "state": "SUCCEEDED" })), "{reply:?}");
    let job = server.job(&id).await;
    assert_eq!((&job["result"], &job["output"]["released_by"]), (&result, &json!("bob")));
    assert!(job.get("last_error").is_none(), "{job}");
    server.post_as("bob", &format!("/v1/jobs/{id}/release"), &json!({})).await.is_problem(409, "wrong_state");
}

#[tokio::test]
async fn a_result_is_let_go_over_grpc_too() {
    let server = Server::governed().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit_as_ann(json!({ "topic": "job.leak" })).await;
    worker.run_one(Some(succeeded(&json!(key()).to_string()))).await;
    server.job_in(&id, "OUTPUT_QUARANTINED").await;
    let mut grpc = ApprovalsClient::new(server.channel().await);
    let request = v1::ReleaseOutputRequest { job_id: id.clone(), note: String::new() };
    let released = grpc.release_output(request).await.expect("released").into_inner();
    assert_eq!((released.job_id, released.state), (id, v1::JobState::Succeeded.into()));
}

#[tokio::test]
async fn a_result_that_no_rule_looks_at_says_nothing_about_a_check() {
    let server = Server::governed().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit_as_ann(json!({ "topic": "job.echo" })).await;
    worker.run_one(Some(succeeded("1"))).await;
    let job = server.job(&id).await;
    assert_eq!((&job["result"], job.get("output")), (&json!(1), None));
}

#[tokio::test]
async fn conditions_travel_with_the_assignment_and_show_in_the_verdict() {
    let server = Server::governed().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit_as_ann(json!({ "topic": "job.sh", "capability": "shell" })).await;
    let assignment = worker.run_one(Some(succeeded("1"))).await;
    assert_eq!((assignment.network, assignment.exec, assignment.timeout_ms), (Some(false), Some(true), 1_500));
    let verdict = server.job(&id).await["verdict"].clone();
    assert_eq!((&verdict["decision"], &verdict["rule"]), (&json!("allow_with_constraints"), &json!("fenced")));
    assert_eq!(verdict["constraints"], json!({ "max_runtime_ms": 1500, "network": "deny", "exec": "allow" }));
}
