//! Limits: what lanes count is what workers hold, whatever was missed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId};
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{Assignment, ToWorker};
use lockgate_ports::Lanes;
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, caller, job};

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
    assert_eq!(
        stage.lanes.claimed_total().await.expect("in memory"),
        [("p".into(), 2)],
        "the first job, and the ghost once"
    );
    assert!(stage.lanes.depths(9).await.expect("in memory").is_empty());
    let other = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, other, "nothing keeps the limit");
    worker.report(&assignment, done()).await;
    pass(&mut worker, Duration::from_secs(20)).await;
    assert_eq!(worker.take().await.job.request.job_id, id);
}

/// Whoever dispatched it died between its commit and its word to the lanes.
#[tokio::test(start_paused = true)]
async fn what_runs_without_counting_is_counted_within_a_minute() {
    let stage = Stage::new();
    stage.pools(ONE_AT_A_TIME).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 9)).await;
    stage.submit(job("t")).await;
    let assignment = worker.take().await;
    let token = assignment.job.life.attempt.token.clone();
    stage.lanes.release(vec![token.clone()]).await;
    assert!(stage.lanes.holding().await.expect("in memory").is_empty());
    pass(&mut worker, Duration::from_secs(70)).await;
    assert_eq!(stage.lanes.holding().await.expect("in memory"), [token]);
    assert!((stage.number("lockgate_limits_uncounted_total") - 1.0).abs() < f64::EPSILON);
    let second = stage.submit(job("t")).await;
    stage.until_reason(&second, "limit_full").await;
    worker.report_late(&assignment, done()).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}

/// The bus is away, so nobody tells what a worker elsewhere has not let go of.
#[tokio::test(start_paused = true)]
async fn nothing_is_freed_while_the_process_of_a_worker_cannot_be_heard() {
    let leader = Stage::shared();
    leader.pools(ONE_AT_A_TIME).await;
    let mut here = Hand::attach_as(&leader.engine, "here", &Kind::of("p", &["other"], 1)).await;
    // By then it leads.
    pass(&mut here, Duration::from_secs(40)).await;
    let other = leader.beside_unheard();
    let mut worker = Hand::attach_as(&other.engine, "w", &Kind::of("p", &["*"], 9)).await;
    let first = other.submit(job("t")).await;
    let assignment = worker.take().await;
    leader.engine.cancel(&caller(), &first, None).await.expect("cancelled");
    let ToWorker::Stop { .. } = worker.next().await else { panic!("a stop") };
    let second = other.submit(job("t")).await;
    for _ in 0..70 {
        worker.beat().await;
        pass(&mut here, Duration::ZERO).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    other.until_reason(&second, "limit_full").await;
    worker.let_go(&assignment).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}

/// The first of two jobs, of which one may run at a time, was cancelled by a server that had been started again, before the first
/// one's worker came back to it.
struct Away {
    stage: Stage,
    /// What that worker holds, and the highest assignment it took.
    held: BTreeMap<AttemptToken, JobId>,
    highest: u64,
    assignment: Assignment,
    second: JobId,
    /// A worker with room for the second job.
    other: Hand,
}

async fn cancelled_before_its_worker_came_back() -> Away {
    let stage = Stage::new();
    stage.pools(ONE_AT_A_TIME).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 1)).await;
    let first = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    stage.until(&first, |job| job.state() == JobState::Running).await;
    let (held, highest) = worker.into_inventory();
    let stage = stage.crash(Duration::from_secs(1)).await;
    let mut other = Hand::attach_as(&stage.engine, "other", &Kind::of("p", &["*"], 1)).await;
    let second = stage.submit(job("t")).await;
    stage.engine.cancel(&caller(), &first, None).await.expect("cancelled");
    pass(&mut other, Duration::from_secs(2)).await;
    stage.until_reason(&second, "limit_full").await;
    Away { stage, held, highest, assignment, second, other }
}

#[tokio::test(start_paused = true)]
async fn what_was_stopped_before_its_worker_came_back_counts_until_that_has_let_go_of_it() {
    let away = cancelled_before_its_worker_came_back().await;
    let Away { stage, held, highest, assignment, second, mut other } = away;
    let mut worker = Hand::attach_kind(&stage.engine, "w", &Kind::of("p", &["*"], 1), held, highest).await;
    let ToWorker::Stop { .. } = worker.next().await else { panic!("a stop") };
    for _ in 0..50 {
        worker.beat().await;
        other.beat().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    stage.until_reason(&second, "limit_full").await;
    worker.let_go(&assignment).await;
    stage.until(&second, |job| job.state() == JobState::Dispatched).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_stopped_before_its_worker_came_back_is_freed_soon_after_the_end_of_its_session() {
    let Away { stage, second, mut other, .. } = cancelled_before_its_worker_came_back().await;
    let began = Instant::now();
    while stage.job(&second).await.state() == JobState::Scheduled {
        other.beat().await;
        assert!(began.elapsed() < Duration::from_secs(120), "{:?}", stage.engine.why(&caller(), &second).await);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert!(began.elapsed() > Duration::from_secs(5), "its worker may still have been at it: {:?}", began.elapsed());
}

/// Lays the lanes out anew. What is done meanwhile is done after it was read what workers hold, and before the lanes hear of it.
async fn lay_out_around(stage: &Stage, meanwhile: impl Future<Output = ()>) {
    stage.lanes_slow.send_replace(true);
    let around = async {
        let began = Instant::now();
        while stage.lanes_slow.receiver_count() == 0 {
            assert!(began.elapsed() < Duration::from_secs(5), "nobody lays them out");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        meanwhile.await;
        stage.lanes_slow.send_replace(false);
    };
    let anew = "topics: {t: p, u: q}\npools: {p: {}, q: {}}\nlimits: [{name: one, per: [topic], max_concurrent: 1}]\n";
    tokio::join!(stage.pools(anew), around);
}

/// An attempt ends at the process of its worker while `stage` lays the lanes out; the next job must not wait for its limit.
async fn free_after_its_end(stage: &Stage, at: &Stage, outcome: Outcome) {
    let mut worker = Hand::attach_as(&at.engine, "w", &Kind::of("p", &["*"], 2)).await;
    stage.submit(job("t")).await;
    let first = worker.take().await;
    lay_out_around(stage, async {
        worker.report(&first, outcome).await;
    })
    .await;
    let second = stage.submit(job("t")).await;
    let began = Instant::now();
    assert_eq!(worker.take().await.job.request.job_id, second);
    assert!(began.elapsed() < Duration::from_secs(5), "it waited for {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_ends_while_the_lanes_are_laid_out_holds_no_limit_after_that() {
    let again = Outcome::FailedRetryable { error: "busy".into(), code: None, retry_after: Some(Duration::from_secs(90)) };
    for outcome in [done(), again] {
        let alone = Stage::new();
        alone.pools(ONE_AT_A_TIME).await;
        free_after_its_end(&alone, &alone, outcome.clone()).await;
        let one = Stage::shared();
        one.pools(ONE_AT_A_TIME).await;
        free_after_its_end(&one, &one.beside(), outcome).await;
    }
}

/// The process that lays them out cannot know whether a worker of another one still runs it.
#[tokio::test(start_paused = true)]
async fn what_is_stopped_while_the_lanes_are_laid_out_counts_until_its_worker_has_let_go_of_it() {
    let stage = Stage::shared();
    stage.pools(ONE_AT_A_TIME).await;
    let other = stage.beside();
    let mut worker = Hand::attach_as(&other.engine, "w", &Kind::of("p", &["*"], 2)).await;
    let first = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    lay_out_around(&stage, async {
        stage.engine.cancel(&caller(), &first, None).await.expect("cancelled");
    })
    .await;
    let ToWorker::Stop { .. } = worker.next().await else { panic!("a stop") };
    let second = stage.submit(job("t")).await;
    pass(&mut worker, Duration::from_secs(10)).await;
    other.until_reason(&second, "limit_full").await;
    worker.let_go(&assignment).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}
