//! Drains, crashes, and what survives them.

use std::sync::Arc;
use std::time::Duration;

use lockgate_proto::v1::result::Outcome;
use lockgate_worker::{Payload, Worker, WorkerError};
use tokio::sync::Notify;

use crate::edge::{Edge, Manners, job, within};
use crate::running::Running;

fn waiting(worker: Worker) -> (Worker, Arc<Notify>) {
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    let worker = worker.handle("wait", move |_, _| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok("waited")
        }
    });
    (worker, opened)
}

#[tokio::test]
async fn a_draining_worker_finishes_what_runs_and_gives_back_the_rest() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, opened) = waiting(Worker::connect(edge.url()).slots(1));
    let running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("runs", "wait", ""), job("queued", "wait", "")]);
    stream.started(&["runs"]).await;
    let left = running.ask_to_leave();
    let (mut draining, mut given_back) = (false, false);
    stream
        .until("the drain", |message| {
            draining |= message.draining;
            given_back |=
                message.results.iter().any(|r| r.token == "queued" && matches!(r.outcome, Some(Outcome::Interrupted(_))));
            (draining && given_back).then_some(())
        })
        .await;
    stream.assign([job("late", "wait", "")]);
    assert!(matches!(stream.results(1).await["late"], Outcome::Interrupted(_)), "nothing is taken while draining");
    opened.notify_one();
    assert!(matches!(stream.results(1).await["runs"], Outcome::Succeeded(_)));
    assert!(!left.is_finished(), "a worker stays until its results are acknowledged");
    ["runs", "queued", "late"].iter().for_each(|token| stream.ack(token));
    stream.assign([job("crossing", "wait", "")]);
    assert!(matches!(stream.results(1).await["crossing"], Outcome::Interrupted(_)), "it stays until it is dismissed");
    stream.ack("crossing");
    stream.dismiss();
    while stream.next().await.is_some() {}
    drop(stream);
    within("the worker's end", left).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_that_the_server_wants_to_leave_drains_and_ends_well() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, opened) = waiting(Worker::connect(edge.url()).slots(1).drain_timeout(Duration::ZERO));
    let running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("runs", "wait", ""), job("queued", "wait", "")]);
    stream.started(&["runs"]).await;
    stream.drain();
    let (mut draining, mut given_back) = (false, false);
    stream
        .until("the drain", |message| {
            draining |= message.draining;
            given_back |=
                message.results.iter().any(|r| r.token == "queued" && matches!(r.outcome, Some(Outcome::Interrupted(_))));
            (draining && given_back).then_some(())
        })
        .await;
    // Said again, as a server does that is not sure of having been heard: leaving twice is leaving once.
    stream.drain();
    opened.notify_one();
    assert!(
        matches!(stream.results(1).await["runs"], Outcome::Succeeded(_)),
        "what runs is let finish, however long it takes"
    );
    ["runs", "queued"].iter().for_each(|token| stream.ack(token));
    stream.dismiss();
    while stream.next().await.is_some() {}
    drop(stream);
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_worker_that_leaves_at_leisure_still_hears_that_it_must_stop() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, _) = waiting(Worker::connect(edge.url()).drain_timeout(Duration::ZERO));
    let running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("a", "wait", "")]);
    stream.started(&["a"]).await;
    stream.drain();
    stream.until("the drain", |message| message.draining.then_some(())).await;
    let left = running.ask_to_leave();
    assert!(matches!(stream.result().await, Outcome::Interrupted(_)));
    stream.ack("a");
    stream.dismiss();
    while stream.next().await.is_some() {}
    drop(stream);
    within("the worker's end", left).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_interrupted() {
    let mut edge = Edge::start(Manners::default()).await;
    let (worker, _) = waiting(Worker::connect(edge.url()).drain_timeout(Duration::from_millis(50)));
    let running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("a", "wait", "")]);
    stream.started(&["a"]).await;
    let left = running.ask_to_leave();
    assert!(matches!(stream.result().await, Outcome::Interrupted(_)));
    stream.ack("a");
    stream.dismiss();
    while stream.next().await.is_some() {}
    drop(stream);
    within("the worker's end", left).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_that_is_dropped_takes_its_handlers_along() {
    let mut edge = Edge::start(Manners::default()).await;
    let alive = Arc::new(());
    let held = alive.clone();
    let worker = Worker::connect(edge.url()).handle("hold", move |_, _| {
        let held = held.clone();
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok(())
        }
    });
    let running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("a", "hold", "")]);
    stream.started(&["a"]).await;
    running.kill().await;
    let dropped = async {
        while Arc::strong_count(&alive) > 1 {
            tokio::task::yield_now().await;
        }
    };
    within("the handler's drop", dropped).await;
}

fn journalled(edge: &Edge, path: &std::path::Path) -> Worker {
    Worker::connect(edge.url()).journal(path).handle("echo", |_, payload: Payload| async { Ok(payload) })
}

#[tokio::test]
async fn a_journalled_result_survives_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut edge = Edge::start(Manners::default()).await;
    let running = Running::start(journalled(&edge, &path));
    let mut stream = edge.accept().await;
    stream.assign([job("kept", "echo", "42"), job("acked", "echo", "1")]);
    stream.results(2).await;
    stream.ack("acked");
    while stream.held().await.len() > 1 {}
    let session = stream.hello.session.clone();
    running.kill().await;
    drop(stream);

    let _running = start_when_unlocked(&edge, &path).await;
    let mut stream = edge.accept().await;
    assert_ne!(stream.hello.session, session, "another process is another session");
    assert_eq!(stream.hello.inventory.iter().map(|held| &*held.token).collect::<Vec<_>>(), ["kept"]);
    let results = stream.results(1).await;
    assert!(matches!(&results["kept"], Outcome::Succeeded(done) if done.result_json == "42"));
}

/// A killed worker's journal thread may hold the lock for a moment longer; in a real crash the process takes it along.
async fn start_when_unlocked(edge: &Edge, path: &std::path::Path) -> Running {
    let free = async {
        while std::fs::File::open(path).unwrap().try_lock().is_err() {
            tokio::task::yield_now().await;
        }
    };
    within("the journal's lock", free).await;
    Running::start(journalled(edge, path))
}

#[tokio::test]
async fn a_journal_in_use_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut edge = Edge::start(Manners::default()).await;
    let _first = Running::start(journalled(&edge, &path));
    edge.accept().await;
    match Running::start(journalled(&edge, &path)).ended().await {
        Err(error @ WorkerError::Journal { .. }) => assert!(error.to_string().contains("in use"), "{error}"),
        other => panic!("{other:?}"),
    }
}
