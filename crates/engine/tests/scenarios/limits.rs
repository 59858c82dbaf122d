//! Limits: what lanes count is what workers hold, whatever was missed.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::Outcome;
use lockgate_core::request::{Json, NewJob};
use lockgate_ports::Lanes;

use super::stage::{Hand, Kind, Stage, job};

const ONE_AT_A_TIME: &str = "topics: {t: p}\npools: {p: {}}\nlimits: [{name: one, per: [topic], max_concurrent: 1}]\n";

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

/// The worker beats while time passes.
async fn pass(worker: &mut Hand, span: Duration) {
    let mut beats = tokio::time::interval(Duration::from_secs(2));
    for _ in 0..=span.as_secs() / 2 {
        beats.tick().await;
        worker.beat().await;
    }
}

/// After a crash a lane may name a job where it waited before.
#[tokio::test(start_paused = true)]
async fn a_place_that_its_job_has_left_is_claimed_once_and_holds_nothing_up() {
    let stage = Stage::with_ids_alone();
    stage.pools(ONE_AT_A_TIME).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 9)).await;
    let first = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    let later = stage.job(&first).await.life.submitted_at + Duration::from_secs(30);
    let id = stage.submit(NewJob { not_before: Some(later), ..job("t") }).await;
    let mut ghost = stage.job(&id).await;
    ghost.life.due_at = ghost.life.submitted_at;
    stage.lanes.offer(vec![Arc::new(ghost)]).await;
    worker.report(&assignment, done()).await;
    pass(&mut worker, Duration::from_secs(10)).await;
    assert_eq!(stage.lanes.taken().await.expect("in memory"), [("p".into(), 2)], "the first job, and the ghost once");
    assert!(stage.lanes.depths(9).await.expect("in memory").is_empty());
    let other = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, other, "nothing keeps the limit");
    worker.report(&assignment, done()).await;
    pass(&mut worker, Duration::from_secs(20)).await;
    assert_eq!(worker.take().await.job.request.job_id, id);
}
