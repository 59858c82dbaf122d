//! Attempts that wait in the worker, and the server that wants them back.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_proto::v1::ServerMessage;
use lockgate_proto::v1::result::Outcome;
use lockgate_worker::{Context, Worker};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::edge::{Attached, Edge, Manners, job, revoke};
use crate::running::Running;

/// How often each job was begun.
type Runs = Arc<Mutex<BTreeMap<String, u32>>>;

/// A worker with one slot, whose jobs of topic `wait` run until the gate lets one of them go.
struct Bench {
    edge: Edge,
    gate: Arc<Notify>,
    runs: Runs,
    _running: Running,
}

impl Bench {
    async fn start() -> Self {
        let edge = Edge::start(Manners::default()).await;
        let (gate, runs) = (Arc::new(Notify::new()), Runs::default());
        let (opened, begun) = (gate.clone(), runs.clone());
        let worker = Worker::connect(edge.url()).slots(1).prefetch(2);
        let worker = worker.handle("wait", move |ctx: Context, _| {
            let opened = opened.clone();
            *begun.lock().entry(ctx.job_id().to_owned()).or_default() += 1;
            async move {
                opened.notified().await;
                Ok(())
            }
        });
        let noted = runs.clone();
        let worker = worker.handle("quick", move |ctx: Context, _| {
            *noted.lock().entry(ctx.job_id().to_owned()).or_default() += 1;
            async { Ok(()) }
        });
        Self { _running: Running::start(worker), edge, gate, runs }
    }

    /// One job that runs and others that wait behind it.
    async fn with_waiting(&mut self, waiting: &[&str]) -> Attached {
        let mut stream = self.edge.accept().await;
        stream.assign([job("runs", "wait", "")].into_iter().chain(waiting.iter().map(|token| job(token, "quick", ""))));
        stream.started(&["runs"]).await;
        stream
    }

    fn runs(&self, token: &str) -> u32 {
        self.runs.lock().get(&format!("job-{token}")).copied().unwrap_or_default()
    }
}

#[tokio::test]
async fn a_waiting_attempt_that_is_called_back_is_given_back_and_not_run() {
    let mut bench = Bench::start().await;
    let mut stream = bench.with_waiting(&["wanted", "kept"]).await;
    stream.revoke(&["wanted"]);
    let results = stream.results(1).await;
    assert!(matches!(results["wanted"], Outcome::Revoked(_)), "{results:?}");
    assert_eq!(stream.held().await, ["kept", "runs", "wanted"], "it is held until the server has it back");
    stream.ack("wanted");
    while stream.held().await != ["kept", "runs"] {}
    bench.gate.notify_one();
    let results = stream.results(2).await;
    assert!(["runs", "kept"].iter().all(|token| matches!(results[*token], Outcome::Succeeded(_))), "{results:?}");
    assert_eq!([bench.runs("runs"), bench.runs("kept"), bench.runs("wanted")], [1, 1, 0]);
}

/// Trap 17: another worker has the job by now.
#[tokio::test]
async fn a_waiting_attempt_that_is_stopped_is_let_go_of_and_never_run() {
    let mut bench = Bench::start().await;
    let mut stream = bench.with_waiting(&["given-up", "kept"]).await;
    stream.stop("given-up");
    let gone = stream.until("what was let go", |message| message.let_go.first().cloned()).await;
    assert_eq!(gone, "given-up");
    bench.gate.notify_one();
    // Behind the one that was stopped: its turn would have come first.
    let results = stream.results(2).await;
    assert_eq!(results.keys().collect::<Vec<_>>(), ["kept", "runs"]);
    assert_eq!(stream.held().await, ["kept", "runs"]);
    assert_eq!([bench.runs("runs"), bench.runs("kept"), bench.runs("given-up")], [1, 1, 0]);
}

#[tokio::test]
async fn what_runs_has_ended_or_is_unknown_is_not_disturbed_by_a_call_back() {
    let mut bench = Bench::start().await;
    let mut stream = bench.with_waiting(&["last"]).await;
    stream.revoke(&["runs", "unknown"]);
    stream.held().await;
    bench.gate.notify_one();
    let results = stream.results(2).await;
    assert!(results.values().all(|outcome| matches!(outcome, Outcome::Succeeded(_))), "{results:?}");
    // Its result is not acknowledged yet, so the worker still holds it.
    stream.revoke(&["last"]);
    stream.assign([job("after", "quick", "")]);
    let mut given_back = false;
    let after = stream.until("what comes after the call", |message| {
        given_back |= message.results.iter().any(|result| matches!(result.outcome, Some(Outcome::Revoked(_))));
        message.results.iter().any(|result| result.token == "after").then_some(())
    });
    after.await;
    assert!(!given_back);
    assert_eq!([bench.runs("runs"), bench.runs("last")], [1, 1]);
}

#[tokio::test]
async fn an_attempt_may_be_called_back_in_the_message_that_brings_it() {
    let mut bench = Bench::start().await;
    let mut stream = bench.with_waiting(&[]).await;
    let mut assignment = job("crossed", "quick", "");
    assignment.number = 2;
    let (assignments, revokes) = (vec![assignment], vec![revoke("crossed")]);
    stream.send(ServerMessage { assignments, revokes, ..ServerMessage::default() });
    assert!(matches!(stream.results(1).await["crossed"], Outcome::Revoked(_)));
    assert_eq!(bench.runs("crossed"), 0);
}

#[tokio::test]
async fn what_was_given_back_is_told_again_when_the_stream_broke() {
    let mut bench = Bench::start().await;
    let mut stream = bench.with_waiting(&["wanted"]).await;
    stream.revoke(&["wanted"]);
    stream.results(1).await;
    drop(stream);
    let mut stream = bench.edge.accept().await;
    assert!(stream.hello.inventory.iter().any(|held| held.token == "wanted" && held.started_at_ms.is_none()));
    assert!(matches!(stream.results(1).await["wanted"], Outcome::Revoked(_)));
}

/// The slot becomes free while the call is on its way. Which of the two wins is chance; that both win must not happen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_called_back_while_a_slot_becomes_free_is_either_run_or_given_back() {
    let mut bench = Bench::start().await;
    let mut stream = bench.edge.accept().await;
    let mut given_back = Vec::new();
    for round in 0..100 {
        let [first, second] = ["first", "second"].map(|name| format!("{name}-{round}"));
        stream.assign([job(&first, "wait", ""), job(&second, "quick", "")]);
        stream.started(&[&first]).await;
        if round % 2 == 0 {
            bench.gate.notify_one();
            stream.revoke(&[&second]);
        } else {
            stream.revoke(&[&second]);
            bench.gate.notify_one();
        }
        let results = stream.results(2).await;
        match &results[&second] {
            Outcome::Succeeded(_) => assert_eq!(bench.runs(&second), 1),
            Outcome::Revoked(_) => given_back.push(second.clone()),
            other => panic!("{other:?}"),
        }
        [&first, &second].iter().for_each(|token| stream.ack(token));
    }
    // A second answer, or a run after all, would have come by now: this job is behind everything.
    stream.assign([job("end", "quick", "")]);
    assert_eq!(stream.results(1).await.into_keys().collect::<Vec<_>>(), ["end"]);
    assert!(given_back.iter().all(|token| bench.runs(token) == 0), "{given_back:?}");
    assert_eq!(bench.runs.lock().values().sum::<u32>(), 201 - given_back.len() as u32);
}
