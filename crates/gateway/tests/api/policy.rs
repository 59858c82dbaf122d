//! Policies put in force, looked at, taken back.

use lockgate_proto::v1;
use lockgate_proto::v1::admin_client::AdminClient;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{POLICY, Server};

const BROKEN: &str = "\
version: 1
rules:
  - id: a
    mach: {topics: [job.x]}
    decision: alow
    reason: r
  - id: a
    match: {topics: [job.x]}
    decision: deny
    reason: r
";

const DENY_ALL: &str = "version: 1\ndefault: {decision: deny, reason: closed for today}\n";

#[tokio::test]
async fn without_a_policy_the_built_in_one_is_shown() {
    let server = Server::start().await;
    let builtin = json!({ "snapshot": "builtin:allow", "version": 0, "in_force": true });
    assert_eq!(server.get("/v1/policy").await.json, builtin);
    assert_eq!(server.get("/v1/policy/snapshots").await.json, json!({ "policies": [builtin] }));
}

#[tokio::test]
async fn a_broken_policy_is_refused_with_every_fault_and_changes_nothing() {
    let server = Server::governed().await;
    let before = server.get("/v1/policy").await.json;
    let reply = server.put_policy("?file=house.yaml", BROKEN).await;
    reply.is_problem(400, "invalid_argument");
    let errors = reply.json["errors"].as_array().expect("a list");
    let told: Vec<&str> = errors.iter().filter_map(|error| error["message"].as_str()).collect();
    for fault in ["house.yaml:4: ", "did you mean \"match\"?", "house.yaml:5: ", "did you mean \"allow\"?", "house.yaml:7: "]
    {
        assert!(told.iter().any(|text| text.contains(fault)), "{fault} is not in {told:#?}");
    }

    let mut grpc = AdminClient::new(server.channel().await);
    let request = v1::ActivatePolicyRequest { file: String::new(), text: BROKEN.into(), expected_version: None };
    let status = grpc.activate_policy(request).await.expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("policy.yaml:5: "), "{status:?}");
    assert_eq!(server.get("/v1/policy").await.json, before);
}

#[tokio::test]
async fn a_policy_is_applied_listed_shown_and_rolled_back() {
    let server = Server::start().await;
    let first = server.apply(POLICY).await;
    assert_eq!((&first["version"], &first["unchanged"], &first["recalled"]), (&json!(1), &json!(false), &json!(0)));
    let again = server.apply(POLICY).await;
    assert_eq!((&again["version"], &again["unchanged"]), (&json!(1), &json!(true)));
    let second = server.apply(DENY_ALL).await;
    assert_eq!(second["version"], 2);
    let reply = server.post("/v1/jobs", &json!({ "topic": "job.echo" })).await;
    assert_eq!(reply.json["state"], "DENIED", "{reply:?}");

    let shown = server.get("/v1/policy").await.json;
    assert_eq!((&shown["text"], &shown["snapshot"]), (&json!(DENY_ALL), &second["snapshot"]));
    let listed = server.get("/v1/policy/snapshots").await.json;
    let snapshots: Vec<&Value> = listed["policies"].as_array().expect("a list").iter().map(|p| &p["snapshot"]).collect();
    assert_eq!(snapshots, [&second["snapshot"], &first["snapshot"]]);
    let old = first["snapshot"].as_str().expect("an id");
    let earlier = server.get(&format!("/v1/policy/snapshots/{old}")).await.json;
    assert_eq!((&earlier["text"], &earlier["in_force"], &earlier["version"]), (&json!(POLICY), &json!(false), &json!(1)));
    server.get("/v1/policy/snapshots/sha256:00").await.is_problem(404, "not_found");

    let back = server.post("/v1/policy/rollback", &json!({ "snapshot": old, "expected_version": 2 })).await;
    assert_eq!((back.status, &back.json["version"], &back.json["snapshot"]), (200, &json!(3), &json!(old)), "{back:?}");
    let reply = server.post("/v1/jobs", &json!({ "topic": "job.echo" })).await;
    assert_eq!(reply.json["state"], "SCHEDULED", "{reply:?}");
    server.post("/v1/policy/rollback", &json!({ "snapshot": "sha256:00" })).await.is_problem(404, "not_found");
}

#[tokio::test]
async fn who_expects_another_version_is_told_that_it_is_outdated() {
    let server = Server::governed().await;
    let reply = server.put_policy("?expected_version=0", DENY_ALL).await;
    reply.is_problem(409, "outdated");
    assert!(reply.json["detail"].as_str().is_some_and(|text| text.contains("version 1")), "{reply:?}");
    let mut grpc = AdminClient::new(server.channel().await);
    let request = v1::ActivatePolicyRequest { file: String::new(), text: DENY_ALL.into(), expected_version: Some(7) };
    assert_eq!(grpc.activate_policy(request).await.expect_err("refused").code(), Code::Aborted);
    assert_eq!(server.get("/v1/policy").await.json["version"], 1);

    let body = json!({ "file": "night.yaml", "text": DENY_ALL, "expected_version": 1 }).to_string();
    let request = server.request("PUT", "/v1/policy").header("content-type", "application/json");
    let reply = server.send(request, body).await;
    assert_eq!((reply.status, &reply.json["version"]), (200, &json!(2)), "{reply:?}");
    let request = server.request("PUT", "/v1/policy").header("content-type", "text/plain");
    server.send(request, DENY_ALL).await.is_problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn both_doors_show_the_same_policies() {
    let server = Server::governed().await;
    let mut grpc = AdminClient::new(server.channel().await);
    let shown = server.get("/v1/policy").await.json;
    let policy = grpc.get_policy(v1::GetPolicyRequest::default()).await.expect("found").into_inner();
    assert_eq!(
        (&policy.snapshot, &policy.text),
        (&shown["snapshot"].as_str().expect("an id").to_owned(), &POLICY.to_owned())
    );
    assert_eq!((policy.version, policy.in_force, policy.actor.as_str()), (1, true, "anonymous"));
    let listed = grpc.list_policies(v1::ListPoliciesRequest {}).await.expect("listed").into_inner().policies;
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].text.as_str(), listed[0].in_force), ("", true));
    let back = v1::RollBackPolicyRequest { snapshot: policy.snapshot.clone(), expected_version: Some(1) };
    assert!(grpc.roll_back_policy(back).await.expect("in force already").into_inner().unchanged);
}

#[tokio::test]
async fn a_denied_job_says_what_would_be_allowed() {
    let server = Server::governed().await;
    let reply = server.post("/v1/jobs", &json!({ "topic": "job.forbidden" })).await;
    assert_eq!(reply.json["state"], "DENIED", "{reply:?}");
    let job = server.job(reply.json["job_id"].as_str().expect("an id")).await;
    assert_eq!((&job["verdict"]["rule"], &job["verdict"]["reason"]), (&json!("forbidden"), &json!("nobody does this")));
    assert_eq!(job["verdict"]["remediations"], json!([{ "title": "Use the safe one", "replacement_topic": "job.safe" }]));
}

#[tokio::test]
async fn an_explanation_tells_every_rule_that_was_looked_at() {
    let server = Server::governed().await;
    let reply = server.post("/v1/policy/explain", &json!({ "topic": "job.pay", "risk_tags": ["money"] })).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json["verdict"]["rule"], "payments");
    let steps: Vec<(&str, &str)> = reply.json["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|step| (step["rule"].as_str().expect("a rule"), step["outcome"].as_str().expect("an outcome")))
        .collect();
    assert_eq!(steps, [("forbidden", "missed"), ("deploys", "missed"), ("payments", "matched")]);
    assert!(reply.json["steps"][0]["why"].as_str().is_some_and(|why| why.contains("topic")), "{reply:?}");
    assert_eq!(server.stored().await, 0, "asking submits nothing");
}

#[tokio::test]
async fn who_asks_decides_what_a_rule_about_actors_says() {
    let server = Server::start().await;
    server
        .apply("version: 1\ndefault: {decision: allow}\nrules:\n  - id: robots\n    match: {actor_types: [agent]}\n    decision: deny\n    reason: people only\n")
        .await;
    let submit = async |kind: &str| {
        let request = server.request("POST", "/v1/jobs").header("content-type", "application/json");
        server.send(request.header("x-lockgate-actor-type", kind), r#"{"topic":"job.x"}"#).await.json
    };
    assert_eq!(submit("person").await["state"], "SCHEDULED");
    let denied = submit("agent").await;
    assert_eq!(denied["state"], "DENIED");
    assert_eq!(server.job(denied["job_id"].as_str().expect("an id")).await["actor_type"], "agent");
}

#[tokio::test]
async fn breakers_are_none_while_the_kernel_is_in_process() {
    let server = Server::start().await;
    assert_eq!(server.get("/v1/breakers").await.json, json!({ "breakers": [] }));
    let mut grpc = AdminClient::new(server.channel().await);
    assert!(grpc.list_breakers(v1::ListBreakersRequest {}).await.expect("listed").into_inner().breakers.is_empty());
}
