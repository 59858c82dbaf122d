//! Jobs sent ahead of a free slot, and asked back for something more urgent.

use lockgate_core::job::{JobState, Outcome};
use lockgate_core::lane::Priority;
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::ToWorker;

use super::stage::{Hand, Kind, Stage, job};

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

fn ahead(prefetch: u32) -> Kind {
    Kind { prefetch, ..Kind::of("default", &["*"], 1) }
}

/// Runs one job, so that its topic is known to be quick.
async fn warm_up(stage: &Stage, worker: &mut Hand) {
    stage.submit(job("quick")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    worker.report(&assignment, done()).await;
}

#[tokio::test(start_paused = true)]
async fn quick_jobs_are_sent_ahead_and_others_are_not() {
    let stage = Stage::new();
    let mut worker = Hand::attach_as(&stage.engine, "w", &ahead(2)).await;
    warm_up(&stage, &mut worker).await;
    for _ in 0..5 {
        stage.submit(job("quick")).await;
    }
    let held = worker.take_many(3).await;
    stage.submit(job("unknown")).await;
    for assignment in &held {
        worker.report(assignment, done()).await;
    }
    // Nobody knows how long the other one runs: while it waits nothing is sent ahead of it, and its turn comes.
    for topic in ["quick", "quick", "unknown"] {
        let next = worker.take().await;
        assert_eq!(next.job.request.topic.as_str(), topic);
        assert!(worker.is_quiet(), "one at a time");
        worker.report(&next, done()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_critical_job_takes_the_place_of_one_that_has_not_begun() {
    let stage = Stage::new();
    let mut worker = Hand::attach_as(&stage.engine, "w", &ahead(1)).await;
    warm_up(&stage, &mut worker).await;
    let (first, second) = (stage.submit(job("quick")).await, stage.submit(job("quick")).await);
    let held = worker.take_many(2).await;
    worker.start(&held[0]).await;
    assert_eq!(held[0].job.request.job_id, first);
    let critical = stage.submit(NewJob { priority: Some(Priority::Critical), ..job("quick") }).await;
    let ToWorker::Revoke { job_id, token } = worker.next().await else { panic!("not asked back") };
    assert_eq!((&job_id, &token), (&second, &held[1].job.life.attempt.token));

    worker.report(&held[1], Outcome::Revoked).await;

    assert_eq!(worker.take().await.job.request.job_id, critical);
    let back = stage.until(&second, |job| job.state() == JobState::Scheduled).await;
    assert_eq!((back.life.counters.failures, back.life.counters.infra_failures), (0, 0), "nothing was burnt");
    assert_eq!(back.life.due_at, held[1].job.life.due_at, "and it keeps its place");
}

#[tokio::test(start_paused = true)]
async fn a_critical_job_asks_nothing_back_while_a_slot_is_free() {
    let stage = Stage::new();
    let mut busy = Hand::attach_as(&stage.engine, "busy", &ahead(1)).await;
    warm_up(&stage, &mut busy).await;
    for _ in 0..2 {
        stage.submit(job("quick")).await;
    }
    busy.take_many(2).await;
    let mut free = Hand::attach(&stage.engine, "free", &["*"], 1).await;
    let critical = stage.submit(NewJob { priority: Some(Priority::Critical), ..job("quick") }).await;
    assert_eq!(free.take().await.job.request.job_id, critical);
    assert!(busy.is_quiet(), "nothing was asked back");
}
