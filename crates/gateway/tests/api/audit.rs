//! What was decided is on record, and the record is whole.

use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::admin_client::AdminClient;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Server};

async fn with_records() -> Server {
    let server = Server::governed().await;
    let id = server.submit_as_ann(json!({ "topic": "job.deploy" })).await;
    let ballot = server.ballot(&id).await;
    assert_eq!(server.post_as("bob", &format!("/v1/jobs/{id}/approve"), &ballot).await.status, 200);
    let other = server.request("POST", "/v1/jobs").header("content-type", "application/json");
    let denied = server.send(other.header("x-lockgate-tenant", "other"), r#"{"topic":"job.forbidden"}"#).await;
    assert_eq!(denied.json["state"], "DENIED");
    server
}

fn acts(page: &Value) -> Vec<(&str, &str)> {
    let rows = page["rows"].as_array().expect("a list").iter();
    rows.map(|row| (row["action"].as_str().expect("an action"), row["actor"].as_str().expect("an actor"))).collect()
}

#[tokio::test]
async fn a_tenant_sees_its_own_rows_and_no_others() {
    let server = with_records().await;
    let page = server.get("/v1/audit").await.json;
    assert_eq!(
        acts(&page),
        [("policy_activated", "anonymous"), ("approval_asked", "lockgate"), ("approved", "bob")],
        "{page}"
    );
    assert_eq!(page["rows"][2]["detail"]["event"]["rule"], "deploys");
    let other = server.send(server.request("GET", "/v1/audit").header("x-lockgate-tenant", "other"), "").await;
    assert_eq!(acts(&other.json), [("job_denied", "lockgate")], "{other:?}");
}

#[tokio::test]
async fn rows_are_read_page_by_page_on_both_doors() {
    let server = with_records().await;
    let mut seen = Vec::new();
    let mut after = json!(0);
    loop {
        let page = server.get(&format!("/v1/audit?limit=1&after={after}")).await.json;
        seen.extend(acts(&page).into_iter().map(|(action, _)| action.to_owned()));
        let Some(next) = page.get("next_after") else { break };
        after = next.clone();
    }
    assert_eq!(seen, ["policy_activated", "approval_asked", "approved"], "the other tenant's row is passed over");

    let mut grpc = AdminClient::new(server.channel().await);
    let rows = grpc.list_audit(v1::ListAuditRequest { after: 0, limit: 0 }).await.expect("listed").into_inner().rows;
    assert_eq!(rows.iter().map(|row| row.action.clone()).collect::<Vec<_>>(), seen);
    let detail: Value = serde_json::from_slice(&rows[1].detail_json).expect("JSON");
    assert_eq!(detail["submitter"], "ann");
    let reply = server.get("/v1/audit?after=first&limit=many").await;
    assert_eq!((reply.status, reply.fields()), (400, vec!["after", "limit"]), "{reply:?}");
}

#[tokio::test]
async fn a_trail_that_nobody_touched_verifies_once_it_is_sealed() {
    let server = with_records().await;
    let sealed = async {
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        loop {
            let verified = server.get("/v1/audit/verify").await.json;
            assert_eq!(verified["intact"], true, "{verified}");
            if verified["unsealed"] == 0 {
                return verified;
            }
            pause.tick().await;
        }
    };
    let verified = tokio::time::timeout(PATIENCE, sealed).await.expect("sealed in time");
    assert_eq!(verified["rows"], 4);
    assert!(verified["blocks"].as_u64().is_some_and(|blocks| blocks >= 1), "{verified}");
    let mut grpc = AdminClient::new(server.channel().await);
    let same = grpc.verify_audit(v1::VerifyAuditRequest {}).await.expect("verified").into_inner();
    assert_eq!((same.rows, same.unsealed, same.broken.as_str()), (4, 0, ""));
}
