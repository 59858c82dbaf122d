//! Every metric family moves.

use std::time::Duration;

use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::{Json, NewJob};

use super::stage::{Hand, Stage, job};

#[tokio::test(start_paused = true)]
async fn every_family_moves() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;

    // Waits for good, so that the re-offer loop has a lane to compare.
    stage.submit(job("unserved")).await;
    let good = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    stage.until(&good, |job| job.state() == JobState::Running).await;
    let waiting = stage.submit(job("t")).await;
    let later = stage
        .submit(NewJob { not_before: Some(stage.job(&good).await.life.submitted_at + Duration::from_secs(8)), ..job("t") })
        .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(stage.number("lockgate_inflight_leases") >= 1.0);
    assert!(stage.number("lockgate_queue_depth") >= 1.0);
    assert!(stage.number("lockgate_retry_depth") >= 1.0);
    assert!(stage.number("lockgate_tenant_oldest_wait_seconds") >= 2.0);
    let share = stage.number("lockgate_tenant_share_error_ratio");
    assert!(share.abs() < 0.5, "the only tenant gets what it is entitled to: {share}");
    worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;

    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, waiting);
    worker.report(&assignment, Outcome::FailedRetryable { error: "no".into(), retry_after: None }).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::FailedFatal { error: "never".into() }).await;
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, later);
    // Silence: the reaper takes it.
    stage.until(&later, |job| job.life.attempt.no == 2).await;
    tokio::time::sleep(Duration::from_secs(3)).await;

    for name in [
        "lockgate_tasks_enqueued_total",
        "lockgate_dequeued_total",
        "lockgate_succeeded_total",
        "lockgate_failed_total",
        "lockgate_retried_total",
        "lockgate_reaped_total",
        "lockgate_dlq_depth",
        "lockgate_enqueue_to_start_seconds_count",
        "lockgate_task_run_seconds_count",
        "lockgate_ready_rows_read_total",
    ] {
        assert!(stage.number(name) >= 1.0, "{name} did not move");
    }
}
