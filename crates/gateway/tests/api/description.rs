//! What `/openapi.json` promises beyond its form: examples that are accepted, links that lead somewhere, bounds that are kept.

use std::collections::BTreeMap;

use lockgate_proto::v1::result;
use serde_json::{Value, json};

use crate::support::{Closed, ScriptedWorker, Server, hello};

/// Every operation of the document: method, path and what is said about it.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().expect("paths").iter();
    paths
        .flat_map(|(path, item)| {
            let item = item.as_object().expect("operations").iter();
            item.map(|(method, operation)| (method.to_uppercase(), path.clone(), operation))
        })
        .collect()
}

/// The path with a name for each parameter.
fn filled(path: &str) -> String {
    let names = [("{id}", "nobody"), ("{kind}", "pools"), ("{name}", "nightly"), ("{pool}", "echo"), ("{tenant}", "acme")];
    names.into_iter().fold(path.to_owned(), |path, (parameter, name)| path.replace(parameter, name))
}

#[tokio::test]
async fn every_example_of_a_body_is_accepted() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json;
    let works = [
        "explain_policy",
        "put_config",
        "put_dag",
        "put_policy",
        "put_schedules",
        "replay_dead_letters",
        "start_run",
        "submit_job",
        "submit_jobs",
    ];
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().expect("an id");
        for (kind, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            let example = content.get("example").unwrap_or_else(|| panic!("{id} has no example of {kind}"));
            let body = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
            let request = server.request(&method, &filled(&path));
            let reply = server.send(request.header("content-type", kind), body).await;
            // The clock of this test stands in 1970: there is nothing to make up for yet.
            let too_early = id == "backfill_schedule" && reply.text.contains("lies in the future");
            let is_fine = match works.contains(&id) {
                true => reply.status < 300,
                false => too_early || [200, 201, 404, 409].contains(&reply.status),
            };
            assert!(is_fine, "{id} as {kind}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn every_link_names_an_operation_and_a_parameter_that_it_has() {
    let document = Server::start().await.get("/openapi.json").await.json;
    let operations = operations(&document);
    let known: BTreeMap<&str, &Value> =
        operations.iter().map(|(_, _, operation)| (operation["operationId"].as_str().expect("an id"), *operation)).collect();
    let mut links = 0;
    for (from, operation) in &known {
        let responses = operation["responses"].as_object().expect("responses").values();
        for (to, link) in responses.filter_map(|response| response["links"].as_object()).flatten() {
            assert_eq!(link["operationId"], **to, "{from}");
            let target = known.get(to.as_str()).unwrap_or_else(|| panic!("{from} leads to {to}, which is nowhere"));
            for parameter in link["parameters"].as_object().into_iter().flat_map(serde_json::Map::keys) {
                let mut there = target["parameters"].as_array().into_iter().flatten();
                assert!(there.any(|known| known["name"] == **parameter), "{from} to {to}: {parameter}");
            }
            links += 1;
        }
    }
    assert!(links > 40, "{links}");
}

#[tokio::test]
async fn a_server_that_asks_for_credentials_says_so() {
    let server = Closed::start().await;
    let document = server.send(server.request("GET", "/openapi.json"), "").await.json;
    for (method, path, operation) in operations(&document) {
        let probe = ["/healthz", "/readyz"].contains(&path.as_str());
        let expected = if probe { json!([{}]) } else { json!([{ "bearer": [] }]) };
        assert_eq!(operation["security"], expected, "{method} {path}");
    }
    let open = Server::start().await.get("/openapi.json").await.json;
    assert_eq!(open["paths"]["/v1/jobs"]["get"]["security"], json!([{}, { "bearer": [] }]));
}

#[tokio::test]
async fn numbers_and_texts_have_the_bounds_that_are_enforced() {
    let server = Server::start().await;
    let reply = server.get("/openapi.json").await;
    assert!(!reply.text.contains("int32"), "a number without a sign needs more than 31 bits");
    let job = &reply.json["components"]["schemas"]["NewJob"]["properties"];
    assert_eq!(job["workflow_id"]["pattern"], job["topic"]["pattern"]);
    assert_eq!((&job["env"]["maxProperties"], &job["requires"]["maxItems"]), (&json!(64), &json!(64)));
    let reasons = reply.json["components"]["schemas"]["SoughtReason"]["enum"].as_array().expect("an enum");
    for reason in reasons {
        let found = server.get(&format!("/v1/dead-letters?reason={}", reason.as_str().expect("a text"))).await;
        assert_eq!(found.status, 200, "{found:?}");
    }
    let after = format!("/v1/jobs/nobody/events?after={}", u64::MAX);
    server.get(&after).await.is_problem(400, "invalid_argument");
    let both = server.request("GET", "/v1/jobs/nobody/events?after=x").header("last-event-id", "-1");
    let refused = server.send(both, "").await;
    refused.is_problem(400, "invalid_argument");
    assert_eq!(refused.fields(), ["last-event-id", "after"]);
    for cursor in ["0a", "-1", "A"] {
        server.get(&format!("/v1/jobs?cursor={cursor}")).await.is_problem(400, "invalid_argument");
    }
}

#[tokio::test]
async fn events_outcomes_and_reasons_of_why_are_among_those_that_are_listed() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json;
    let schemas = &document["components"]["schemas"];
    let is_listed = |set: &str, name: &Value| {
        let names = schemas[set]["enum"].as_array().unwrap_or_else(|| panic!("{set} is no enum"));
        assert!(names.contains(name), "{set} has no {name}");
    };
    let id = server.submit(json!({ "topic": "job.a" })).await;
    is_listed("WhyReason", &server.get(&format!("/v1/jobs/{id}/why")).await.json["reason"]);
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    worker.run_one(Some(result::Outcome::FailedFatal(result::FailedFatal { error: "no such file".to_owned() }))).await;
    is_listed("WhyReason", &server.get(&format!("/v1/jobs/{id}/why")).await.json["reason"]);
    is_listed("AttemptOutcome", &server.get(&format!("/v1/jobs/{id}")).await.json["attempts"][0]["outcome"]);
    let outcomes = schemas["AttemptOutcome"]["enum"].as_array().expect("an enum");
    assert!(!outcomes.contains(&json!("submitted")) && !outcomes.contains(&json!("started")), "{outcomes:?}");
}
