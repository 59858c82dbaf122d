//! How workers fare that are attached to other processes: heard of every few seconds, and read from a snapshot by those that
//! start.

use std::time::Duration;

use lockgate_core::job::Outcome;
use lockgate_core::request::Json;
use lockgate_core::worker::Load;
use lockgate_engine::{Considered, PoolLevel, WorkerStatus, WorkerView};
use lockgate_ports::Counters;
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, job, pass};

const HOT: Load = Load { cpu: Some(93), gpu: None, memory: Some(12) };

/// The worker beats while time passes.
async fn pass_beating(worker: &mut Hand, load: Load, span: Duration) {
    let end = Instant::now() + span;
    while Instant::now() < end {
        worker.beat_with(load).await;
        pass(Duration::from_secs(1)).await;
    }
}

fn only(workers: Vec<WorkerView>) -> WorkerView {
    let [view] = workers.try_into().expect("one worker");
    view
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_does_is_known_at_every_process_within_a_beat() {
    let one = Stage::shared();
    let other = one.beside();
    let mut worker = Hand::attach(&other.engine, "w", &["t"], 3).await;
    one.submit(job("t")).await;
    let assignment = worker.take().await;
    pass_beating(&mut worker, HOT, Duration::from_secs(6)).await;
    let view = only(one.engine.workers());
    assert_eq!((view.status, view.busy, view.load), (WorkerStatus::Elsewhere, 1, HOT));
    assert!(view.last_beat.is_some());
    let pool = one.engine.pools().await.expect("told").pop().expect("a pool");
    assert_eq!((pool.workers, pool.slots, pool.busy), (1, 3, 1));
    worker.drain().await;
    pass_beating(&mut worker, HOT, Duration::from_secs(4)).await;
    assert_eq!(only(one.engine.workers()).status, WorkerStatus::Draining);
    worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
}

/// What an autoscaler goes by.
fn level(stage: &Stage) -> PoolLevel {
    let levels = stage.engine.pool_levels();
    let level = levels.borrow().get(&"default".into()).copied();
    level.expect("looked at")
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_at_work_whichever_process_its_workers_are_attached_to() {
    let one = Stage::shared();
    let other = one.beside();
    let mut worker = Hand::attach(&other.engine, "w", &["t"], 3).await;
    one.submit(job("t")).await;
    let assignment = worker.take().await;
    pass_beating(&mut worker, HOT, Duration::from_secs(6)).await;
    assert_eq!((level(&one).busy, level(&one).busy_elsewhere), (0, 1));
    assert_eq!((level(&other).busy, level(&other).busy_elsewhere), (1, 0));
    worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
    pass_beating(&mut worker, HOT, Duration::from_secs(6)).await;
    assert_eq!((level(&one).busy_elsewhere, level(&other).busy), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_knows_how_workers_fare_within_a_second() {
    let one = Stage::shared();
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 2).await;
    let waits = one.submit(job("t")).await;
    worker.take().await;
    one.submit(job("t")).await;
    worker.take().await;
    let third = one.submit(job("t")).await;
    pass_beating(&mut worker, HOT, Duration::from_secs(6)).await;
    // Out of earshot: whatever it knows, it knows from rows and from the snapshot.
    let late = one.beside_unheard();
    pass(Duration::from_millis(900)).await;
    let view = only(late.engine.workers());
    assert_eq!((view.status, view.busy, view.load), (WorkerStatus::Elsewhere, 2, HOT));
    let why = late.engine.why(&caller(), &third).await.expect("explained");
    let seen: Vec<&Considered> = why.pools.iter().flat_map(|pool| &pool.workers).collect();
    assert_eq!(seen.iter().map(|seen| (seen.verdict.as_str(), seen.free_slots)).collect::<Vec<_>>(), [("busy", 0)]);
    assert_eq!(why.reason, "workers_busy");
    assert!((late.number("lockgate_workers_warm") - 1.0).abs() < f64::EPSILON);
    assert!(late.job(&waits).await.state().is_held());
}

#[tokio::test(start_paused = true)]
async fn what_a_snapshot_says_of_workers_that_are_gone_counts_for_nothing() {
    let one = Stage::shared();
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 2).await;
    pass_beating(&mut worker, HOT, Duration::from_secs(6)).await;
    let (snapshot, _) = one.counters.kept_workers().await.expect("an answer").expect("a snapshot");
    // Silent for too long: its session is closed.
    while !one.engine.workers().is_empty() {
        pass(Duration::from_secs(1)).await;
    }
    one.counters.keep_workers(&snapshot).await.expect("an old one is back");
    let late = one.beside_unheard();
    pass(Duration::from_millis(900)).await;
    assert!(late.engine.workers().is_empty());
    // And one that came back is not what it was.
    let _again = Hand::attach(&one.engine, "w", &["t"], 2).await;
    pass(Duration::from_secs(3)).await;
    let view = only(late.engine.workers());
    assert_eq!((view.load, view.last_beat), (Load::default(), None), "of this attach nothing was heard");
}

#[tokio::test(start_paused = true)]
async fn live_words_win_over_the_snapshot_and_the_latest_over_all() {
    let one = Stage::shared();
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 2).await;
    pass_beating(&mut worker, HOT, Duration::from_secs(6)).await;
    let (snapshot, _) = one.counters.kept_workers().await.expect("an answer").expect("a snapshot");
    let late = one.beside();
    let cool = Load { cpu: Some(5), ..Load::default() };
    pass_beating(&mut worker, cool, Duration::from_secs(5)).await;
    assert_eq!(only(late.engine.workers()).load, cool);
    // Somebody keeps what is old news.
    one.counters.keep_workers(&snapshot).await.expect("kept");
    pass_beating(&mut worker, cool, Duration::from_secs(4)).await;
    assert_eq!(only(late.engine.workers()).load, cool);
    assert_eq!(only(one.engine.workers()).load, cool, "what is attached here speaks for itself");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_confirms_for_thirty_seconds_is_forgotten() {
    let one = Stage::shared();
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 2).await;
    pass_beating(&mut worker, HOT, Duration::from_secs(6)).await;
    let late = one.beside_unheard();
    pass_beating(&mut worker, HOT, Duration::from_secs(20)).await;
    assert_eq!(only(late.engine.workers()).load, HOT);
    pass_beating(&mut worker, HOT, Duration::from_secs(12)).await;
    let view = only(late.engine.workers());
    assert_eq!((view.status, view.load, view.last_beat), (WorkerStatus::Elsewhere, Load::default(), None));
    assert_eq!(level(&late).busy_elsewhere, 1, "it may be at work");
}

#[tokio::test(start_paused = true)]
async fn one_process_writes_the_snapshot_and_another_goes_on_when_it_dies() {
    let one = Stage::shared();
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 2).await;
    pass_beating(&mut worker, HOT, Duration::from_secs(6)).await;
    let other = one.beside();
    pass_beating(&mut worker, HOT, Duration::from_secs(11)).await;
    let written = |stage: &Stage| stage.number("lockgate_workers_snapshot_timestamp_seconds");
    assert!(written(&one) > 0.0 && written(&other) < 1.0);
    one.kill();
    pass(Duration::from_secs(15)).await;
    assert!(written(&other) > 0.0, "within the lock's ten seconds and one round");
    let third = other.beside();
    other.stop().await;
    pass(Duration::from_secs(6)).await;
    assert!(written(&third) > 0.0, "at once when the lock is given back");
}
