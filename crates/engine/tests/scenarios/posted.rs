//! Workers that are spoken with by messages.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::ids::SessionId;
use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{Acknowledged, Assignment, Engine, ResultReport};
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, job};

const BORNE: Duration = Duration::from_secs(90);

fn posted() -> Kind {
    Kind { lost_after_ms: Some(90_000), ..Kind::of("default", &["t"], 1) }
}

/// A job that nothing but silence can end.
fn long() -> NewJob {
    NewJob { timeout_ms: Some(3_600_000), ..job("t") }
}

async fn report(engine: &Engine, assignment: &Assignment) -> Vec<Acknowledged> {
    let (job_id, token) = (assignment.job.request.job_id.clone(), assignment.job.life.attempt.token.clone());
    let result = ResultReport { job_id, token, outcome: Outcome::Succeeded { result: Json::null() }, began: None };
    let acks = engine.report(&SessionId::from("w"), vec![result]).await.expect("decided");
    acks.into_iter().map(|(_, acknowledged)| acknowledged).collect()
}

#[tokio::test(start_paused = true)]
async fn a_worker_by_messages_is_lost_after_ninety_seconds_of_silence() {
    let stage = Stage::new();
    let mut worker = Hand::attach_as(&stage.engine, "w", &posted()).await;
    let id = stage.submit(long()).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    let silent = Instant::now();
    let lost = stage.until(&id, |job| job.life.attempt.no == 2).await;
    let waited = silent.elapsed();
    assert!(waited > BORNE && waited <= BORNE + Duration::from_secs(3), "{waited:?}");
    assert_eq!(lost.life.last_error.expect("a reason").reason, Reason::AgentLost);
    assert_eq!((lost.life.counters.failures, lost.life.counters.infra_failures), (0, 1), "charged to the platform");
    let reaped = stage.series().into_iter().find(|(series, _)| series.contains("agent_lost"));
    assert!(reaped.as_ref().is_some_and(|(_, count)| *count > 0.0), "{reaped:?}");
}

#[tokio::test(start_paused = true)]
async fn others_are_not_borne_with_any_longer_beside_it() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "stream", &["t"], 1).await;
    let id = stage.submit(long()).await;
    worker.take().await;
    let _patient = Hand::attach_as(&stage.engine, "w", &posted()).await;
    let silent = Instant::now();
    stage.until(&id, |job| job.life.attempt.no == 2).await;
    assert!(silent.elapsed() <= Duration::from_secs(13), "{:?}", silent.elapsed());
}

#[tokio::test(start_paused = true)]
async fn silence_does_not_count_while_nobody_could_be_heard() {
    let stage = Stage::new();
    let mut worker = Hand::attach_as(&stage.engine, "w", &posted()).await;
    let id = stage.submit(long()).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..300 {
        tick.tick().await;
        stage.engine.deaf();
    }
    assert_eq!(stage.job(&id).await.life.attempt.no, 1);
    let heard_again = Instant::now();
    stage.until(&id, |job| job.life.attempt.no == 2).await;
    assert!(heard_again.elapsed() > BORNE, "{:?}", heard_again.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_result_counts_wherever_it_comes_in_and_its_place_is_free() {
    let one = Stage::shared();
    let other = one.beside();
    let mut worker = Hand::attach_as(&one.engine, "w", &posted()).await;
    let id = one.submit(job("t")).await;
    let first = worker.take().await;
    assert_eq!(report(&other.engine, &first).await, [Acknowledged::Stored], "by a process that does not hold it");
    assert_eq!(report(&one.engine, &first).await, [Acknowledged::Superseded], "it was told before");
    assert_eq!(one.job(&id).await.state(), JobState::Succeeded);
    one.submit(job("t")).await;
    worker.let_go(&first).await;
    let second = worker.take().await;
    assert_eq!(report(&one.engine, &second).await, [Acknowledged::Stored]);
    one.submit(job("t")).await;
    worker.forget(&second);
    worker.take().await;
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_result_decides() {
    let stage = Stage::new();
    let mut worker = Hand::attach_as(&stage.engine, "w", &posted()).await;
    stage.submit(job("t")).await;
    let assignment = worker.take().await;
    let mut wrong = assignment.clone();
    let mut job = (*wrong.job).clone();
    job.life.attempt.token = "another".into();
    wrong.job = job.into();
    assert_eq!(report(&stage.engine, &wrong).await, [Acknowledged::Superseded], "the token decides");
    assert_eq!(report(&stage.engine, &assignment).await, [Acknowledged::Stored]);
}

/// How long after the death of its process a worker comes to another one, if it does; the attempt that counts then, and when.
async fn after_the_death_of_its_process(comes_back: Option<Duration>) -> (u32, Duration) {
    let one = Stage::shared();
    let other = one.beside();
    let mut worker = Hand::attach_as(&one.engine, "w", &posted()).await;
    let id = one.submit(long()).await;
    let assignment = worker.take().await;
    let mut heir = Hand::attach_as(&other.engine, "heir", &Kind::of("default", &["other"], 1)).await;
    for _ in 0..10 {
        worker.beat().await;
        heir.beat().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    one.kill();
    let died = Instant::now();
    while died.elapsed() < comes_back.unwrap_or(Duration::from_secs(200)) {
        heir.beat().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let job = other.job(&id).await;
        if job.life.attempt.no > 1 {
            return (job.life.attempt.no, died.elapsed());
        }
    }
    let held = BTreeMap::from([(assignment.job.life.attempt.token.clone(), id.clone())]);
    let _worker = Hand::attach_kind(&other.engine, "w", &posted(), held, assignment.number).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    (other.job(&id).await.life.attempt.no, died.elapsed())
}

#[tokio::test(start_paused = true)]
async fn the_sessions_of_a_dead_process_have_their_ninety_seconds() {
    let (attempt, _) = after_the_death_of_its_process(Some(Duration::from_secs(70))).await;
    assert_eq!(attempt, 1, "it found another one in time");
    let (attempt, waited) = after_the_death_of_its_process(None).await;
    assert_eq!(attempt, 2);
    assert!(waited > Duration::from_secs(85) && waited < Duration::from_secs(105), "{waited:?}");
}
