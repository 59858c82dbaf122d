//! Scans that take long: they keep no process from its end, and no result from its turn.

use std::time::Duration;

use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Duty, Outcome};
use lockgate_core::request::Json;
use lockgate_engine::Settings;
use lockgate_model::MemoryStore;
use lockgate_ports::JobStore;
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, job, pass};

const PATIENCE: Duration = Duration::from_secs(120);
/// More than a page.
const RESULTS: usize = 100;

const RULES: &str = "
version: 1
default: {decision: allow, reason: fine}
output:
  fail_mode: closed
  rules: [{id: cards, match: {scan: [credit_card]}, decision: quarantine, reason: a card number}]
";

fn settings() -> Settings {
    Settings { exclusive_store: false, ..Settings::default() }
}

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::parse("1").expect("JSON") }
}

/// Scans in this process take so long from now on.
fn slow(stage: &Stage, each: Duration) {
    *stage.scans_take.lock().expect("no test panicked") = each;
}

async fn run(stage: &Stage, worker: &mut Hand, count: usize) {
    let answers = stage.engine.submit(&caller(), vec![job("t"); count]).await.expect("taken");
    assert!(answers.iter().all(Result::is_ok));
    for assignment in &worker.take_many(count).await {
        worker.report(assignment, done()).await;
    }
}

/// A process whose results came out and were not scanned, in scans of this length.
async fn with_results(each: Duration) -> Stage {
    let stage = Stage::with(settings());
    stage.apply(RULES).await;
    slow(&stage, each);
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 200).await;
    run(&stage, &mut worker, RESULTS).await;
    stage
}

async fn owed(store: &MemoryStore) -> usize {
    store.owing(Duty::Scan, JobSeq::default(), 10_000).await.expect("memory").len()
}

async fn until_scanned(store: &MemoryStore) {
    let deadline = Instant::now() + PATIENCE;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    while owed(store).await > 0 {
        assert!(Instant::now() < deadline, "{} are owed", owed(store).await);
        tick.tick().await;
    }
}

/// How often somebody looked at a result in this process.
fn verdicts(stage: &Stage) -> f64 {
    let name = |series: &str| series.split('{').next() == Some("lockgate_output_verdicts_total");
    stage.series().iter().filter(|(series, _)| name(series)).map(|(_, value)| value).sum()
}

/// SIGTERM while scans are under way that would take a minute and more. Another process does what is left.
async fn stop_soon(stage: Stage) {
    let store = stage.store.clone();
    let next = stage.beside_with(settings());
    let asked = Instant::now();
    stage.stop().await;
    assert!(asked.elapsed() <= Duration::from_secs(1), "{:?}", asked.elapsed());
    assert!(owed(&store).await > 0, "all of them were scanned first");
    until_scanned(&store).await;
    next.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_scans_of_what_came_in() {
    let stage = with_results(Duration::from_secs(20)).await;
    pass(Duration::from_secs(5)).await;
    stop_soon(stage).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_scans_of_what_others_left() {
    let gone = with_results(Duration::from_secs(3_600)).await;
    gone.kill();
    let leader = gone.beside_with(settings());
    slow(&leader, Duration::from_secs(20));
    pass(Duration::from_secs(10)).await;
    stop_soon(leader).await;
}

#[tokio::test(start_paused = true)]
async fn what_others_left_is_scanned_once_however_long_it_takes() {
    let gone = with_results(Duration::from_secs(3_600)).await;
    gone.kill();
    let [one, other] = [gone.beside_with(settings()), gone.beside_with(settings())];
    // The lease is good for two seconds.
    slow(&one, Duration::from_secs(3));
    slow(&other, Duration::from_secs(3));
    until_scanned(&gone.store).await;
    assert_eq!(verdicts(&one) + verdicts(&other), RESULTS as f64);
}

#[tokio::test(start_paused = true)]
async fn the_result_of_an_old_job_has_its_turn_however_many_newer_ones_come() {
    let stage = Stage::with(settings());
    stage.apply(RULES).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["*"], 200).await;
    let old = stage.submit(job("old")).await;
    let held = worker.take().await;
    // Sixteen a second are scanned, and twenty come.
    slow(&stage, Duration::from_secs(1));
    for second in 0..40 {
        run(&stage, &mut worker, 20).await;
        if second == 2 {
            worker.report(&held, done()).await;
        }
        worker.beat().await;
        pass(Duration::from_secs(1)).await;
    }
    assert!(!stage.job(&old).await.needs_scan(), "{} newer ones are owed", owed(&stage.store).await);
}
