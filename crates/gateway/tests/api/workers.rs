//! The worker protocol over a real stream.

use lockgate_core::limits::{INVENTORY_MAX, PAYLOAD_BYTES_MAX};
use lockgate_proto::v1::{self, Beat, Hello, LogReport, Start, WorkerMessage, result};
use serde_json::json;
use tonic::Code;

use crate::support::{IN_PROCESS, ScriptedWorker, Server, echo, hello, succeeded};

#[tokio::test]
async fn a_job_runs_from_submit_to_result() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    assert_eq!((worker.welcome.epoch, worker.welcome.beat_every_ms, worker.welcome.lost_after_ms), (1, 3_000, 10_000));
    let mut job = echo();
    job["labels"] = json!({ "l": "1" });
    job["env"] = json!({ "E": "2" });
    job["trace_id"] = json!("t-1");
    job["timeout_ms"] = json!(1234);
    let id = server.submit(job).await;

    let assignment = worker.assignment().await;
    assert_eq!(
        (assignment.job_id.as_str(), assignment.topic.as_str(), assignment.tenant.as_str()),
        (&*id, "job.echo", "default")
    );
    assert_eq!(&assignment.payload_json[..], br#"{"hello":"world"}"#);
    assert_eq!((assignment.number, assignment.attempt, assignment.life, assignment.timeout_ms), (1, 1, 1, 1234));
    assert_eq!((&*assignment.labels["l"], &*assignment.env["E"], &*assignment.trace_id), ("1", "2", "t-1"));

    let (job_id, token) = (id.clone(), assignment.token.clone());
    let starts = vec![Start { job_id: job_id.clone(), token: token.clone() }];
    let logs = vec![LogReport { job_id, token, at_ms: 1_500, line: "working".into() }];
    worker.send(WorkerMessage { starts, logs, ..WorkerMessage::default() });
    assert!(!worker.report(&assignment, Some(succeeded(r#""done""#))).await);
    assert!(worker.report(&assignment, Some(succeeded("2"))).await, "a second result changes nothing");

    let job = server.get(&format!("/v1/jobs/{id}")).await.json;
    assert_eq!((&job["state"], &job["result"]), (&json!("SUCCEEDED"), &json!("done")));
    assert!(job["attempts"][0]["started_at"].is_string(), "{job}");
    let logs = server.get(&format!("/v1/jobs/{id}/logs")).await.json;
    assert_eq!(logs, json!({ "lines": [{ "no": 1, "attempt": 1, "at": "1970-01-01T00:00:01.500Z", "line": "working" }] }));
}

#[tokio::test]
async fn what_waits_for_a_worker_comes_together() {
    let server = Server::start().await;
    let batch = json!({ "jobs": vec![json!({ "topic": "job.noop" }); 20] });
    assert_eq!(server.post("/v1/jobs:batch", &batch).await.status, 200);
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let assignments = worker.until(|message| Some(message.assignments).filter(|a| !a.is_empty())).await;
    assert_eq!(assignments.len(), 8, "all slots are filled by one message");
    let result = |a: &v1::Assignment| v1::Result {
        job_id: a.job_id.clone(),
        token: a.token.clone(),
        outcome: Some(succeeded("null")),
        ..v1::Result::default()
    };
    worker.send(WorkerMessage { results: assignments.iter().map(result).collect(), ..WorkerMessage::default() });
    let acks = worker.until(|message| Some(message.acks).filter(|acks| !acks.is_empty())).await;
    assert_eq!(acks.len(), 8);
}

#[tokio::test]
async fn large_payloads_are_spread_over_messages_that_clients_can_take() {
    let server = Server::start().await;
    let payload = "x".repeat(PAYLOAD_BYTES_MAX - 2);
    for _ in 0..6 {
        server.submit(json!({ "topic": "job.big", "payload": payload })).await;
    }
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    for _ in 0..6 {
        let assignment = worker.assignment().await;
        assert_eq!(assignment.payload_json.len(), PAYLOAD_BYTES_MAX);
    }
}

#[tokio::test]
async fn results_that_cannot_be_kept_fail_the_job_and_say_why() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let too_long = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX));
    for (outcome, why) in
        [(None, "without an outcome"), (Some(succeeded("{")), "must be JSON"), (Some(succeeded(&too_long)), "bytes")]
    {
        let id = server.submit(echo()).await;
        worker.run_one(outcome).await;
        let job = server.get(&format!("/v1/jobs/{id}")).await.json;
        assert_eq!((&job["state"], &job["last_error"]["reason"]), (&json!("FAILED"), &json!("fatal")));
        assert!(job["last_error"]["message"].as_str().is_some_and(|text| text.contains(why)), "{job}");
    }
}

#[tokio::test]
async fn every_outcome_does_what_it_says() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let retry = result::FailedRetryable { error: "later".into(), retry_after_ms: Some(60_000), ..Default::default() };
    let cases = [
        (result::Outcome::FailedRetryable(retry), "SCHEDULED", 1),
        (result::Outcome::TimedOut(result::TimedOut {}), "SCHEDULED", 1),
        (result::Outcome::Snooze(result::Snooze { delay_ms: 60_000 }), "SCHEDULED", 0),
        (result::Outcome::Cancelled(result::Cancelled { note: "gave up".into() }), "CANCELLED", 0),
    ];
    for (outcome, state, failures) in cases {
        let id = server.submit(echo()).await;
        worker.run_one(Some(outcome)).await;
        let job = server.get(&format!("/v1/jobs/{id}")).await.json;
        assert_eq!((&job["state"], &job["failures"]), (&json!(state), &json!(failures)), "{job}");
    }
}

#[tokio::test]
async fn beats_are_answered_and_a_cancelled_job_is_stopped() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit(echo()).await;
    let assignment = worker.assignment().await;
    let held = v1::Held { job_id: id.clone(), token: assignment.token.clone(), started_at_ms: Some(1) };
    let beat = Beat { number: 7, highest_assignment: assignment.number, inventory: vec![held], ..Beat::default() };
    worker.send(WorkerMessage { beat: Some(beat), ..WorkerMessage::default() });
    assert_eq!(worker.until(|message| message.beat_ack).await.number, 7);

    server.post(&format!("/v1/jobs/{id}/cancel"), &json!({ "reason": "enough" })).await;
    let stop = worker.until(|message| message.stops.into_iter().next()).await;
    assert_eq!((stop.job_id.as_str(), stop.token.as_str()), (&*id, &*assignment.token));
    assert!(worker.report(&assignment, Some(succeeded("1"))).await, "a late result is refused");
}

#[tokio::test]
async fn a_stream_begins_with_hello_and_has_only_one() {
    let server = Server::start().await;
    let refused = ScriptedWorker::open(&server, WorkerMessage::default()).await.err().expect("refused");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    worker.send(WorkerMessage { hello: Some(hello("s-1")), ..WorkerMessage::default() });
    let refused = worker.next().await.expect_err("refused");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
}

#[tokio::test]
async fn a_result_of_no_job_that_could_ever_be_ends_the_stream_with_its_field() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let results = vec![v1::Result {
        job_id: "x".repeat(1 << 20),
        token: "t".into(),
        outcome: Some(succeeded("1")),
        ..v1::Result::default()
    }];
    worker.send(WorkerMessage { results, ..WorkerMessage::default() });
    let refused = worker.next().await.expect_err("refused");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert!(refused.message().contains("results.job_id"), "{refused:?}");
}

#[tokio::test]
async fn a_hello_that_makes_no_sense_is_refused() {
    let server = Server::start().await;
    type Change = fn(&mut Hello);
    let cases: [(Change, &str); 9] = [
        (|hello| hello.session = String::new(), "session"),
        (|hello| hello.worker_id = "a b".into(), "worker_id"),
        (|hello| hello.slots = 0, "slots"),
        (|hello| hello.topics.clear(), "topics"),
        (|hello| hello.topics = vec!["job.**".into()], "topics"),
        (|hello| hello.topics = vec!["a b*".into()], "topics"),
        (|hello| hello.capabilities = vec!["a b".into()], "capabilities"),
        (|hello| hello.labels = [("_in_process".to_owned(), "1".to_owned())].into(), "labels"),
        (|hello| hello.inventory = vec![v1::Held::default(); INVENTORY_MAX + 1], "inventory"),
    ];
    for (change, field) in cases {
        let mut hello = hello("s-1");
        change(&mut hello);
        let first = WorkerMessage { hello: Some(hello), ..WorkerMessage::default() };
        let refused = ScriptedWorker::open(&server, first).await.err().expect("refused");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert!(refused.message().contains(field), "{field}: {refused:?}");
    }
    assert!(server.engine.workers().is_empty());
}

#[tokio::test]
async fn a_session_that_attaches_again_ends_its_first_stream() {
    let server = Server::start().await;
    let mut first = ScriptedWorker::attach(&server, hello("s-1")).await;
    let second = ScriptedWorker::attach(&server, hello("s-1")).await;
    assert_eq!(second.welcome.epoch, 2);
    assert_eq!(first.next().await.expect("a clean end"), None);
    assert_eq!(server.get("/v1/workers").await.json["workers"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn only_the_built_in_worker_is_known_to_be_in_process() {
    let server = Server::start().await;
    let _one = ScriptedWorker::attach(&server, hello("s-1")).await;
    let _other = ScriptedWorker::attach(&server, hello(IN_PROCESS)).await;
    let marked: Vec<bool> = server.engine.workers().iter().map(|view| view.profile.in_process).collect();
    let sessions: Vec<String> = server.engine.workers().iter().map(|view| view.session.to_string()).collect();
    assert_eq!((sessions, marked), (vec!["s-1".to_owned(), IN_PROCESS.to_owned()], vec![false, true]));
}
