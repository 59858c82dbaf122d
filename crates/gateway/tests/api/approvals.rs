//! Policy asks, people answer.

use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::approvals_client::ApprovalsClient;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::support::{Closed, POLICY, ScriptedWorker, Server, hello, succeeded};

fn deploy() -> Value {
    json!({ "topic": "job.deploy", "payload": { "to": "production" } })
}

fn pay() -> Value {
    json!({ "topic": "job.pay", "capability": "transfer", "risk_tags": ["money", "external"] })
}

#[tokio::test]
async fn a_job_waits_for_a_second_person_and_then_runs() {
    let server = Server::governed().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit_as_ann(deploy()).await;

    let listed = server.get("/v1/approvals").await.json;
    let question = &listed["approvals"][0];
    assert_eq!((&question["job_id"], &question["submitter"]), (&json!(id), &json!("ann")));
    assert_eq!((&question["rule"], &question["reason"]), (&json!("deploys"), &json!("deploys need a second person")));
    assert_eq!(question["payload"], json!({ "to": "production" }));
    assert_eq!((&question["approvers_needed"], &question["approved_by"]), (&json!(1), &json!([])));
    assert_eq!(
        (&question["asked_at"], &question["expires_at"]),
        (&json!("2023-11-14T22:13:20.000Z"), &json!("2023-11-14T23:13:20.000Z"))
    );

    let body = json!({ "request_hash": question["request_hash"], "rule_hash": question["rule_hash"], "note": "go" });
    let reply = server.post_as("bob", &format!("/v1/jobs/{id}/approve"), &body).await;
    let expected = json!({ "job_id": id, "state": "SCHEDULED", "approved_by": ["bob"], "approvers_needed": 1 });
    assert_eq!((reply.status, &reply.json), (200, &expected), "{reply:?}");
    worker.run_one(Some(succeeded("1"))).await;

    let job = server.job(&id).await;
    assert_eq!((&job["state"], &job["approval"]["rule"]), (&json!("SUCCEEDED"), &json!("deploys")));
    assert_eq!(job["approval"]["votes"][0]["actor"], "bob");
    assert!(job["approval"]["granted_at"].is_string(), "{job}");
    assert_eq!(server.get("/v1/approvals").await.json, json!({ "approvals": [] }));
}

#[tokio::test]
async fn the_submitter_cannot_approve_but_may_reject() {
    let server = Server::governed().await;
    let id = server.submit_as_ann(deploy()).await;
    let ballot = server.ballot(&id).await;
    let reply = server.post_as("ann", &format!("/v1/jobs/{id}/approve"), &ballot).await;
    reply.is_problem(409, "self_approval");
    assert_eq!(server.job(&id).await["state"], "APPROVAL_REQUIRED");

    let mut request = tonic::Request::new(v1::AnswerApprovalRequest {
        job_id: id.clone(),
        request_hash: ballot["request_hash"].as_str().expect("a hash").to_owned(),
        rule_hash: ballot["rule_hash"].as_str().expect("a hash").to_owned(),
        note: "a mistake".into(),
        acknowledge_hidden: false,
    });
    request.metadata_mut().insert("x-lockgate-actor", "ann".parse().expect("metadata"));
    let mut grpc = ApprovalsClient::new(server.channel().await);
    let again = tonic::Request::from_parts(request.metadata().clone(), tonic::Extensions::new(), request.get_ref().clone());
    let status = grpc.approve(again).await.expect_err("refused");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.get_error_details().error_info().map(|info| info.reason.as_str()), Some("self_approval"));
    let rejected = grpc.reject(request).await.expect("taken").into_inner();
    assert_eq!(rejected.state(), v1::JobState::Denied);
    let job = server.job(&id).await;
    assert_eq!(job["last_error"], json!({ "reason": "approval_rejected", "message": "ann rejected it: a mistake" }));
}

#[tokio::test]
async fn an_answer_to_another_request_or_another_rule_does_not_count() {
    let server = Server::governed().await;
    let id = server.submit_as_ann(deploy()).await;
    let other = server.submit_as_ann(json!({ "topic": "job.deploy", "payload": { "to": "staging" } })).await;
    let path = format!("/v1/jobs/{id}/approve");
    let ballot = server.ballot(&id).await;

    let for_another =
        json!({ "request_hash": server.ballot(&other).await["request_hash"], "rule_hash": ballot["rule_hash"] });
    let reply = server.post_as("bob", &path, &for_another).await;
    reply.is_problem(409, "stale_approval");
    assert!(reply.json["detail"].as_str().is_some_and(|text| text.contains("another request")), "{reply:?}");
    let of_another_rule = json!({ "request_hash": ballot["request_hash"], "rule_hash": "00" });
    let reply = server.post_as("bob", &path, &of_another_rule).await;
    reply.is_problem(409, "stale_approval");
    assert!(reply.json["detail"].as_str().is_some_and(|text| text.contains("another rule")), "{reply:?}");
    let unread = json!({ "request_hash": "mine", "rule_hash": ballot["rule_hash"] });
    let reply = server.post_as("bob", &path, &unread).await;
    assert_eq!((reply.status, reply.fields()), (400, vec!["request_hash"]), "{reply:?}");

    let job = server.job(&id).await;
    assert_eq!((&job["state"], &job["approval"]["votes"]), (&json!("APPROVAL_REQUIRED"), &json!([])));
}

#[tokio::test]
async fn a_change_of_another_rule_keeps_an_open_question_and_one_of_its_own_does_not() {
    let server = Server::governed().await;
    let id = server.submit_as_ann(deploy()).await;
    let before = server.ballot(&id).await;
    server.apply(&POLICY.replace("shells stay inside", "shells are fenced")).await;
    assert_eq!(server.post_as("bob", &format!("/v1/jobs/{id}/approve"), &before).await.status, 200);

    let id = server.submit_as_ann(deploy()).await;
    let before = server.ballot(&id).await;
    server
        .apply(&POLICY.replace("deploys need a second person", "deploys are never alright").replace(
            "decision: require_approval\n    reason: deploys are never alright\n    approval: {request_expiry: 1h}",
            "decision: deny\n    reason: deploys are never alright",
        ))
        .await;
    server.post_as("bob", &format!("/v1/jobs/{id}/approve"), &before).await;
    let job = server.job_in(&id, "DENIED").await;
    assert_eq!(job["verdict"]["reason"], "deploys are never alright", "a policy that denies by now wins");
}

#[tokio::test]
async fn a_question_nobody_answers_in_time_is_a_denial() {
    let server = Server::governed().await;
    let id = server.submit_as_ann(deploy()).await;
    let ballot = server.ballot(&id).await;
    server.clock.advance(Duration::from_secs(3_601));
    let reply = server.post_as("bob", &format!("/v1/jobs/{id}/approve"), &ballot).await;
    assert_eq!(reply.status, 409, "{reply:?}");
    // Which of the two it is depends on whether the loop that ends it came first.
    assert!(["approval_expired", "wrong_state"].contains(&reply.json["code"].as_str().expect("a code")), "{reply:?}");
    let job = server.job_in(&id, "DENIED").await;
    assert_eq!(job["last_error"]["reason"], "approval_expired");
}

#[tokio::test]
async fn k_of_n_people_must_agree_and_one_person_counts_once() {
    let server = Server::governed().await;
    let id = server.submit_as_ann(pay()).await;
    let (path, ballot) = (format!("/v1/jobs/{id}/approve"), server.ballot(&id).await);
    let job = server.job(&id).await;
    assert_eq!((&job["capability"], &job["risk_tags"]), (&json!("transfer"), &json!(["external", "money"])));
    for _ in 0..2 {
        let reply = server.post_as("bob", &path, &ballot).await;
        let expected = json!({ "job_id": id, "state": "APPROVAL_REQUIRED", "approved_by": ["bob"], "approvers_needed": 2 });
        assert_eq!((reply.status, &reply.json), (200, &expected), "{reply:?}");
    }
    for _ in 0..2 {
        let reply = server.post_as("cid", &path, &ballot).await;
        assert_eq!((reply.status, &reply.json["state"]), (200, &json!("SCHEDULED")), "{reply:?}");
        assert_eq!(reply.json["approved_by"], json!(["bob", "cid"]));
    }
    server.post_as("dan", &path, &ballot).await.is_problem(409, "wrong_state");
}

#[tokio::test]
async fn two_who_answer_at_once_are_one_grant() {
    let server = Server::governed().await;
    for _ in 0..20 {
        let id = server.submit_as_ann(deploy()).await;
        let (path, ballot) = (format!("/v1/jobs/{id}/approve"), server.ballot(&id).await);
        let (bob, cid) = tokio::join!(server.post_as("bob", &path, &ballot), server.post_as("cid", &path, &ballot));
        let mut statuses = [bob.status, cid.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{bob:?} {cid:?}");
        let job = server.job(&id).await;
        assert_eq!(job["approval"]["votes"].as_array().map(Vec::len), Some(1), "{job}");
    }
}

#[tokio::test]
async fn another_tenant_neither_sees_nor_answers_a_question() {
    let server = Server::governed().await;
    let id = server.submit_as_ann(deploy()).await;
    let ballot = server.ballot(&id).await;
    let other = |method, path: &str| server.request(method, path).header("x-lockgate-tenant", "other");
    let listed = server.send(other("GET", "/v1/approvals"), "").await;
    assert_eq!(listed.json, json!({ "approvals": [] }));
    let post = other("POST", &format!("/v1/jobs/{id}/approve")).header("content-type", "application/json");
    server.send(post.header("x-lockgate-actor", "bob"), ballot.to_string()).await.is_problem(404, "not_found");
}

#[tokio::test]
async fn questions_are_listed_oldest_first_and_page_by_page_on_both_doors() {
    let server = Server::governed().await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(server.submit_as_ann(deploy()).await);
    }
    let ids = |page: &Value| -> Vec<String> {
        let list = page["approvals"].as_array().expect("a list");
        list.iter().map(|question| question["job_id"].as_str().expect("an id").to_owned()).collect()
    };
    let page = server.get("/v1/approvals?limit=2").await.json;
    assert_eq!(ids(&page), asked[..2]);
    let cursor = page["next_cursor"].as_str().expect("more").to_owned();
    assert_eq!(ids(&server.get(&format!("/v1/approvals?limit=2&cursor={cursor}")).await.json), asked[2..]);

    let mut grpc = ApprovalsClient::new(server.channel().await);
    let request = v1::ListApprovalsRequest { limit: 2, cursor };
    let page = grpc.list_approvals(request).await.expect("listed").into_inner();
    assert_eq!(page.approvals.iter().map(|question| question.job_id.clone()).collect::<Vec<_>>(), asked[2..]);
    assert_eq!((page.next_cursor.as_str(), page.approvals[0].rule.as_str()), ("", "deploys"));
}

/// The hashes of the only open question, as a key's bearer sees it.
async fn question(server: &Closed, key: &str) -> Value {
    let listed = server.get_as(key, "/v1/approvals").await;
    assert_eq!(listed.status, 200, "{listed:?}");
    listed.json["approvals"][0].clone()
}

#[tokio::test]
async fn who_may_not_see_the_payload_is_told_so_and_approves_only_knowing_it() {
    let server = Closed::start().await;
    let put = server.request("PUT", "/v1/policy").header("authorization", format!("Bearer {}", server.admin_key));
    assert_eq!(server.send(put.header("content-type", "application/yaml"), POLICY.to_owned()).await.status, 200);
    let submitter = server.key("submitter", Some("acme")).await;
    let (sees, blind) = (server.key("approver", Some("acme")).await, server.key_with("admin", Some("acme"), false).await);
    let submit = async |job: Value| {
        let reply = server.post_as(&submitter, "/v1/jobs", &job).await;
        reply.json["job_id"].as_str().expect("an id").to_owned()
    };

    let id = submit(pay_secretly()).await;
    let seen = question(&server, &sees).await;
    assert_eq!((&seen["payload"], &seen["payload_hidden"]), (&json!({ "to": "plum" }), &Value::Null));
    let hidden = question(&server, &blind).await;
    assert_eq!((&hidden["payload"], &hidden["payload_hidden"]), (&Value::Null, &json!(true)), "{hidden}");

    let path = format!("/v1/jobs/{id}/approve");
    let mut ballot = json!({ "request_hash": hidden["request_hash"], "rule_hash": hidden["rule_hash"] });
    let refused = server.post_as(&blind, &path, &ballot).await;
    refused.is_problem(409, "payload_hidden");
    assert!(refused.text.contains("acknowledge_hidden: true"), "it says what to do: {refused:?}");
    assert_eq!(question(&server, &sees).await["approved_by"], json!([]), "it was no vote");
    ballot["acknowledge_hidden"] = json!(true);
    let taken = server.post_as(&blind, &path, &ballot).await;
    assert_eq!((taken.status, &taken.json["approved_by"]), (200, &json!(["admin-1"])), "{taken:?}");
    // Who sees the payload needs to acknowledge nothing, and saying so all the same changes nothing.
    let taken = server.post_as(&sees, &path, &ballot).await;
    assert_eq!((taken.status, &taken.json["state"]), (200, &json!("SCHEDULED")), "{taken:?}");

    let votes = server.get_as(&sees, &format!("/v1/jobs/{id}")).await.json["approval"]["votes"].clone();
    assert_eq!((&votes[0]["payload_hidden"], &votes[1]["payload_hidden"]), (&json!(true), &Value::Null), "{votes}");
    let audit = server.get_as(&sees, "/v1/audit").await;
    let rows = audit.json["rows"].as_array().expect("rows").iter();
    let mut unseen: Vec<(&str, bool)> = rows
        .filter(|row| row["action"] == "approved")
        .map(|row| (row["actor"].as_str().expect("an actor"), row["detail"]["event"]["payload_hidden"] == json!(true)))
        .collect();
    unseen.sort_unstable();
    assert_eq!(unseen, [("admin-1", true), ("approver-1", false)]);

    let id = submit(deploy()).await;
    let hidden = question(&server, &blind).await;
    let ballot = json!({ "request_hash": hidden["request_hash"], "rule_hash": hidden["rule_hash"] });
    let rejected = server.post_as(&blind, &format!("/v1/jobs/{id}/reject"), &ballot).await;
    assert_eq!((rejected.status, &rejected.json["state"]), (200, &json!("DENIED")), "{rejected:?}");
}

fn pay_secretly() -> Value {
    json!({ "topic": "job.pay", "risk_tags": ["money"], "payload": { "to": "plum" } })
}

#[tokio::test]
async fn over_grpc_too_hidden_payloads_are_named_and_must_be_acknowledged() {
    let server = Closed::start().await;
    let put = server.request("PUT", "/v1/policy").header("authorization", format!("Bearer {}", server.admin_key));
    assert_eq!(server.send(put.header("content-type", "application/yaml"), POLICY.to_owned()).await.status, 200);
    let submitter = server.key("submitter", Some("acme")).await;
    let blind = server.key_with("approver", Some("acme"), false).await;
    assert_eq!(server.post_as(&submitter, "/v1/jobs", &deploy()).await.status, 201);

    let mut grpc = ApprovalsClient::new(server.channel().await);
    let as_blind = || {
        let mut metadata = tonic::metadata::MetadataMap::new();
        metadata.insert("authorization", format!("Bearer {blind}").parse().expect("metadata"));
        metadata
    };
    let mut list = tonic::Request::new(v1::ListApprovalsRequest { limit: 1, cursor: String::new() });
    *list.metadata_mut() = as_blind();
    let asked = grpc.list_approvals(list).await.expect("listed").into_inner().approvals.remove(0);
    assert!(asked.payload_hidden && asked.payload_json.is_empty(), "{asked:?}");
    for acknowledge_hidden in [false, true] {
        let mut vote = tonic::Request::new(v1::AnswerApprovalRequest {
            job_id: asked.job_id.clone(),
            request_hash: asked.request_hash.clone(),
            rule_hash: asked.rule_hash.clone(),
            note: String::new(),
            acknowledge_hidden,
        });
        *vote.metadata_mut() = as_blind();
        match grpc.approve(vote).await {
            Ok(taken) => assert!(acknowledge_hidden && taken.into_inner().state() == v1::JobState::Scheduled),
            Err(status) => {
                assert!(!acknowledge_hidden && status.code() == Code::FailedPrecondition, "{status:?}");
                let reason = status.get_error_details().error_info().map(|info| info.reason.clone());
                assert_eq!(reason.as_deref(), Some("payload_hidden"));
            }
        }
    }
}
