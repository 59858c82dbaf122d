//! Policies in force: what waits is judged again, what is on its way is called back.

use std::time::Duration;

use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::request::Json;
use lockgate_core::verdict::Decision;
use lockgate_engine::{ApiError, ConfigText, ToWorker};

use lockgate_ports::SnapshotKind;
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, job};

const ALLOW: &str = "version: 1\ndefault: {decision: allow, reason: fine}\n";
const EMERGENCY: &str = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - {id: stop-everything, match: {topics: ['t*']}, decision: deny, reason: an emergency}
";

#[tokio::test(start_paused = true)]
async fn an_emergency_deny_stops_what_waits_in_lanes_and_what_is_on_its_way() {
    let stage = Stage::new();
    stage.apply(ALLOW).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let sent = stage.submit(job("t")).await;
    let waiting = stage.submit(job("t")).await;
    let assignment = worker.take().await;

    let activated = stage.apply(EMERGENCY).await;

    assert_eq!((activated.version, activated.recalled), (2, 1));
    assert!(matches!(worker.next().await, ToWorker::Stop { .. }), "called back before it was started");
    worker.let_go(&assignment).await;
    for id in [sent, waiting] {
        let denied = stage.until(&id, |job| job.state().is_terminal()).await;
        assert_eq!(denied.state(), JobState::Denied);
        assert_eq!(denied.life.last_error.as_ref().map(|failure| failure.reason), Some(Reason::Denied));
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_process_calls_back_keeps_nothing_else_waiting() {
    let one = Stage::shared();
    one.apply(ALLOW).await;
    let other = one.beside();
    let mut worker = Hand::attach(&one.engine, "w", &["t", "other"], 2).await;
    let called_back = one.submit(job("t")).await;
    worker.take().await;

    other.apply(EMERGENCY).await;
    let began = Instant::now();
    let goes_on = one.submit(job("other")).await;
    let assignments = loop {
        match worker.next().await {
            ToWorker::Assign(assignments) => break assignments,
            ToWorker::Stop { .. } => {}
            other => panic!("neither an assignment nor a stop: {other:?}"),
        }
    };

    assert!(began.elapsed() <= Duration::from_millis(500), "{:?}", began.elapsed());
    assert_eq!(assignments[0].job.request.job_id, goes_on);
    assert_eq!(one.job(&called_back).await.state(), JobState::Denied);
}

#[tokio::test(start_paused = true)]
async fn a_started_attempt_is_not_called_back() {
    let stage = Stage::new();
    stage.apply(ALLOW).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    assert_eq!(stage.apply(EMERGENCY).await.recalled, 0);
    worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
    assert_eq!(stage.job(&id).await.state(), JobState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_dispatched_under_the_policy_of_now() {
    let stage = Stage::new();
    let id = stage.submit(job("t")).await;
    let activated = stage.apply(ALLOW).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, id);
    let verdict = assignment.job.life.attempt.verdict.clone().expect("judged");
    assert_eq!(verdict.snapshot, activated.snapshot, "the older verdict did not carry it");
}

#[tokio::test(start_paused = true)]
async fn a_bad_text_names_every_error_and_leaves_the_policy_in_force() {
    let stage = Stage::new();
    stage.apply(EMERGENCY).await;
    let text = "version: 1\nrules:\n  - {id: a, match: {topcis: [x]}, decision: allow, reason: r}\n  - {id: b, match: {}, decision: maybe, reason: r}\n";
    let new = ConfigText { file: "policy.yaml".into(), text: text.into(), expected: None };
    let Err(ApiError::Invalid(errors)) = stage.engine.activate_policy(&caller(), new).await else {
        panic!("must be refused")
    };
    assert!(errors.len() >= 2, "{errors:?}");
    assert!(errors[0].message.contains("policy.yaml:3") && errors[0].message.contains("topics"), "{errors:?}");
    let id = stage.submit(job("t")).await;
    assert_eq!(stage.job(&id).await.state(), JobState::Denied);
}

#[tokio::test(start_paused = true)]
async fn an_activation_that_expects_another_version_is_refused_and_a_rollback_is_an_activation() {
    let stage = Stage::new();
    let first = stage.apply(ALLOW).await;
    stage.apply(EMERGENCY).await;
    let stale = ConfigText { file: "p".into(), text: ALLOW.into(), expected: Some(1) };
    assert!(matches!(stage.engine.activate_policy(&caller(), stale).await, Err(ApiError::Outdated(_))));
    let back = stage.engine.roll_back_policy(&caller(), &first.snapshot, None).await.expect("rolled back");
    assert_eq!((back.version, &back.snapshot), (3, &first.snapshot));
    assert!(stage.apply(ALLOW).await.unchanged);
    let known = stage.engine.config_snapshots(SnapshotKind::Policy).await.expect("listed");
    assert_eq!(known.iter().map(|row| row.version).collect::<Vec<_>>(), [3, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_survives_a_restart() {
    let stage = Stage::new();
    stage.apply(EMERGENCY).await;
    let stage = stage.crash(Duration::from_secs(1)).await;
    let mut ready = Hand::attach(&stage.engine, "w", &["other"], 1).await;
    let other = stage.submit(job("other")).await;
    assert_eq!(ready.take().await.job.request.job_id, other);
    let id = stage.submit(job("t")).await;
    assert_eq!(stage.job(&id).await.state(), JobState::Denied);
}

#[tokio::test(start_paused = true)]
async fn throttled_jobs_wait_and_burn_nothing() {
    let stage = Stage::new();
    let velocity = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - {id: slow, match: {velocity: {max: 1, window: 10s, key: [tenant]}}, decision: throttle, reason: one in ten seconds}
";
    stage.apply(velocity).await;
    let first = stage.submit(job("t")).await;
    let second = stage.submit(job("t")).await;
    assert_eq!(stage.job(&first).await.state(), JobState::Scheduled);
    let waits = stage.job(&second).await;
    assert_eq!(waits.state(), JobState::Pending);
    let why = stage.engine.why(&caller(), &second).await.expect("explained");
    assert_eq!(why.reason, "throttled");
    let later = stage.until(&second, |job| job.state() == JobState::Scheduled).await;
    assert_eq!((later.life.counters.failures, later.life.counters.infra_failures), (0, 0));
}

/// Whatever it was, this version cannot tell that it let the job run.
#[tokio::test(start_paused = true)]
async fn a_job_whose_decision_only_a_newer_version_knows_is_judged_again_before_it_runs() {
    let stage = Stage::with_ids_alone();
    let id = stage.submit(job("t")).await;
    stage.store.rewrite(&id, r#""decision":"allow""#, r#""decision":"allow_on_mars""#).expect("written");
    let read = stage.job(&id).await;
    assert_eq!(
        read.life.attempt.verdict.map(|verdict| verdict.decision.as_str().to_owned()).as_deref(),
        Some("allow_on_mars")
    );
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let taken = worker.take().await;
    let attempt = &taken.job.life.attempt;
    assert_eq!((attempt.no, attempt.verdict.as_ref().map(|verdict| verdict.decision)), (2, Some(Decision::Allow)));
}
