//! Jobs that ended badly, and their second life.

use std::time::Duration;

use lockgate_proto::v1::{self, result};
use serde_json::json;

use crate::support::{PATIENCE, ScriptedWorker, Server, hello, succeeded};

fn fatal(error: &str) -> Option<result::Outcome> {
    Some(result::Outcome::FailedFatal(result::FailedFatal { error: error.to_owned() }))
}

/// A server with dead jobs of the topics job.a, job.a and job.b.
async fn with_dead_jobs() -> (Server, ScriptedWorker) {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    for (topic, priority, team) in [("job.a", "default", "blue"), ("job.a", "high", "red"), ("job.b", "default", "blue")] {
        server.submit(json!({ "topic": topic, "priority": priority, "labels": { "team": team } })).await;
        worker.run_one(fatal("no such file")).await;
    }
    (server, worker)
}

#[tokio::test]
async fn dead_letters_are_listed_filtered_and_shown() {
    let (server, _worker) = with_dead_jobs().await;
    let list = async |query: &str| {
        let reply = server.get(&format!("/v1/dead-letters?{query}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json["dead_letters"].as_array().expect("a list").clone()
    };
    assert_eq!(list("").await.len(), 3);
    assert_eq!(list("topic=job.a").await.len(), 2);
    assert_eq!(list("topic=job.a&priority=high").await.len(), 1);
    assert_eq!(list("reason=fatal").await.len(), 3);
    assert_eq!(list("reason=agent_lost").await.len(), 0);
    assert_eq!(list("tenant=other").await.len(), 0);
    assert_eq!(list("label=team%3Dblue").await.len(), 2);
    assert_eq!(list("label=team%3Dblue&topic=job.a").await.len(), 1);
    server.get("/v1/dead-letters?label=team%3Dblue&label=team%3Dred").await.is_problem(400, "invalid_argument");

    let listed = &list("topic=job.b").await[0];
    let id = listed["job_id"].as_str().expect("an id");
    assert_eq!(&server.get(&format!("/v1/dead-letters/{id}")).await.json, listed);
    assert_eq!((&listed["state"], &listed["message"]), (&json!("FAILED"), &json!("no such file")));
    assert_eq!(
        server.get("/v1/queues").await.json["dead_letters"],
        json!({ "critical": 0, "high": 1, "default": 2, "low": 0 })
    );
}

#[tokio::test]
async fn a_job_that_died_waiting_counts_no_attempt_anywhere() {
    let server = Server::start().await;
    let id = server.submit(json!({ "topic": "job.a", "deadline_ms": 1_000 })).await;
    server.clock.advance(Duration::from_secs(2));
    let bus_submits = async {
        let mut pause = tokio::time::interval(Duration::from_millis(5));
        loop {
            let bus_submits = server.get("/v1/dead-letters").await.json["dead_letters"].clone();
            if bus_submits != json!([]) {
                return bus_submits;
            }
            pause.tick().await;
        }
    };
    let bus_submits = tokio::time::timeout(PATIENCE, bus_submits).await.expect("the job dies");
    let shown = server.get(&format!("/v1/dead-letters/{id}")).await.json;
    assert_eq!((&bus_submits[0], &shown["attempts"]), (&shown, &json!(0)));
    assert_eq!(server.get(&format!("/v1/jobs/{id}")).await.json["attempt"], 0);
}

#[tokio::test]
async fn one_dead_job_is_replayed_into_a_new_life() {
    let (server, mut worker) = with_dead_jobs().await;
    let bus_submits = server.get("/v1/dead-letters?topic=job.b").await.json;
    let id = bus_submits["dead_letters"][0]["job_id"].as_str().expect("an id").to_owned();
    let reply = server.post(&format!("/v1/dead-letters/{id}/replay"), &json!({})).await;
    assert_eq!(reply.json, json!({ "job_id": id, "state": "SCHEDULED" }), "{reply:?}");
    let again = worker.run_one(Some(succeeded("2"))).await;
    assert_eq!((again.job_id.as_str(), again.life, again.attempt), (id.as_str(), 2, 2));
    assert_eq!(server.get(&format!("/v1/jobs/{id}")).await.json["state"], "SUCCEEDED");
    server.get(&format!("/v1/dead-letters/{id}")).await.is_problem(404, "not_found");
}

#[tokio::test]
async fn many_are_replayed_by_filter_and_a_dry_run_changes_nothing() {
    let (server, worker) = with_dead_jobs().await;
    drop(worker);
    let replay = async |body| {
        let reply = server.post("/v1/dead-letters:replay", &body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        (reply.json["matched"].clone(), reply.json["replayed"].clone())
    };
    assert_eq!(replay(json!({ "topic": "job.a", "dry_run": true })).await, (json!(2), json!(0)));
    assert_eq!(replay(json!({ "labels": { "team": "red" }, "dry_run": true })).await, (json!(1), json!(0)));
    assert_eq!(replay(json!({ "topic": "job.a", "limit": 1 })).await, (json!(1), json!(1)));
    assert_eq!(replay(json!({ "reason": "fatal", "rate": 1000 })).await, (json!(2), json!(2)));
    assert_eq!(replay(json!({})).await, (json!(0), json!(0)));
}

#[tokio::test]
async fn grpc_lists_and_replays_the_same() {
    let (server, worker) = with_dead_jobs().await;
    drop(worker);
    let mut grpc = server.grpc().await;
    let filter = v1::DeadLetterFilter { topic: "job.a".into(), ..v1::DeadLetterFilter::default() };
    let list = v1::ListDeadLettersRequest { filter: Some(filter.clone()), limit: 1, cursor: String::new() };
    let page = grpc.list_dead_letters(list.clone()).await.expect("listed").into_inner();
    assert_eq!(page.dead_letters[0].reason, "fatal");
    let next = grpc.list_dead_letters(v1::ListDeadLettersRequest { cursor: page.next_cursor, ..list }).await;
    let next = next.expect("listed").into_inner();
    assert_ne!(next.dead_letters[0].job_id, page.dead_letters[0].job_id);

    let one = v1::ReplayDeadLettersRequest { job_id: page.dead_letters[0].job_id.clone(), ..Default::default() };
    assert_eq!(grpc.replay_dead_letters(one).await.expect("replayed").into_inner().replayed, 1);
    let rest = v1::ReplayDeadLettersRequest { filter: Some(filter), ..Default::default() };
    let replayed = grpc.replay_dead_letters(rest).await.expect("replayed").into_inner();
    assert_eq!((replayed.matched, replayed.replayed), (1, 1));
    assert_eq!(replayed.job_ids, [next.dead_letters[0].job_id.clone()]);
}

#[tokio::test]
async fn a_discarded_letter_leaves_the_open_ones_for_good() {
    let (server, worker) = with_dead_jobs().await;
    drop(worker);
    let ids = async |query: &str| {
        let reply = server.get(&format!("/v1/dead-letters?{query}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let letters = reply.json["dead_letters"].as_array().expect("a list").clone();
        letters.iter().map(|letter| letter["job_id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    let id = ids("topic=job.b").await.pop().expect("a dead letter");
    let path = format!("/v1/dead-letters/{id}/discard");
    let silent = server.post(&path, &json!({ "reason": " " })).await;
    silent.is_problem(400, "invalid_argument");
    assert_eq!(silent.fields(), ["reason"]);
    for _ in 0..2 {
        let reply = server.post(&path, &json!({ "reason": "paid by hand" })).await;
        assert_eq!(reply.json, json!({ "job_id": id, "state": "FAILED" }), "a repeated call is answered like the first");
    }
    assert_eq!(ids("").await.len(), 2);
    assert_eq!(ids("discarded=true&priority=default&reason=fatal&label=team%3Dblue").await, std::slice::from_ref(&id));
    assert_eq!(ids("discarded=true&priority=high").await, [] as [&str; 0]);
    assert_eq!(ids("discarded=true&reason=agent_lost").await, [] as [&str; 0]);
    server.get("/v1/dead-letters?discarded=maybe").await.is_problem(400, "invalid_argument");
    let shown = server.get(&format!("/v1/dead-letters/{id}")).await.json;
    assert_eq!(shown["discarded"]["reason"], "paid by hand");
    assert_eq!(server.get(&format!("/v1/jobs/{id}")).await.json["discarded"], shown["discarded"]);

    server.post(&format!("/v1/dead-letters/{id}/replay"), &json!({})).await.is_problem(409, "discarded");
    assert_eq!(server.post("/v1/dead-letters:replay", &json!({ "dry_run": true })).await.json["matched"], 2);
    let audit = server.get("/v1/audit").await.json;
    let rows = audit["rows"].as_array().expect("rows").iter();
    let [row] = &rows.filter(|row| row["action"] == "dead_letter_discarded").collect::<Vec<_>>()[..] else {
        panic!("{audit}")
    };
    assert_eq!((&row["subject"], &row["actor"]), (&json!(id), &json!("anonymous")));
    assert_eq!(row["detail"]["event"]["message"], "paid by hand");
}

#[tokio::test]
async fn grpc_discards_too_and_never_what_is_alive() {
    let (server, worker) = with_dead_jobs().await;
    drop(worker);
    let mut grpc = server.grpc().await;
    let id = server.get("/v1/dead-letters?topic=job.b").await.json["dead_letters"][0]["job_id"].clone();
    let id = id.as_str().expect("an id").to_owned();
    let discard = |job_id: &str| v1::DiscardDeadLetterRequest { job_id: job_id.to_owned(), reason: "paid by hand".into() };
    let answer = grpc.discard_dead_letter(discard(&id)).await.expect("discarded").into_inner();
    assert_eq!(answer.state(), v1::JobState::Failed);
    let filter = v1::DeadLetterFilter { discarded: true, ..v1::DeadLetterFilter::default() };
    let list = v1::ListDeadLettersRequest { filter: Some(filter.clone()), ..Default::default() };
    let page = grpc.list_dead_letters(list).await.expect("listed").into_inner();
    let [letter] = &page.dead_letters[..] else { panic!("{page:?}") };
    assert_eq!((&letter.job_id, letter.discarded.as_ref().map(|by| by.reason.as_str())), (&id, Some("paid by hand")));
    let replay = v1::ReplayDeadLettersRequest { filter: Some(filter), ..Default::default() };
    let refused = grpc.replay_dead_letters(replay).await.expect_err("discarded ones are not replayed");
    assert!(refused.message().contains("discarded dead letters are not replayed"), "{refused:?}");
    let live = server.submit(json!({ "topic": "job.c" })).await;
    let refused = grpc.discard_dead_letter(discard(&live)).await.expect_err("it lives");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    assert!(refused.message().contains("SCHEDULED"), "{refused:?}");
}
