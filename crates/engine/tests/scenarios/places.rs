//! Places on workers: nobody's idleness blocks another, and every end frees one.

use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{Acknowledged, Assignment, Settings, ToWorker};

use super::stage::{Hand, Kind, Stage, caller, job};

#[tokio::test(start_paused = true)]
async fn an_idle_wide_worker_does_not_keep_another_from_its_work() {
    let stage = Stage::with(Settings { batch_max: 4, ..Settings::default() });
    // Sessions are served in the order of their ids: the wide one first.
    let _wide = Hand::attach(&stage.engine, "a-wide", &["other"], 100).await;
    let mut narrow = Hand::attach(&stage.engine, "b-narrow", &["billing"], 1).await;
    stage.submit(job("other.unserved")).await;
    let id = stage.submit(job("billing")).await;
    assert_eq!(narrow.take().await.job.request.job_id, id);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_frees_its_place_as_soon_as_its_worker_has_let_go_of_it() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let first = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    let second = stage.submit(job("t")).await;
    assert_eq!(stage.engine.cancel(&caller(), &first, None).await.expect("cancelled"), JobState::Cancelled);
    assert!(matches!(worker.next().await, ToWorker::Stop { .. }));
    worker.beat().await;
    assert_eq!(stage.engine.workers()[0].busy, 1, "its handler still runs");
    worker.let_go(&assignment).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
    assert_eq!(worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await, Acknowledged::Superseded);
}

/// Two jobs of which one may run at a time; the first was sent to the worker and is over for the server.
async fn stopped_under_a_limit() -> (Stage, Hand, Assignment, JobId) {
    let stage = Stage::new();
    stage.pools("topics: {t: p}\npools: {p: {}}\nlimits: [{name: one, per: [topic], max_concurrent: 1}]\n").await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 9)).await;
    stage.submit(NewJob { timeout_ms: Some(1_000), max_attempts: Some(1), ..job("t") }).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    let second = stage.submit(job("t")).await;
    let mut heard = false;
    while !heard {
        worker.beat().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        heard = matches!(worker.inbound_now(), Some(ToWorker::Stop { .. }));
    }
    let state = stage.job(&assignment.job.request.job_id).await.state();
    assert_eq!(state, JobState::Timeout);
    (stage, worker, assignment, second)
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_ran_out_of_time_keeps_its_limit_until_its_worker_has_let_go_of_it() {
    let (stage, mut worker, assignment, second) = stopped_under_a_limit().await;
    // Longer than the look for leaks takes, twice.
    for _ in 0..90 {
        worker.beat().await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    stage.until_reason(&second, "limit_full").await;
    worker.let_go(&assignment).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}

#[tokio::test(start_paused = true)]
async fn a_beat_without_a_stopped_attempt_says_that_it_is_gone() {
    let (stage, mut worker, assignment, second) = stopped_under_a_limit().await;
    stage.until_reason(&second, "limit_full").await;
    worker.forget(&assignment);
    worker.beat().await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_frees_the_limits_of_what_it_did_not_let_go_of() {
    let (stage, worker, _, second) = stopped_under_a_limit().await;
    stage.until_reason(&second, "limit_full").await;
    drop(worker);
    let mut other = Hand::attach_as(&stage.engine, "other", &Kind::of("p", &["*"], 9)).await;
    assert_eq!(other.take().await.job.request.job_id, second);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_comes_back_without_a_stopped_attempt_has_let_go_of_it() {
    let (stage, worker, assignment, second) = stopped_under_a_limit().await;
    let (mut held, highest) = worker.into_inventory();
    let kind = Kind::of("p", &["*"], 9);
    let worker = Hand::attach_kind(&stage.engine, "w", &kind, held.clone(), highest).await;
    assert_eq!(stage.engine.workers()[0].busy, 1, "it came back with it");
    stage.until_reason(&second, "limit_full").await;
    drop(worker);
    held.remove(&assignment.job.life.attempt.token);
    let mut worker = Hand::attach_kind(&stage.engine, "w", &kind, held, highest).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}

#[tokio::test(start_paused = true)]
async fn a_result_sent_twice_frees_one_place_and_is_answered_twice() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.submit(job("t")).await;
    let assignment = worker.take().await;
    let outcome = Outcome::Succeeded { result: Json::null() };
    assert_eq!(worker.report(&assignment, outcome.clone()).await, Acknowledged::Stored);
    assert_eq!(worker.report(&assignment, outcome).await, Acknowledged::Superseded);
    assert_eq!(stage.engine.workers()[0].busy, 0);
}

#[tokio::test(start_paused = true)]
async fn a_draining_worker_is_dismissed_when_its_place_is_free_and_gets_nothing_more() {
    let stage = Stage::new();
    let mut leaving = Hand::attach(&stage.engine, "leaving", &["t"], 1).await;
    stage.submit(job("t")).await;
    let assignment = leaving.take().await;
    leaving.drain().await;
    let second = stage.submit(job("t")).await;
    leaving.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
    leaving.drain().await;
    assert!(matches!(leaving.next().await, ToWorker::Dismissed));
    let mut staying = Hand::attach(&stage.engine, "staying", &["t"], 1).await;
    assert_eq!(staying.take().await.job.request.job_id, second);
}
