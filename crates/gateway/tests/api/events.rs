//! Following a job: nothing missed, nothing twice.

use lockgate_proto::v1::{
    LogReport, ProgressReport, WatchJobLogsRequest, WatchJobRequest, WorkerMessage, watch_job_response,
};
use serde_json::json;

use crate::support::{ScriptedWorker, Server, echo, hello, succeeded};

#[tokio::test]
async fn events_are_numbered_without_gaps_and_end_with_the_job() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    let live = server.events(&id, None).await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    worker.run_one(Some(succeeded("1"))).await;

    let seen = live.all().await;
    let numbers: Vec<u64> = seen.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<&str> = seen.iter().map(|(_, kind)| kind.as_str()).collect();
    assert_eq!(kinds.first(), Some(&"submitted"));
    assert_eq!(kinds.last(), Some(&"succeeded"));
    assert_eq!(server.events(&id, None).await.all().await, seen, "a replay tells the same");
}

#[tokio::test]
async fn a_watcher_that_comes_back_gets_exactly_the_rest() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    let mut before = server.events(&id, None).await;
    let (last, _) = before.next().await.expect("the first event");
    drop(before);
    server.post(&format!("/v1/jobs/{id}/cancel"), &json!({})).await;

    let all = server.events(&id, None).await.all().await;
    let rest = server.events(&id, last).await.all().await;
    assert_eq!(rest, all[1..]);
    let by_parameter = server.get(&format!("/v1/jobs/{id}/events?after=1")).await;
    assert_eq!(by_parameter.text.matches("id:").count(), rest.len(), "{by_parameter:?}");

    let done = server.request("GET", &format!("/v1/jobs/{id}/events")).header("last-event-id", all.len());
    assert_eq!(server.send(done, "").await.status, 204);
    let bad = server.request("GET", &format!("/v1/jobs/{id}/events")).header("last-event-id", "x");
    server.send(bad, "").await.is_problem(400, "invalid_argument");
}

#[tokio::test]
async fn progress_is_shown_live_and_has_no_number() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let assignment = worker.assignment().await;
    let mut live = server.events(&id, None).await;
    let (job_id, token) = (id.clone(), assignment.token.clone());
    let progress = vec![ProgressReport { job_id, token, percent: 40, message: "halfway".into() }];
    worker.send(WorkerMessage { progress, ..WorkerMessage::default() });
    let shown = loop {
        let (n, data) = live.next().await.expect("not the end");
        if n.is_none() {
            break data;
        }
    };
    assert_eq!((&shown["percent"], &shown["message"]), (&json!(40), &json!("halfway")));
    let job = server.get(&format!("/v1/jobs/{id}")).await.json;
    assert_eq!(job["progress"]["percent"], 40);
    assert!(!worker.report(&assignment, Some(succeeded("1"))).await);
    assert_eq!(live.all().await.last().map(|(_, kind)| kind.as_str()), Some("succeeded"));
}

#[tokio::test]
async fn grpc_watch_tells_the_same_events() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    let watch = WatchJobRequest { job_id: id.clone(), after: 1 };
    let mut stream = server.grpc().await.watch_job(watch).await.expect("found").into_inner();
    server.post(&format!("/v1/jobs/{id}/cancel"), &json!({})).await;
    let mut seen = Vec::new();
    while let Some(message) = stream.message().await.expect("an unbroken stream") {
        if let Some(watch_job_response::Item::Event(event)) = message.item {
            seen.push((event.n, event.kind));
        }
    }
    assert_eq!(seen, server.events(&id, Some(1)).await.all().await);
}

#[tokio::test]
async fn log_lines_come_as_they_are_written_and_end_with_the_job() {
    let server = Server::start().await;
    let id = server.submit(echo()).await;
    let path = format!("/v1/jobs/{id}/logs/stream");
    let mut live = server.listen(&path, None).await;
    let watch = WatchJobLogsRequest { job_id: id.clone(), after: 0 };
    let mut grpc = server.grpc().await.watch_job_logs(watch).await.expect("followed").into_inner();
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let assignment = worker.assignment().await;
    let line = |line: &str| {
        let (job_id, token) = (id.clone(), assignment.token.clone());
        let logs = vec![LogReport { job_id, token, at_ms: 1, line: line.to_owned() }];
        WorkerMessage { logs, ..WorkerMessage::default() }
    };
    worker.send(line("one"));
    let (first, data) = live.next().await.expect("a line");
    assert_eq!((&data["line"], &data["attempt"]), (&json!("one"), &json!(1)));
    worker.send(line("two"));
    let (second, data) = live.next().await.expect("a line");
    assert_eq!(data["line"], "two");
    // The last words of a job come with its result, and after it.
    worker.send(line("three"));
    worker.report(&assignment, Some(succeeded("1"))).await;
    assert_eq!(live.next().await.expect("a line").1["line"], "three");
    assert!(live.next().await.is_none(), "nothing more will come");

    let mut rest = server.listen(&path, first).await;
    let mut lines = Vec::new();
    while let Some((_, data)) = rest.next().await {
        lines.push(data["line"].as_str().expect("text").to_owned());
    }
    assert_eq!(lines, ["two", "three"], "whoever comes back gets exactly the rest");
    let mut seen = Vec::new();
    while let Some(message) = grpc.message().await.expect("unbroken") {
        seen.extend(message.line.map(|line| (line.no, line.line)));
    }
    assert_eq!(seen.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>(), ["one", "two", "three"]);
    assert_eq!(Some(seen[1].0), second, "the same numbers at both doors");
    let done = server.request("GET", &path).header("last-event-id", seen[2].0);
    assert_eq!(server.send(done, "").await.status, 204);
    server.get("/v1/jobs/nope/logs/stream").await.is_problem(404, "not_found");
}
