//! One attempt: what is reported of it, and what ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockgate_contract::limits::ERROR_BYTES_MAX;
use lockgate_proto::v1::Assignment;
use lockgate_proto::v1::result::Outcome;
use lockgate_worker::{Context, JobError, LeaseLoss, Payload, Worker};
use tokio::sync::{Notify, mpsc};

use crate::edge::{Edge, Manners, job, within};
use crate::running::Running;

fn json(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Succeeded(done) => std::str::from_utf8(&done.result_json).unwrap(),
        other => panic!("no success: {other:?}"),
    }
}

/// Waits for ever, and tells when its future is dropped.
async fn hang(told: mpsc::UnboundedSender<()>) -> Result<(), JobError> {
    struct Tell(mpsc::UnboundedSender<()>);
    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let _tell = Tell(told);
    std::future::pending().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_run_and_answered_whole() {
    let mut edge = Edge::start(Manners::default()).await;
    let worker = Worker::connect(edge.url()).slots(500).handle("echo", |_, payload: Payload| async { Ok(payload) });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("first", "echo", "1")]);
    assert_eq!(json(&stream.result().await), "1");
    stream.assign((0..500).map(|n| job(&format!("t{n}"), "echo", &n.to_string())));
    let ends = stream.results(500).await;
    assert!((0..500).all(|n| json(&ends[&format!("t{n}")]) == n.to_string()));
}

#[tokio::test]
async fn slots_bound_what_runs_and_the_rest_waits_in_the_worker() {
    let mut edge = Edge::start(Manners::default()).await;
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (gate, most_seen) = (Arc::new(Notify::new()), most.clone());
    let opened = gate.clone();
    let worker = Worker::connect(edge.url()).slots(3).handle("busy", move |_, _| {
        let (running, most, gate) = (running.clone(), most.clone(), gate.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.notified().await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign((0..10).map(|n| job(&n.to_string(), "busy", "")));
    let mut results = 0;
    // Every message, if only a beat, lets one of those that wait go on.
    let all = stream.until("all results", |message| {
        opened.notify_one();
        results += message.results.len();
        (results == 10).then_some(())
    });
    all.await;
    assert_eq!(most_seen.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn an_attempt_beyond_its_time_is_dropped_and_reported() {
    let mut edge = Edge::start(Manners::default()).await;
    let (told, mut dropped) = mpsc::unbounded_channel();
    let _running = Running::start(Worker::connect(edge.url()).handle("hang", move |_, _| hang(told.clone())));
    let mut stream = edge.accept().await;
    stream.assign([Assignment { timeout_ms: 30, ..job("a", "hang", "") }]);
    assert!(matches!(stream.result().await, Outcome::TimedOut(_)));
    within("the drop", dropped.recv()).await;
}

#[tokio::test]
async fn a_stopped_attempt_is_told_then_dropped_and_tells_only_that_it_was_done() {
    let mut edge = Edge::start(Manners::default()).await;
    let (told, mut events) = mpsc::unbounded_channel();
    let polite = told.clone();
    let worker = Worker::connect(edge.url())
        .slots(2)
        .handle("polite", move |ctx: Context, _| {
            let told = polite.clone();
            async move {
                ctx.cancelled().await;
                assert!(ctx.is_cancelled());
                let _ = told.send(());
                Ok("done anyway")
            }
        })
        .handle("deaf", move |_, _| hang(told.clone()))
        .handle("echo", |_, payload: Payload| async { Ok(payload) });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("a", "polite", ""), job("b", "deaf", "")]);
    stream.started(&["a", "b"]).await;
    stream.stop("a");
    within("the polite handler", events.recv()).await;
    let done = stream.until("the work that was done", |m| m.results.first().map(|report| report.token.clone()));
    assert_eq!(done.await, "a", "somebody may have to undo it");
    stream.stop("b");
    within("the deaf handler's drop", events.recv()).await;
    stream.assign([job("c", "echo", "1")]);
    let next = stream.until("the next result", |m| {
        assert!(m.results.iter().all(|report| report.token != "b"), "what was given up has nothing to tell");
        m.results.iter().find(|report| report.token == "c").map(|report| report.token.clone())
    });
    next.await;
    assert_eq!(stream.held().await, ["a", "c"]);
}

#[tokio::test]
async fn errors_panics_and_unknown_topics_are_told_apart() {
    let mut edge = Edge::start(Manners::default()).await;
    let worker = Worker::connect(edge.url()).handle("end.*", |ctx: Context, _| async move {
        match ctx.topic() {
            "end.retry" => Err(JobError::retry_after("later", Duration::from_secs(7))),
            "end.fatal" => Err(JobError::fatal("never")),
            "end.snooze" => Err(JobError::snooze(Duration::from_millis(1_500))),
            "end.cancelled" => Err(JobError::cancelled("not needed")),
            "end.io" => Err(std::io::Error::other("disk"))?,
            "end.panic" => panic!("ouch {}", ctx.attempt()),
            _ => Ok(ctx.tenant().to_owned()),
        }
    });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    let names = ["retry", "fatal", "snooze", "cancelled", "io", "panic", "well"];
    stream.assign(names.iter().map(|name| job(name, &format!("end.{name}"), "")).chain([job("lost", "other", "")]));
    let ends = stream.results(8).await;
    let retryable = |name: &str| match &ends[name] {
        Outcome::FailedRetryable(failed) => (failed.error.clone(), failed.retry_after_ms),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(retryable("retry"), ("later".to_owned(), Some(7_000)));
    assert_eq!(retryable("io"), ("disk".to_owned(), None));
    assert_eq!(retryable("panic").0, "the handler panicked: ouch 1");
    assert_eq!(retryable("lost").0, "this worker has no handler for topic other");
    assert!(matches!(&ends["fatal"], Outcome::FailedFatal(failed) if failed.error == "never"));
    assert!(matches!(&ends["snooze"], Outcome::Snooze(snooze) if snooze.delay_ms == 1_500));
    assert!(matches!(&ends["cancelled"], Outcome::Cancelled(cancelled) if cancelled.note == "not needed"));
    assert_eq!(json(&ends["well"]), r#""acme""#);
}

#[tokio::test]
async fn progress_and_log_lines_arrive_before_the_end() {
    let mut edge = Edge::start(Manners::default()).await;
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    let worker = Worker::connect(edge.url()).handle("talk", move |ctx: Context, _| {
        let gate = gate.clone();
        async move {
            ctx.progress(10, "begun");
            ctx.log("one");
            ctx.log("two");
            gate.notified().await;
            ctx.progress(250, "ü".repeat(ERROR_BYTES_MAX));
            Ok(())
        }
    });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("a", "talk", "")]);
    let (mut lines, mut percent) = (Vec::new(), 0);
    stream
        .until("progress and logs", |message| {
            lines.extend(message.logs.iter().map(|log| (log.line.clone(), log.at_ms > 0)));
            percent = message.progress.last().map_or(percent, |progress| progress.percent);
            (lines.len() == 2 && percent == 10).then_some(())
        })
        .await;
    assert_eq!(lines, [("one".to_owned(), true), ("two".to_owned(), true)]);
    opened.notify_one();
    let last = stream.until("the end", |m| (!m.results.is_empty()).then(|| m.progress.first().cloned())).await;
    let last = last.expect("the last progress comes with the end");
    assert_eq!(last.percent, 100, "more than all is all");
    assert_eq!(last.message, "ü".repeat(ERROR_BYTES_MAX / 2), "a longer text is cut");
}

#[tokio::test]
async fn a_repeated_assignment_is_run_once() {
    let mut edge = Edge::start(Manners::default()).await;
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let worker = Worker::connect(edge.url()).handle("count", move |_, _| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok(run) }
    });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("a", "count", ""), job("a", "count", "")]);
    stream.result().await;
    stream.assign([job("a", "count", ""), job("b", "count", "")]);
    assert_eq!(json(&stream.results(1).await["b"]), "1");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_that_the_others_have_not_heard_of_for_long_keeps_no_lease_alive() {
    // Its beats are answered all the time.
    let manners = Manners { lease_age_ms: 9_000, ..Manners::default() };
    let mut edge = Edge::start(manners).await;
    let (told, mut dropped) = mpsc::unbounded_channel();
    let worker = Worker::connect(edge.url())
        .handle("exclusive", move |_, _| hang(told.clone()))
        .on_lease_loss("exclusive", LeaseLoss::Stop)
        .handle("patient", move |_, _| async move { Ok(()) });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("x", "exclusive", "")]);
    let ends = stream.results(1).await;
    assert!(matches!(ends["x"], Outcome::Interrupted(_)), "{ends:?}");
    within("the drop", dropped.recv()).await;
    stream.assign([job("p", "patient", "")]);
    assert!(matches!(stream.results(1).await["p"], Outcome::Succeeded(_)));
}

#[tokio::test]
async fn attempts_that_must_not_outlive_their_lease_are_given_back() {
    let manners = Manners { lost_after_ms: 1_200, ..Manners::default() };
    let mut edge = Edge::start(manners).await;
    let (told, mut dropped) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    let worker = Worker::connect(edge.url())
        .handle("exclusive", move |_, _| hang(told.clone()))
        .on_lease_loss("exclusive", LeaseLoss::Stop)
        .handle("patient", move |_, _| {
            let gate = gate.clone();
            async move {
                gate.notified().await;
                Ok(())
            }
        });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([job("x", "exclusive", ""), job("p", "patient", "")]);
    stream.started(&["x", "p"]).await;
    let address = edge.address;
    drop(stream);
    edge.kill().await;
    within("the drop", dropped.recv()).await;
    opened.notify_one();
    let mut edge = Edge::start_at(address, manners).await;
    let ends = edge.accept().await.results(2).await;
    assert!(matches!(ends["x"], Outcome::Interrupted(_)));
    assert!(matches!(ends["p"], Outcome::Succeeded(_)));
}
