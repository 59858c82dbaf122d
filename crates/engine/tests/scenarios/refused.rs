//! One row that the Store does not take, among neighbours that go on.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockgate_core::dag::RunState;
use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{
    Acknowledged, ApiError, Assignment, FromWorker, HealthView, ProblemKind, ResultReport, Settings, ToWorker,
};
use serde_json::json;

use super::stage::{Hand, Stage, caller, job, pass};

const BEAT: Duration = Duration::from_secs(3);

/// The first of three is not taken any more.
async fn three(stage: &Stage, new: impl Fn() -> NewJob) -> [JobId; 3] {
    let ids = [stage.submit(new()).await, stage.submit(new()).await, stage.submit(new()).await];
    stage.store.refuse([ids[0].clone()]);
    ids
}

fn long() -> NewJob {
    NewJob { timeout_ms: Some(3_600_000), ..job("t") }
}

fn good() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

fn id(assignment: &Assignment) -> &JobId {
    &assignment.job.request.job_id
}

fn result(assignment: &Assignment) -> ResultReport {
    let token = assignment.job.life.attempt.token.clone();
    ResultReport { job_id: id(assignment).clone(), token, outcome: good(), began: None }
}

fn told_of(health: &HealthView, name: &str) -> bool {
    health.findings.iter().any(|finding| finding.trouble == ProblemKind::RowsRefused && finding.detail.contains(name))
}

async fn beats(worker: &mut Hand, count: usize) {
    for _ in 0..count {
        worker.beat().await;
        pass(BEAT).await;
    }
}

/// The next assignment, however long the worker has to wait for it.
async fn wait_for(worker: &mut Hand) -> Assignment {
    for _ in 0..100 {
        worker.beat().await;
        if let Ok(assignment) = tokio::time::timeout(BEAT, worker.take()).await {
            return assignment;
        }
    }
    panic!("nothing came");
}

/// So many jobs, each with the worker.
async fn held(stage: &Stage, worker: &mut Hand, count: usize) -> Vec<Assignment> {
    let mut held = Vec::new();
    for _ in 0..count {
        stage.submit(long()).await;
        held.push(worker.take().await);
    }
    held
}

#[tokio::test(start_paused = true)]
async fn deadlines_beside_a_refused_job_are_enforced_and_health_names_it() {
    let stage = Stage::new();
    let [bad, a, b] = three(&stage, || NewJob { deadline_ms: Some(2_000), ..job("t") }).await;
    for id in [&a, &b] {
        stage.until(id, |job| job.state() == JobState::Timeout).await;
    }
    pass(Duration::from_secs(10)).await;
    assert_eq!(stage.job(&bad).await.state(), JobState::Scheduled);
    let health = stage.engine.health().await;
    assert!(told_of(&health, bad.as_str()), "{:?}", health.findings);
    assert_eq!(health.status(), "degraded", "calls are served");
    assert!(stage.number("lockgate_store_refused_rows_total") > 0.0);
    assert!(stage.number("lockgate_reaping_deferred_seconds") < 0.1, "the Store is not away");
    assert!(stage.store.refusals() < 20, "{} tries", stage.store.refusals());

    stage.store.mend();
    stage.until(&bad, |job| job.state() == JobState::Timeout).await;
    pass(Duration::from_secs(310)).await;
    assert!(!told_of(&stage.engine.health().await, bad.as_str()), "it is over");
}

#[tokio::test(start_paused = true)]
async fn a_refused_job_at_the_head_of_its_lane_rests_and_the_others_are_sent() {
    let stage = Stage::new();
    let [bad, a, b] = three(&stage, long).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 4).await;
    let taken = worker.take_many(2).await;
    assert_eq!(taken.iter().map(id).collect::<BTreeSet<_>>(), [&a, &b].into());
    beats(&mut worker, 20).await;
    let later = stage.submit(long()).await;
    assert_eq!(*id(&worker.take().await), later, "its session is sound");
    assert!(stage.store.refusals() < 20, "{} tries in a minute", stage.store.refusals());

    stage.store.mend();
    assert_eq!(*id(&wait_for(&mut worker).await), bad);
}

#[tokio::test(start_paused = true)]
async fn results_beside_a_refused_one_are_stored_and_its_worker_goes_on() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 3).await;
    let held = held(&stage, &mut worker, 3).await;
    stage.store.refuse([id(&held[1]).clone()]);
    let results = held.iter().map(result).collect();
    worker.attachment.receive(FromWorker { results, ..FromWorker::default() }).await;
    let ToWorker::Acks(acks) = worker.next().await else { panic!("no answer to the results") };
    let stored = |n: usize| (held[n].job.life.attempt.token.clone(), Acknowledged::Stored);
    assert_eq!(acks, [stored(0), stored(2)], "its worker keeps what was not stored");
    for n in [0, 2] {
        assert_eq!(stage.job(id(&held[n])).await.state(), JobState::Succeeded);
        worker.forget(&held[n]);
    }
    beats(&mut worker, 10).await;
    let later = stage.submit(long()).await;
    assert_eq!(*id(&worker.take().await), later, "it is attached all the while");

    stage.store.mend();
    assert_eq!(worker.report(&held[1], good()).await, Acknowledged::Stored);
    assert_eq!(stage.job(id(&held[1])).await.state(), JobState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn the_start_of_a_refused_job_is_tried_now_and_then() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 2).await;
    let held = held(&stage, &mut worker, 2).await;
    stage.store.refuse([id(&held[0]).clone()]);
    for assignment in &held {
        worker.start(assignment).await;
    }
    stage.until(id(&held[1]), |job| job.state() == JobState::Running).await;
    beats(&mut worker, 10).await;
    assert_eq!(stage.job(id(&held[0])).await.state(), JobState::Dispatched);
    assert!((2..20).contains(&stage.store.refusals()), "{} tries in half a minute", stage.store.refusals());

    stage.store.mend();
    worker.beat().await;
    stage.until(id(&held[0]), |job| job.state() == JobState::Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_that_holds_a_refused_job_loses_the_others() {
    let stage = Stage::new();
    let mut doomed = Hand::attach(&stage.engine, "doomed", &["t"], 3).await;
    let held = held(&stage, &mut doomed, 3).await;
    stage.store.refuse([id(&held[0]).clone()]);
    for assignment in &held[1..] {
        let lost = stage.until(id(assignment), |job| job.life.attempt.no == 2).await;
        assert_eq!(lost.life.last_error.expect("a reason").reason, Reason::AgentLost);
    }
    stage.store.mend();
    stage.until(id(&held[0]), |job| job.life.attempt.no == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_job_takes_no_turn_of_those_that_wait_for_a_verdict() {
    let stage = Stage::with(Settings { release_rate: 1, ..Settings::default() });
    stage.kernel_off.store(true, Ordering::Relaxed);
    let [bad, a, b] = three(&stage, || job("t")).await;
    stage.kernel_off.store(false, Ordering::Relaxed);
    for id in [&a, &b] {
        stage.until(id, |job| job.state() == JobState::Scheduled).await;
    }
    assert_eq!(stage.job(&bad).await.state(), JobState::Pending);
    stage.store.mend();
    stage.until(&bad, |job| job.state() == JobState::Scheduled).await;
}

#[tokio::test(start_paused = true)]
async fn a_submit_that_is_refused_is_told_so_and_its_neighbours_are_stored() {
    let stage = Stage::new();
    stage.store.refuse(["bad".into()]);
    let jobs = ["a", "bad", "b"].map(|id| NewJob { job_id: Some(id.to_owned()), ..job("t") });
    let answers = stage.engine.submit(&caller(), jobs.into()).await.expect("answered");
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    let Err(ApiError::Internal(text)) = &answers[1] else { panic!("{answers:?}") };
    assert!(text.starts_with("job bad was not stored"), "{text}");
    let cancelled = stage.engine.cancel(&caller(), &"a".into(), None).await;
    assert_eq!(cancelled.expect("taken"), JobState::Cancelled);
    stage.store.refuse(["b".into()]);
    let refused = stage.engine.cancel(&caller(), &"b".into(), None).await;
    assert!(matches!(refused, Err(ApiError::Internal(_))), "{refused:?}");
}

const PAIR: &str = "version: 1\ndag: pair\nnodes:\n  first: { topic: job.a }\n  next: { needs: first, topic: job.b }\n";

#[tokio::test(start_paused = true)]
async fn a_run_whose_step_is_refused_waits_and_the_others_go_on() {
    let stage = Stage::new();
    stage.put(PAIR).await;
    let [bad, fine] = [stage.begin("pair", json!({})).await, stage.begin("pair", json!({})).await];
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b"], 2).await;
    let first = worker.take_many(2).await;
    stage.store.refuse_runs([bad.clone()]);
    for assignment in &first {
        worker.report_late(assignment, good()).await;
    }
    let next = worker.take().await;
    assert_eq!(next.job.request.run.as_ref().map(|part| &part.run), Some(&fine));
    worker.report_late(&next, good()).await;
    stage.run_ends(&fine, RunState::Succeeded).await;
    beats(&mut worker, 5).await;
    assert!(told_of(&stage.engine.health().await, bad.as_str()));
    assert!(stage.store.refusals() < 60, "{} tries", stage.store.refusals());

    stage.store.mend();
    let next = wait_for(&mut worker).await;
    worker.report_late(&next, good()).await;
    stage.run_ends(&bad, RunState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_is_refused_waits_and_the_others_are_turned() {
    let stage = Stage::new();
    let line = |name: &str| format!("  {name}: {{every: 1m, job: {{topic: job.s}}}}\n");
    let text = format!("version: 1\nschedules:\n{}{}{}", line("a"), line("bad"), line("b"));
    stage.engine.put_schedules(&caller(), "s.yaml", &text).await.expect("good schedules");
    stage.store.refuse_schedules([("default".into(), "bad".into())]);
    assert!(matches!(stage.engine.pause_schedule(&caller(), "bad").await, Err(ApiError::Internal(_))));
    pass(Duration::from_secs(130)).await;
    let slots = async |name: &str| stage.engine.slots(&caller(), name, None, 10).await.expect("listed").items.len();
    assert_eq!((slots("a").await, slots("bad").await, slots("b").await), (2, 0, 2));
    assert!(told_of(&stage.engine.health().await, "schedule bad"));
    stage.store.mend();
    pass(Duration::from_secs(5)).await;
    assert!(slots("bad").await > 0);
}
