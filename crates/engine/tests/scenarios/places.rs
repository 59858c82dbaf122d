//! Places on workers: nobody's idleness blocks another, and every end frees one.

use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::Json;
use lockgate_engine::{Acknowledged, Settings, ToWorker};

use super::stage::{Hand, Stage, caller, job};

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
async fn a_cancelled_job_frees_its_place_at_once() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let first = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    let second = stage.submit(job("t")).await;
    assert_eq!(stage.engine.cancel(&caller(), &first, None).await.expect("cancelled"), JobState::Cancelled);
    worker.next().await;
    assert_eq!(worker.take().await.job.request.job_id, second);
    assert_eq!(worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await, Acknowledged::Superseded);
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
