//! One job whose row cannot be decoded, among neighbours that go on.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{
    Acknowledged, ApiError, Assignment, FromWorker, HealthProblem, HealthView, ProblemKind, ResultReport, ToWorker,
};

use super::stage::{Hand, Stage, caller, job};

/// The second of three cannot be read.
async fn three(stage: &Stage, new: impl Fn() -> NewJob) -> [JobId; 3] {
    let ids = [stage.submit(new()).await, stage.submit(new()).await, stage.submit(new()).await];
    stage.store.spoil([ids[1].clone()]);
    ids
}

fn good() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

fn result(assignment: &Assignment) -> ResultReport {
    let (job_id, token) = (assignment.job.request.job_id.clone(), assignment.job.life.attempt.token.clone());
    ResultReport { job_id, token, outcome: good(), began: None }
}

fn names(assignments: &[Assignment]) -> BTreeSet<&JobId> {
    assignments.iter().map(|assignment| &assignment.job.request.job_id).collect()
}

/// The next assignment, however long the worker has to wait for it.
async fn wait_for(worker: &mut Hand) -> Assignment {
    for _ in 0..100 {
        worker.beat().await;
        if let Ok(assignment) = tokio::time::timeout(Duration::from_secs(3), worker.take()).await {
            return assignment;
        }
    }
    panic!("nothing came");
}

fn told_of(health: &HealthView, id: &JobId) -> bool {
    let of = |detail: &str| detail.contains(id.as_str());
    health.findings.iter().any(|finding| finding.trouble == ProblemKind::RowsUnreadable && of(&finding.detail))
}

#[tokio::test(start_paused = true)]
async fn deadlines_behind_a_spoilt_job_are_enforced_and_health_names_it() {
    let stage = Stage::new();
    let [a, bad, b] = three(&stage, || NewJob { deadline_ms: Some(2_000), ..job("t") }).await;
    for id in [&a, &b] {
        stage.until(id, |job| job.state() == JobState::Timeout).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let health = stage.engine.health().await;
    assert!(told_of(&health, &bad), "{:?}", health.findings);
    assert_eq!(health.status(), "degraded", "calls are served");
    assert!(stage.number("lockgate_store_unreadable_rows_total") > 0.0);
    let gauge = "lockgate_health{code=\"rows_unreadable\"}";
    stage.until_number(gauge, 1.0).await;

    stage.store.mend();
    stage.until(&bad, |job| job.state() == JobState::Timeout).await;
    tokio::time::sleep(Duration::from_secs(310)).await;
    assert!(!told_of(&stage.engine.health().await, &bad), "it is over");
    stage.until_number(gauge, 0.0).await;
}

#[tokio::test(start_paused = true)]
async fn retries_and_delayed_jobs_behind_a_spoilt_one_come_when_they_are_due() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 3).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        stage.submit(job("t")).await;
        held.push(worker.take().await);
    }
    for assignment in &held {
        let again = Some(Duration::from_secs(3));
        worker.report(assignment, Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: again }).await;
    }
    let bad = held[1].job.request.job_id.clone();
    stage.store.spoil([bad.clone()]);
    let taken = worker.take_many(2).await;
    assert_eq!(names(&taken), [&held[0], &held[2]].map(|assignment| &assignment.job.request.job_id).into());

    // All lanes are compared with the Store every other minute.
    stage.store.mend();
    assert_eq!(wait_for(&mut worker).await.job.request.job_id, bad);
}

#[tokio::test(start_paused = true)]
async fn jobs_that_wait_in_a_lane_behind_a_spoilt_one_are_offered() {
    let stage = Stage::new();
    let [a, bad, b] = three(&stage, || job("t")).await;
    // Nobody has them in memory any more.
    let stage = stage.crash(Duration::from_secs(1)).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 3).await;
    let taken = worker.take_many(2).await;
    assert_eq!(names(&taken), [&a, &b].into());
    tokio::time::sleep(Duration::from_secs(6)).await;
    worker.beat().await;
    assert!(worker.said_now().is_none(), "what cannot be read is not sent");
    stage.store.mend();
    assert_eq!(wait_for(&mut worker).await.job.request.job_id, bad);
}

#[tokio::test(start_paused = true)]
async fn a_spoilt_job_that_was_claimed_does_not_hold_up_those_claimed_with_it() {
    let stage = Stage::with_ids_alone();
    let [a, bad, b] = three(&stage, || job("t")).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 3).await;
    assert_eq!(names(&worker.take_many(2).await), [&a, &b].into());
    stage.store.mend();
    assert_eq!(wait_for(&mut worker).await.job.request.job_id, bad);
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_that_holds_a_spoilt_job_loses_the_others() {
    let stage = Stage::new();
    let mut doomed = Hand::attach(&stage.engine, "doomed", &["t"], 3).await;
    let [a, bad, b] = three(&stage, || job("t")).await;
    doomed.take_many(3).await;
    for id in [&a, &b] {
        let lost = stage.until(id, |job| job.life.attempt.no == 2).await;
        assert_eq!(lost.life.last_error.expect("a reason").reason, Reason::AgentLost);
    }
    // Whoever looks after sessions that are closed and hold something finds it again.
    stage.store.mend();
    stage.until(&bad, |job| job.life.attempt.no == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_holds_a_spoilt_job_attaches_and_its_other_results_are_stored() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 3).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        stage.submit(NewJob { timeout_ms: Some(3_600_000), ..job("t") }).await;
        held.push(worker.take().await);
    }
    let [a, bad, b] = [0, 1, 2].map(|n: usize| held[n].job.request.job_id.clone());
    stage.store.spoil([bad.clone()]);
    let (inventory, highest) = worker.into_inventory();
    let stage = stage.crash(Duration::from_secs(1)).await;

    let mut worker = Hand::attach_with(&stage.engine, "w", &["t"], 3, inventory, highest).await;
    let results: Vec<_> = held.iter().map(result).collect();
    worker.attachment.receive(FromWorker { results, ..FromWorker::default() }).await;
    let ToWorker::Acks(acks) = worker.next().await else { panic!("no answer to the results") };
    let stored = |n: usize| (held[n].job.life.attempt.token.clone(), Acknowledged::Stored);
    assert_eq!(acks, [stored(0), stored(2)], "nothing is said of what nobody can read: its worker keeps it");
    for id in [&a, &b] {
        assert_eq!(stage.job(id).await.state(), JobState::Succeeded);
    }

    stage.store.mend();
    assert_eq!(worker.report(&held[1], good()).await, Acknowledged::Stored);
    assert_eq!(stage.job(&bad).await.state(), JobState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_names_a_spoilt_job_is_told_that_it_is_damaged() {
    let stage = Stage::new();
    let [_, bad, _] = three(&stage, || job("t")).await;
    let damaged = |error: ApiError| {
        assert_eq!(error.code(), "row_damaged", "{error}");
        assert!(error.to_string().contains(bad.as_str()), "{error}");
    };
    damaged(stage.engine.job(&caller(), &bad).await.expect_err("it cannot be read"));
    damaged(stage.engine.cancel(&caller(), &bad, None).await.expect_err("nothing can be decided"));
    assert!(told_of(&stage.engine.health().await, &bad));
}

#[tokio::test(start_paused = true)]
async fn a_spoilt_schedule_is_left_out_of_the_list_and_a_call_that_names_it_is_told() {
    let stage = Stage::new();
    let text = "version: 1\nschedules:\n  a: {every: 1h, job: {topic: t}}\n  bad: {every: 1h, job: {topic: t}}\n  c: {every: 1h, job: {topic: t}}\n";
    stage.engine.put_schedules(&caller(), "s.yaml", text).await.expect("stored");
    stage.store.spoil_schedules([(caller().tenant, "bad".into())]);
    let listed = stage.engine.schedules(&caller(), None, 10).await.expect("the others are listed");
    let names: Vec<&str> = listed.iter().map(|view| &*view.schedule.name).collect();
    assert_eq!(names, ["a", "c"]);
    let damaged = |error: ApiError| {
        assert_eq!(error.code(), "row_damaged", "{error}");
        assert!(error.to_string().contains("schedule bad"), "{error}");
    };
    damaged(stage.engine.schedule(&caller(), "bad").await.expect_err("it cannot be read"));
    damaged(stage.engine.pause_schedule(&caller(), "bad").await.expect_err("nothing can be decided"));
    damaged(stage.engine.remove_schedule(&caller(), "bad").await.expect_err("nor removed"));
    let changed = text.replace("1h", "2h");
    damaged(stage.engine.put_schedules(&caller(), "s.yaml", &changed).await.expect_err("the file says which one"));
    stage.engine.trigger_schedule(&caller(), "a").await.expect("its neighbours go on");
    let health = stage.engine.health().await;
    let named =
        |finding: &HealthProblem| finding.trouble == ProblemKind::RowsUnreadable && finding.detail.contains("schedule bad");
    assert!(health.findings.iter().any(named), "{:?}", health.findings);
}
