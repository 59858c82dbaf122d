//! Numbers that dashboards and alerts read say what their names promise.

use std::time::Duration;

use lockgate_core::dag::RunState;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{Began, FromWorker, ResultReport, StartRun, ToWorker};

use super::stage::{Hand, Stage, caller, job};

const POLICY: &str = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - {id: no-bad, match: {topics: ['bad']}, decision: deny, reason: never}
  - {id: ask, match: {topics: ['pay']}, decision: require_approval, reason: money moves}
output:
  fail_mode: closed
  rules:
    - {id: cards, match: {topics: ['t'], scan: [credit_card]}, decision: quarantine, reason: a card}
";

const SAGA: &str = "
version: 1
dag: late
nodes:
  a: {topic: t, on_fail: compensate, compensation: {topic: undo}}
  b: {needs: [a], topic: t, on_fail: compensate, compensation: {topic: undo}}
  f: {needs: [a], topic: fails, max_attempts: 1, on_fail: compensate}
";

fn good() -> Outcome {
    Outcome::Succeeded { result: Json::parse("1").expect("JSON") }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_ends_before_its_start_is_reported_is_measured() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: None }).await;
    let assignment = worker.take().await;
    let (job_id, token) = (assignment.job.request.job_id.clone(), assignment.job.life.attempt.token.clone());
    let began = Some(Began { at: stage.clock().now(), ran: Some(Duration::from_secs(3)) });
    let result = ResultReport { job_id: job_id.clone(), token, outcome: good(), began };
    worker.attachment.receive(FromWorker { results: vec![result], ..FromWorker::default() }).await;
    stage.until(&job_id, |job| job.state() == JobState::Succeeded).await;
    assert_eq!(stage.number("lockgate_task_run_seconds_count"), 2.0);
    let seconds = stage.number("lockgate_task_run_seconds_sum");
    assert!((3.0..3.5).contains(&seconds), "the worker's own measure is taken: {seconds}");
    assert_eq!(stage.number("lockgate_enqueue_to_start_seconds_count"), 2.0);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_start_ends_with_its_report() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    assert_eq!(stage.number("lockgate_enqueue_to_start_seconds_count"), 0.0);
    tokio::time::advance(Duration::from_secs(2)).await;
    worker.start(&assignment).await;
    stage.until(&id, |job| job.state() == JobState::Running).await;
    worker.report(&assignment, good()).await;
    assert_eq!(stage.number("lockgate_enqueue_to_start_seconds_count"), 1.0);
    assert!(stage.number("lockgate_enqueue_to_start_seconds_sum") >= 2.0);
    assert_eq!(stage.number("lockgate_task_run_seconds_count"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_checked_in_two_phases_counts_once() {
    let stage = Stage::new();
    stage.apply(POLICY).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good()).await;
    stage.until(&id, |job| job.state() == JobState::Succeeded && !job.needs_scan()).await;
    assert_eq!(stage.number("lockgate_output_policy_checked_total"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn what_policy_denies_has_not_failed_and_what_waits_for_a_person_is_no_retry() {
    let stage = Stage::new();
    stage.apply(POLICY).await;
    let denied = stage.submit(job("bad")).await;
    stage.until(&denied, |job| job.state() == JobState::Denied).await;
    assert_eq!(stage.number("lockgate_failed_total"), 0.0);
    assert_eq!(stage.number(r#"lockgate_jobs_completed_total{topic="bad",status="DENIED"}"#), 1.0);
    for _ in 0..3 {
        stage.submit(job("pay")).await;
    }
    let later = stage.clock().now() + Duration::from_secs(3_600);
    stage.submit(NewJob { not_before: Some(later), ..job("t") }).await;
    stage.until_number("lockgate_approvals_depth", 3.0).await;
    stage.until_number("lockgate_retry_depth", 1.0).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_in_the_step_that_begins_to_undo_it_is_recorded() {
    let stage = Stage::new();
    stage.engine.put_dag(&caller(), "late.yaml", SAGA).await.expect("a good definition");
    let mut worker = Hand::attach(&stage.engine, "w", &["t", "fails", "undo"], 2).await;
    let params = serde_json::json!({});
    let start = StartRun { dag: "late".into(), version: None, params, idempotency_key: None, fresh: false };
    let run = stage.engine.start_run(&caller(), start).await.expect("started").run;
    let a = worker.take().await;
    worker.report(&a, good()).await;
    let both = worker.take_many(2).await;
    // In one message: the run hears of the failure and of the success beside it in one step.
    let results = both.iter().map(|assignment| {
        let failure = Outcome::FailedFatal { error: "boom".into() };
        ResultReport {
            job_id: assignment.job.request.job_id.clone(),
            token: assignment.job.life.attempt.token.clone(),
            outcome: if assignment.job.request.topic.as_str() == "fails" { failure } else { good() },
            began: None,
        }
    });
    worker.attachment.receive(FromWorker { results: results.collect(), ..FromWorker::default() }).await;
    assert!(matches!(worker.next().await, ToWorker::Acks(acks) if acks.len() == 2));
    for _ in 0..2 {
        let undo = worker.take().await;
        worker.report(&undo, good()).await;
    }
    stage.run_until(&run, |view| view.run.head.state == RunState::Compensated).await;
    assert_eq!(stage.number("lockgate_saga_recorded_total"), 2.0);
    assert_eq!(stage.number(r#"lockgate_dag_nodes_ended_total{state="succeeded"}"#), 2.0);
}

/// An increase sees nothing of a series that begins with its first count.
#[tokio::test(start_paused = true)]
async fn counters_of_fixed_labels_are_there_before_anything_is_counted() {
    let stage = Stage::new();
    let expected = [
        ("lockgate_access_refused_total", 2),
        ("lockgate_admission_refused_total", 3),
        ("lockgate_barriers_total", 4),
        ("lockgate_dag_nodes_ended_total", 4),
        ("lockgate_dag_runs_reached_total", 9),
        ("lockgate_failed_total", 4),
        ("lockgate_schedule_slots_total", 6),
        ("lockgate_worker_slots_changed_total", 2),
        ("lockgate_workers_snapshot_rounds_total", 3),
    ];
    let series = stage.series();
    let counted = expected.map(|(name, _)| {
        let own = series.iter().filter(|(series, value)| series.split('{').next() == Some(name) && *value == 0.0);
        (name, own.count())
    });
    assert_eq!(counted, expected);
    stage.submit(job("t")).await;
    for name in ["lockgate_jobs_completed_total", "lockgate_safety_denied_total", "lockgate_output_policy_checked_total"] {
        let there = |(series, value): &(String, f64)| series.starts_with(name) && *value == 0.0;
        assert!(stage.series().iter().any(there), "{name}");
    }
}
