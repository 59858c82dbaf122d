//! Attaches that were cut off: the Store has a session that this process never heard of.

use std::time::Duration;

use lockgate_core::ids::SessionId;
use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::request::Json;
use lockgate_engine::ApiError;
use lockgate_ports::Sessions;
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, job};

/// The worker of `session` attached once more, and nobody here was told.
async fn attach_unheard(stage: &Stage, session: &str) {
    let store = &stage.store;
    let open = store.open_sessions().await.expect("memory");
    let row = open.into_iter().find(|row| row.session == SessionId::from(session)).expect("it attached");
    store.attach(&row.session, &row.edge, &row.profile).await.expect("memory").expect("its own");
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_held_whose_last_attach_was_cut_off_is_not_lost_with_it() {
    for stage in [Stage::new(), Stage::shared()] {
        let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
        let id = stage.submit(job("t")).await;
        let assignment = worker.take().await;
        worker.start(&assignment).await;
        attach_unheard(&stage, "w").await;
        drop(worker);
        let gone = Instant::now();
        let lost = stage.until(&id, |job| job.life.attempt.no == 2).await;
        assert_eq!(lost.life.last_error.expect("a reason").reason, Reason::AgentLost);
        assert!(gone.elapsed() >= Duration::from_secs(10), "it had its time to come again: {:?}", gone.elapsed());
        let mut other = Hand::attach(&stage.engine, "other", &["t"], 1).await;
        let again = other.take().await;
        other.report(&again, Outcome::Succeeded { result: Json::null() }).await;
        stage.until(&id, |job| job.state() == JobState::Succeeded).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_comes_again_after_a_cut_off_attach_keeps_what_it_has() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    attach_unheard(&stage, "w").await;
    let (held, highest) = worker.into_inventory();
    tokio::time::sleep(Duration::from_secs(8)).await;
    let mut worker = Hand::attach_with(&stage.engine, "w", &["t"], 1, held, highest).await;
    for _ in 0..8 {
        worker.beat().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
    let ended = stage.until(&id, |job| job.state() == JobState::Succeeded).await;
    assert_eq!(ended.life.attempt.no, 1);
}

#[tokio::test(start_paused = true)]
async fn who_attaches_to_a_process_whose_edge_was_closed_is_told_to_come_again() {
    let stage = Stage::shared();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Its loops are gone, so it does not know.
    stage.kill();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let open = stage.store.open_edges().await.expect("memory");
    assert_eq!(stage.store.close_edges(&open, Duration::ZERO).await.expect("memory").len(), 1);
    let refused = Hand::try_attach(&stage.engine, "w", &Kind::of("default", &["t"], 1)).await;
    assert!(matches!(refused, Err(ApiError::Unavailable(_))), "it would be lost as soon as somebody looks");
    assert_eq!(stage.store.open_sessions().await.expect("memory"), []);
}

/// An attach whose caller had given it up came late, and took the session from under its worker.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_session_was_taken_by_a_late_attach_comes_again_and_loses_nothing() {
    for stage in [Stage::new(), Stage::shared()] {
        let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
        let id = stage.submit(job("t")).await;
        let assignment = worker.take().await;
        worker.start(&assignment).await;
        attach_unheard(&stage, "w").await;
        let taken = Instant::now();
        tokio::time::timeout(Duration::from_secs(5), worker.attachment.given_up()).await.expect("its stream ends");
        let (held, highest) = worker.into_inventory();
        let mut worker = Hand::attach_with(&stage.engine, "w", &["t"], 1, held, highest).await;
        while taken.elapsed() < Duration::from_secs(40) {
            tokio::time::sleep(Duration::from_secs(2)).await;
            worker.beat().await;
        }
        worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
        let ended = stage.until(&id, |job| job.state() == JobState::Succeeded).await;
        assert_eq!(ended.life.attempt.no, 1);
    }
}
