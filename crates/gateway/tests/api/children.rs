//! Children over the wire, and how both doors show them.

use lockgate_proto::v1::worker_client::WorkerClient;
use lockgate_proto::v1::{self, JobState, result, submit_jobs_response::item::Item};
use serde_json::json;
use tonic::Code;

use crate::support::{ScriptedWorker, Server, hello, succeeded};

fn child(key: &str, topic: &str) -> v1::NewChild {
    v1::NewChild { key: key.to_owned(), job: Some(v1::NewJob { topic: topic.to_owned(), ..v1::NewJob::default() }) }
}

fn submit(of: &v1::Assignment, children: Vec<v1::NewChild>) -> v1::SubmitChildrenRequest {
    v1::SubmitChildrenRequest { job_id: of.job_id.clone(), token: of.token.clone(), children }
}

#[tokio::test]
async fn a_family_is_submitted_waited_for_and_shown() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit(json!({ "topic": "job.parent" })).await;
    let parent = worker.assignment().await;
    let mut client = WorkerClient::new(server.channel().await);
    let unnamed = v1::NewJob { job_id: "mine".into(), topic: "job.c".into(), ..v1::NewJob::default() };
    let wrong = v1::NewChild { key: "c".into(), job: Some(unnamed) };
    let sent = submit(&parent, vec![child("a", "job.c"), child("no/name", "job.c"), wrong, child("b", "job.c")]);
    let answers = client.submit_children(sent).await.expect("taken").into_inner().jobs;
    let told: Vec<_> = answers
        .iter()
        .map(|answer| match &answer.item {
            Some(Item::Job(job)) => job.job_id.clone(),
            Some(Item::Error(error)) => error.message.split(':').next().unwrap_or_default().to_owned(),
            None => String::new(),
        })
        .collect();
    assert_eq!(told, [format!("{id}~a"), "key".to_owned(), "job_id".to_owned(), format!("{id}~b")]);

    let wait = result::AwaitChildren { timeout_ms: Some(60_000), on_timeout: "review".into() };
    assert!(!worker.report(&parent, Some(result::Outcome::AwaitChildren(wait))).await);
    let late = client.submit_children(submit(&parent, vec![child("d", "job.c")])).await.expect_err("superseded");
    assert_eq!(late.code(), Code::FailedPrecondition, "{late:?}");
    let shown = server.get(&format!("/v1/jobs/{id}")).await.json;
    assert_eq!((&shown["children"]["total"], &shown["children"]["live"]), (&json!(2), &json!(2)), "{shown}");
    assert_eq!(shown["children"]["on_timeout"], "review");
    let why = server.get(&format!("/v1/jobs/{id}/why")).await.json;
    assert_eq!(why["reason"], "waiting_for_children", "{why}");

    worker.run_one(Some(succeeded("1"))).await;
    worker.run_one(Some(result::Outcome::FailedFatal(result::FailedFatal { error: "no".into() }))).await;
    let again = worker.assignment().await;
    assert_eq!((again.job_id.as_str(), again.gathered, again.gathered_partly), (&*id, 1, false));
    let list = v1::ListChildrenRequest { job_id: id.clone(), token: again.token.clone(), cursor: String::new() };
    let children = client.list_children(list).await.expect("listed").into_inner().children;
    let told: Vec<_> = children.iter().map(|child| (child.key.as_str(), child.state(), &child.result_json[..])).collect();
    assert_eq!(told, [("a", JobState::Succeeded, &b"1"[..]), ("b", JobState::Failed, b"")]);
    assert_eq!(children[1].failure.as_ref().map(|failure| failure.message.as_str()), Some("no"));
    assert!(!worker.report(&again, Some(succeeded("2"))).await);

    let listed = server.get(&format!("/v1/jobs?parent={id}")).await.json;
    let jobs = listed["jobs"].as_array().expect("a list");
    assert_eq!(jobs.len(), 2);
    assert!(jobs.iter().all(|job| job["parent_job_id"] == *id), "{listed}");
    assert_eq!(jobs[1]["child_key"], "a");
}

#[tokio::test]
async fn bad_calls_of_attempts_name_what_is_wrong() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    server.submit(json!({ "topic": "job.parent" })).await;
    let parent = worker.assignment().await;
    let mut client = WorkerClient::new(server.channel().await);
    let none = client.submit_children(submit(&parent, Vec::new())).await.expect_err("nothing sent");
    assert!(none.code() == Code::InvalidArgument && none.message().contains("children"), "{none:?}");
    let guess = v1::Assignment { token: "guess".into(), ..parent.clone() };
    let guessed = client.submit_children(submit(&guess, vec![child("a", "job.c")])).await.expect_err("no such attempt");
    assert_eq!(guessed.code(), Code::FailedPrecondition, "{guessed:?}");
    let list = v1::ListChildrenRequest { job_id: parent.job_id.clone(), token: parent.token.clone(), cursor: "?".into() };
    let cursor = client.list_children(list).await.expect_err("no cursor");
    assert!(cursor.code() == Code::InvalidArgument && cursor.message().contains("cursor"), "{cursor:?}");
}
