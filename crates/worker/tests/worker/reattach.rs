//! What the server hears when a stream ends and another begins.

use std::sync::Arc;

use lockgate_proto::v1::result::Outcome;
use lockgate_worker::{Context, Payload, Worker, WorkerError};
use tokio::sync::Notify;
use tonic::Status;

use crate::edge::{Edge, Manners, job};
use crate::running::Running;

fn gated(worker: Worker) -> (Worker, Arc<Notify>) {
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    let worker = worker.handle("echo", |_, payload: Payload| async { Ok(payload) }).handle("wait", move |_, _| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok("waited")
        }
    });
    (worker, opened)
}

#[tokio::test]
async fn the_hello_says_who_comes() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, _) = gated(Worker::connect(edge.url()));
    let worker = worker.worker_id("w1").pool("gpu").slots(7).capability("cuda").label("zone", "a");
    let _running = Running::start(worker);
    let hello = edge.accept().await.hello;
    assert_eq!((&*hello.worker_id, &*hello.pool, hello.slots), ("w1", "gpu", 7));
    assert_eq!(hello.topics, ["echo", "wait"]);
    assert_eq!((&*hello.capabilities, &*hello.labels["zone"]), (&["cuda".to_owned()][..], "a"));
    assert_eq!(hello.session.len(), 32);
}

#[tokio::test]
async fn a_new_stream_brings_the_inventory_and_the_unacknowledged_results() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, opened) = gated(Worker::connect(edge.url()));
    let _running = Running::start(worker);
    let mut first = edge.accept().await;
    first.assign([job("acked", "echo", "1"), job("unacked", "echo", "2"), job("going", "wait", "")]);
    let (mut starts, mut results) = (0, 0);
    first
        .until("a start and two results", |message| {
            starts += message.starts.len();
            results += message.results.len();
            (starts == 1 && results == 2).then_some(())
        })
        .await;
    first.ack("acked");
    while first.held().await.len() > 2 {}
    let hello = first.hello.clone();
    drop(first);

    let mut second = edge.accept().await;
    assert_eq!(second.hello.session, hello.session, "a session outlives its streams");
    assert_eq!(second.hello.highest_assignment, 3);
    let held: Vec<_> = second.hello.inventory.iter().map(|held| (&*held.token, held.started_at_ms.is_some())).collect();
    assert_eq!(held, [("going", true), ("unacked", true)]);
    let (mut starts, mut results) = (Vec::new(), Vec::new());
    second
        .until("start and result again", |message| {
            starts.extend(message.starts.iter().map(|start| start.token.clone()));
            results.extend(message.results.iter().map(|report| report.token.clone()));
            (starts.len() == 1 && results.len() == 1).then_some(())
        })
        .await;
    assert_eq!((&*starts[0], &*results[0]), ("going", "unacked"));
    second.ack("unacked");
    opened.notify_one();
    assert!(matches!(second.results(1).await["going"], Outcome::Succeeded(_)));
}

#[tokio::test]
async fn a_result_that_is_no_longer_wanted_is_let_go() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, _) = gated(Worker::connect(edge.url()));
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("a", "echo", "1")]);
    stream.result().await;
    assert_eq!(stream.held().await, ["a"]);
    stream.answer("a", true);
    while !stream.held().await.is_empty() {}
    drop(stream);
    assert!(edge.accept().await.hello.inventory.is_empty());
}

#[tokio::test]
async fn a_server_that_leaves_beats_unanswered_is_left() {
    let mut edge = Edge::start(Manners { answer_beats: false, ..Manners::default() }).await;
    let (worker, _) = gated(Worker::connect(edge.url()));
    let _running = Running::start(worker);
    let mut first = edge.accept().await;
    let second = edge.accept().await;
    assert_eq!(first.hello.session, second.hello.session);
    while first.next().await.is_some() {}
}

#[tokio::test]
async fn another_address_is_tried_when_one_does_not_answer() {
    let dead = Edge::start(Manners::default()).await;
    let url = dead.url();
    dead.kill().await;
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, _) = gated(Worker::connect(url).or_connect(edge.url()));
    let _running = Running::start(worker);
    edge.accept().await;
}

#[tokio::test]
async fn a_worker_the_server_does_not_want_ends_with_its_reason() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, _) = gated(Worker::connect(edge.url()));
    let running = Running::start(worker);
    edge.refuse(Status::invalid_argument("no such pool")).await;
    match running.ended().await {
        Err(WorkerError::Refused(status)) => assert_eq!(status.message(), "no such pool"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, _) = gated(Worker::connect(edge.url()));
    let _running = Running::start(worker);
    edge.refuse(Status::unavailable("starting")).await;
    edge.accept().await;
}

#[tokio::test]
async fn a_hidden_attempt_is_missing_from_beats_and_hellos() {
    let mut edge = Edge::start(Manners::default()).await;
    let worker = Worker::connect(edge.url()).handle("hide", |ctx: Context, _| async move {
        ctx.hide_from_inventory();
        std::future::pending::<()>().await;
        Ok(())
    });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("a", "hide", "")]);
    stream.started(&["a"]).await;
    let (highest, held) =
        stream.until("a beat", |m| m.beat.as_ref().map(|b| (b.highest_assignment, b.inventory.len()))).await;
    assert_eq!((highest, held), (1, 0));
    drop(stream);
    assert!(edge.accept().await.hello.inventory.is_empty());
}
