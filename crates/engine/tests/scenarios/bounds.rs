//! How late things may be, with the default settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::request::{Json, NewJob};
use lockgate_core::time::Timestamp;
use lockgate_engine::{Acknowledged, Assignment, Settings, ToWorker};
use tokio::time::Instant;

use super::losses::beat_unstarted;
use super::stage::{Hand, Stage, caller, job};

#[tokio::test(start_paused = true)]
async fn a_retry_starts_at_most_half_a_second_late() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.submit(job("t")).await;
    let first = worker.take().await;
    let asked = Duration::from_secs(3);
    let failed = Instant::now();
    worker.report(&first, Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: Some(asked) }).await;
    worker.take().await;
    let waited = failed.elapsed();
    assert!(waited >= asked && waited <= asked + Duration::from_millis(550), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_workers_job_runs_elsewhere_within_twelve_seconds() {
    let stage = Stage::new();
    let mut doomed = Hand::attach(&stage.engine, "doomed", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    doomed.take().await;
    let silent_since = Instant::now();
    let mut heir = Hand::attach(&stage.engine, "heir", &["t"], 1).await;
    let mut beats = tokio::time::interval(Duration::from_secs(3));
    let moved = loop {
        beats.tick().await;
        heir.beat().await;
        let job = stage.job(&id).await;
        if job.life.attempt.binding.as_ref().is_some_and(|binding| binding.worker.as_str() == "heir") {
            break job;
        }
        assert!(silent_since.elapsed() < Duration::from_secs(60), "{job:?}");
    };
    let dispatched = moved.life.attempt.binding.expect("held").dispatched_at;
    let waited = dispatched.since(moved.life.submitted_at);
    assert!(waited <= Duration::from_millis(12_600), "{waited:?}");
    assert_eq!(moved.life.last_error.expect("a reason").reason, Reason::AgentLost);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_running_job_ends_it_and_tells_the_worker() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(NewJob { deadline_ms: Some(4_000), ..job("t") }).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    let ToWorker::Stop { token, .. } = worker.next().await else { panic!("a stop") };
    assert_eq!(token, assignment.job.life.attempt.token);
    let ended = stage.job(&id).await;
    assert_eq!(ended.state(), JobState::Timeout);
    assert_eq!(worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await, Acknowledged::Superseded);
    assert_eq!(stage.job(&id).await, ended, "a late result changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_works_through_a_long_outage_keeps_its_job() {
    for downtime in [1, 30, 90, 700].map(Duration::from_secs) {
        let stage = Stage::new();
        let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
        let id = stage.submit(NewJob { timeout_ms: Some(3_600_000), ..job("t") }).await;
        let assignment = worker.take().await;
        let held = BTreeMap::from([(assignment.job.life.attempt.token.clone(), id.clone())]);
        drop(worker);

        let stage = stage.crash(downtime).await;
        // The worker's backoff is at most five seconds.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut worker = Hand::attach_with(&stage.engine, "w", &["t"], 1, held, assignment.number).await;
        let outcome = Outcome::Succeeded { result: Json::null() };
        assert_eq!(worker.report(&assignment, outcome).await, Acknowledged::Stored, "{downtime:?}");
        let ended = stage.job(&id).await;
        assert_eq!((ended.state(), ended.life.attempt.no), (JobState::Succeeded, 1), "{downtime:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_ended_in_time_while_nobody_listened_is_not_called_late() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(NewJob { timeout_ms: Some(5_000), ..job("t") }).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    stage.until(&id, |job| job.state() == JobState::Running).await;
    drop(worker);
    let stage = stage.crash(Duration::from_secs(90)).await;
    // Long enough for the server to be sure of its Store, and to have looked for workers that are late.
    tokio::time::sleep(Duration::from_secs(9)).await;
    let held = BTreeMap::from([(assignment.job.life.attempt.token.clone(), id.clone())]);
    let mut worker = Hand::attach_with(&stage.engine, "w", &["t"], 1, held, assignment.number).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let outcome = Outcome::Succeeded { result: Json::null() };
    assert_eq!(worker.report(&assignment, outcome).await, Acknowledged::Stored);
    assert_eq!(stage.job(&id).await.life.attempt.no, 1);
}

#[tokio::test(start_paused = true)]
async fn many_losses_at_once_come_back_spread_over_time() {
    let stage = Stage::new();
    let mut doomed = Hand::attach(&stage.engine, "doomed", &["t"], 40).await;
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(stage.submit(job("t")).await);
    }
    doomed.take_many(40).await;
    let mut due = BTreeSet::new();
    for id in &ids {
        let lost = stage.until(id, |job| job.life.attempt.no == 2).await;
        due.insert(lost.life.due_at);
    }
    assert!(due.len() > 20, "only {} different times for 40 jobs", due.len());
}

/// What a large worker holds, and how many of them may come back in a second.
const HELD: usize = 3_000;
const RATE: usize = 1_000;

/// A large worker that holds as much as it can.
async fn large() -> (Stage, Hand, Vec<Assignment>) {
    let stage = Stage::with(Settings { loss_rate: 1_000, batch_max: 256, ..Settings::default() });
    let mut worker = Hand::attach(&stage.engine, "large", &["t"], u32::try_from(HELD).expect("few")).await;
    for _ in 0..HELD {
        stage.submit(job("t")).await;
    }
    let held = worker.take_many(HELD).await;
    (stage, worker, held)
}

fn assert_spread(due: &mut [Timestamp]) {
    due.sort_unstable();
    for (n, first) in due.iter().enumerate() {
        let within = due[n..].iter().take_while(|at| at.since(*first) < Duration::from_secs(1)).count();
        // The first half a second is spread at random.
        assert!(within <= RATE * 11 / 10, "{within} within a second");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_large_worker_held_comes_back_at_a_bounded_rate() {
    let (stage, _doomed, held) = large().await;
    let silent_since = Instant::now();
    let mut due = Vec::new();
    for assignment in &held {
        let id = &assignment.job.request.job_id;
        due.push(stage.until(id, |job| job.life.attempt.no == 2).await.life.due_at);
    }
    assert!(silent_since.elapsed() <= Duration::from_secs(20), "the rest waits for the next round and no longer");
    assert_spread(&mut due);
}

/// It is heard all the time, and begins with nothing.
#[tokio::test(start_paused = true)]
async fn what_a_large_worker_never_began_comes_back_at_a_bounded_rate() {
    let (stage, mut stuck, held) = large().await;
    let sent = Instant::now();
    let mut beats = tokio::time::interval(Duration::from_secs(3));
    let mut due = Vec::new();
    while due.len() < HELD {
        assert!(sent.elapsed() <= Duration::from_secs(130), "the rest waits for the next round and no longer");
        beats.tick().await;
        beat_unstarted(&stuck, &held).await;
        // It reads what it is told, and stops nothing.
        while stuck.inbound_now().is_some() {}
        due.clear();
        for assignment in &held {
            let job = stage.job(&assignment.job.request.job_id).await;
            due.extend((job.life.attempt.no == 2).then_some(job.life.due_at));
        }
    }
    let reaped = |reason: &str| stage.number(&format!("lockgate_reaped_total{{reason=\"{reason}\"}}"));
    assert_eq!([reaped("dispatch_lost"), reaped("agent_lost")], [3_000.0, 0.0]);
    assert_spread(&mut due);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_whose_caller_goes_away_still_reaches_the_worker() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    worker.take().await;
    let caller = caller();
    let cancel = stage.engine.cancel(&caller, &id, Some(Arc::from("enough")));
    // Polled until it waits for the commit, then dropped.
    assert!(tokio::time::timeout(Duration::ZERO, cancel).await.is_err() || stage.job(&id).await.state().is_terminal());
    let ToWorker::Stop { .. } = worker.next().await else { panic!("a stop") };
    assert_eq!(stage.job(&id).await.state(), JobState::Cancelled);
}
