//! Only what waits for a slot makes others wait.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::job::Outcome;
use lockgate_core::quotas::LimitedBy;
use lockgate_core::request::{Caller, Json, NewJob};
use lockgate_engine::{ApiError, Submitted};

use super::stage::{Hand, Kind, Stage, job};

fn good() -> Caller {
    Caller::new("good", "ann")
}

fn evil() -> Caller {
    Caller::new("evil", "eve")
}

fn gpu() -> NewJob {
    NewJob { requires: BTreeSet::from(["gpu".to_owned()]), ..job("picture") }
}

fn is_let_in(answer: &Result<Submitted, ApiError>) -> bool {
    match answer {
        Ok(_) => true,
        Err(ApiError::Limited(limited)) if limited.by == LimitedBy::Ceiling => false,
        Err(error) => panic!("{error}"),
    }
}

/// How many were let in.
async fn send(stage: &Stage, caller: &Caller, jobs: Vec<NewJob>) -> usize {
    let answers = stage.engine.submit(caller, jobs).await.expect("a good batch");
    answers.iter().filter(|answer| is_let_in(answer)).count()
}

/// Jobs come and are done, about two a second: then the pace is known.
async fn flow(stage: &Stage, worker: &mut Hand) {
    for _ in 0..8 {
        assert_eq!(send(stage, &good(), vec![job("t")]).await, 1);
        let assignment = worker.take().await;
        worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
        worker.beat().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// A minute in which workers do nothing but beat.
async fn idle(workers: &mut [&mut Hand]) {
    for _ in 0..30 {
        for worker in workers.iter_mut() {
            worker.beat().await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_nobody_fits_keeps_no_other_out() {
    let stage = Stage::new();
    stage.quotas("ceilings: {wait: 30s}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["*"], 16).await;
    flow(&stage, &mut worker).await;
    assert_eq!(send(&stage, &evil(), vec![gpu()]).await, 1);
    idle(&mut [&mut worker]).await;
    assert_eq!(send(&stage, &good(), vec![job("t"); 16]).await, 16, "all slots are free");
    assert_eq!(worker.take_many(16).await.len(), 16);
}

#[tokio::test(start_paused = true)]
async fn what_a_limit_holds_back_keeps_no_other_out() {
    let stage = Stage::new();
    let one = "topics: {'*': default}\npools: {default: {}}\nlimits: [{name: one, topics: [slow], max_concurrent: 1}]\n";
    stage.pools(one).await;
    stage.quotas("ceilings: {wait: 30s}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["*"], 16).await;
    flow(&stage, &mut worker).await;
    assert_eq!(send(&stage, &evil(), vec![job("slow"); 30]).await, 30);
    let running = worker.take().await;
    worker.start(&running).await;
    idle(&mut [&mut worker]).await;
    assert_eq!(send(&stage, &good(), vec![job("t"); 15]).await, 15, "all other slots are free");
    assert_eq!(worker.take_many(15).await.len(), 15);
}

#[tokio::test(start_paused = true)]
async fn who_has_a_free_slot_is_let_in_however_many_wait_for_others() {
    let stage = Stage::new();
    stage.quotas("ceilings: {wait: 10s}\n").await;
    let able = Kind { capabilities: BTreeSet::from(["gpu".into()]), ..Kind::of("default", &["*"], 1) };
    let mut able = Hand::attach_as(&stage.engine, "g", &able).await;
    flow(&stage, &mut able).await;
    assert_eq!(send(&stage, &evil(), vec![gpu(); 4]).await, 4);
    let running = able.take().await;
    able.start(&running).await;
    let mut plain = Hand::attach(&stage.engine, "w", &["*"], 2).await;
    idle(&mut [&mut able, &mut plain]).await;
    assert_eq!(send(&stage, &evil(), vec![gpu()]).await, 0, "three wait already, and none was taken for a minute");
    assert_eq!(send(&stage, &good(), vec![job("t"); 4]).await, 2, "one for each free slot");
    assert_eq!(plain.take_many(2).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_nobody_serves_takes_in_what_it_did_before_in_that_time() {
    let stage = Stage::new();
    stage.quotas("ceilings: {wait: 10s}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["*"], 1).await;
    flow(&stage, &mut worker).await;
    drop(worker);
    assert_eq!(send(&stage, &good(), vec![job("t"); 3]).await, 3);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let accepted = send(&stage, &good(), vec![job("t"); 100]).await;
    assert!((5..=40).contains(&accepted), "two a second for ten seconds: {accepted}");
}
