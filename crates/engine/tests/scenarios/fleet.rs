//! Which worker of the fleet gets a job, with workers attached to two gateways.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::JobState;
use lockgate_core::request::NewJob;
use lockgate_core::worker::Load;
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, caller, job, pass};

const DIRECT: &str = "topics: {t: d}\npools: {d: {dispatch: direct}}\n";

/// A job that runs for as long as the test does.
fn long() -> NewJob {
    NewJob { timeout_ms: Some(3_600_000), ..job("t") }
}

fn preferring(worker: &str) -> NewJob {
    NewJob { labels: BTreeMap::from([("preferred_worker_id".to_owned(), worker.to_owned())]), ..long() }
}

/// All workers beat while time passes, long enough for every gateway to hear of them.
async fn beat_for(workers: &mut [&mut Hand], span: Duration) {
    let end = Instant::now() + span;
    while Instant::now() < end {
        for worker in &mut *workers {
            worker.beat().await;
        }
        pass(Duration::from_secs(1)).await;
    }
}

/// The worker that a job was sent to.
async fn sent_to(stage: &Stage, id: &JobId) -> String {
    let job = stage.until(id, |job| job.state() != JobState::Scheduled && job.state() != JobState::Pending).await;
    job.life.attempt.binding.expect("dispatched").worker.as_str().to_owned()
}

/// Two gateways, a worker of 40 slots at each, and 25 jobs at the first one's.
async fn uneven(pools: &str) -> ([Stage; 2], [Hand; 2]) {
    let one = Stage::shared();
    let other = one.beside();
    one.pools(pools).await;
    // The other one learns of the pools by its own clock.
    pass(Duration::from_secs(6)).await;
    let mut busy = Hand::attach_as(&one.engine, "busy", &Kind::of("d", &["*"], 40)).await;
    for _ in 0..25 {
        one.submit(long()).await;
        busy.take().await;
    }
    let mut idle = Hand::attach_as(&other.engine, "idle", &Kind::of("d", &["*"], 40)).await;
    beat_for(&mut [&mut busy, &mut idle], Duration::from_secs(7)).await;
    ([one, other], [busy, idle])
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_direct_pool_go_to_the_idle_worker_through_whichever_gateway_they_come() {
    for gateway in 0..2 {
        let (stages, _workers) = uneven(DIRECT).await;
        let began = Instant::now();
        let mut idle = 0;
        for _ in 0..19 {
            let id = stages[gateway].submit(long()).await;
            idle += usize::from(sent_to(&stages[0], &id).await == "idle");
        }
        assert!(idle >= 18, "through gateway {gateway}, {idle} of 19 went to the idle worker");
        assert!(began.elapsed() < Duration::from_secs(1), "and none had to wait: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_in_a_direct_pool_goes_to_the_idle_worker_until_both_have_as_much_to_do() {
    for gateway in 0..2 {
        let (stages, _workers) = uneven(DIRECT).await;
        let mut ids = Vec::new();
        for _ in 0..35 {
            ids.push(stages[gateway].submit(long()).await);
        }
        let mut idle = 0;
        for id in &ids {
            idle += usize::from(sent_to(&stages[0], id).await == "idle");
        }
        assert!((28..=32).contains(&idle), "through gateway {gateway}: 25 + 5 and 30 would be even, {idle} is not");
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_worker_that_a_job_prefers_gets_it_through_whichever_gateway_it_comes() {
    for pools in [DIRECT, "topics: {t: d}\npools: {d: {}}\n"] {
        for gateway in 0..2 {
            let (stages, _workers) = uneven(pools).await;
            for (worker, jobs) in [("busy", 5), ("idle", 20)] {
                let mut honoured = 0;
                for _ in 0..jobs {
                    let id = stages[gateway].submit(preferring(worker)).await;
                    honoured += usize::from(sent_to(&stages[0], &id).await == worker);
                }
                assert_eq!(honoured, jobs, "{pools} through gateway {gateway}, for {worker}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_left_to_a_gateway_that_died_runs_at_another_within_a_second() {
    let (stages, mut workers) = uneven(DIRECT).await;
    stages[1].kill();
    let died = Instant::now();
    let first = stages[0].submit(long()).await;
    assert_eq!(sent_to(&stages[0], &first).await, "busy");
    assert!(died.elapsed() <= Duration::from_secs(1), "{:?}", died.elapsed());
    let next = Instant::now();
    for _ in 0..5 {
        let id = stages[0].submit(preferring("idle")).await;
        assert_eq!(sent_to(&stages[0], &id).await, "busy");
    }
    assert!(next.elapsed() <= Duration::from_millis(100), "it waits once, not for every job: {:?}", next.elapsed());
    workers[0].take_many(6).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_left_to_a_worker_that_leaves_runs_at_another() {
    let (stages, mut workers) = uneven(DIRECT).await;
    workers[1].drain().await;
    pass(Duration::from_millis(50)).await;
    let began = Instant::now();
    let id = stages[0].submit(preferring("idle")).await;
    assert_eq!(sent_to(&stages[0], &id).await, "busy");
    assert!(began.elapsed() <= Duration::from_millis(100), "its gateway told of it: {:?}", began.elapsed());
    workers[0].take().await;
}

const HOT: Load = Load { cpu: Some(80), gpu: None, memory: None };

#[tokio::test(start_paused = true)]
async fn in_a_queue_pool_a_worker_over_its_limit_claims_last_and_still_claims() {
    for far in [false, true] {
        let one = Stage::shared();
        let other = one.beside();
        one.pools("topics: {t: d}\npools: {d: {overload: {cpu: 80}}}\n").await;
        pass(Duration::from_secs(6)).await;
        let mut hot = Hand::attach_as(&one.engine, "hot", &Kind::of("d", &["*"], 4)).await;
        let at = if far { &other } else { &one };
        let mut cool = Hand::attach_as(&at.engine, "cool", &Kind::of("d", &["*"], 4)).await;
        for _ in 0..7 {
            hot.beat_with(HOT).await;
            cool.beat().await;
            pass(Duration::from_secs(1)).await;
        }
        for expected in ["cool", "cool", "cool", "cool", "hot", "hot", "hot", "hot"] {
            let id = one.submit(long()).await;
            assert_eq!(sent_to(&one, &id).await, expected, "with the other worker far away: {far}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_died_with_many_idle_workers_costs_one_wait() {
    let (stages, mut workers) = uneven(DIRECT).await;
    let mut idle = Vec::new();
    for n in 0..8 {
        idle.push(Hand::attach_as(&stages[1].engine, &format!("idle-{n}"), &Kind::of("d", &["*"], 40)).await);
    }
    let mut all: Vec<&mut Hand> = workers.iter_mut().chain(&mut idle).collect();
    beat_for(&mut all, Duration::from_secs(7)).await;
    stages[1].kill();
    let died = Instant::now();
    let id = stages[0].submit(long()).await;
    assert_eq!(sent_to(&stages[0], &id).await, "busy");
    assert!(died.elapsed() <= Duration::from_secs(1), "it waits once, not for every worker: {:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn why_says_overloaded_at_whichever_gateway_the_overloaded_workers_are() {
    let one = Stage::shared();
    let other = one.beside();
    one.pools(DIRECT).await;
    pass(Duration::from_secs(6)).await;
    let mut hot = Hand::attach_as(&other.engine, "hot", &Kind::of("d", &["*"], 4)).await;
    for _ in 0..7 {
        hot.beat_with(Load { cpu: Some(95), gpu: None, memory: None }).await;
        pass(Duration::from_secs(1)).await;
    }
    let id = one.submit(long()).await;
    for stage in [&one, &other] {
        hot.beat_with(Load { cpu: Some(95), gpu: None, memory: None }).await;
        pass(Duration::from_millis(200)).await;
        let why = stage.engine.why(&caller(), &id).await.expect("explained");
        assert_eq!(why.reason, "pool_overloaded", "{why:?}");
        assert_eq!(why.pools[0].workers[0].verdict, "overloaded:cpu");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drained_worker_that_holds_nothing_leaves_at_once_and_is_not_silent() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 2).await;
    worker.beat().await;
    worker.drain().await;
    drop(worker);
    let left = Instant::now();
    while !stage.engine.workers().is_empty() {
        pass(Duration::from_millis(100)).await;
        assert!(left.elapsed() < Duration::from_secs(5), "it is not waited for until it was silent for too long");
    }
}
