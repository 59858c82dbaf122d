//! Attempts that the platform loses: what is seen of them, what their successors begin with, and what they free.

use std::slice;
use std::time::Duration;

use lockgate_core::ids::AttemptToken;
use lockgate_core::job::{Job, JobState, Outcome, Reason};
use lockgate_core::request::{Json, NewJob};
use lockgate_core::worker::Load;
use lockgate_engine::{Acknowledged, Assignment, Beat, FromWorker, InventoryItem, ToWorker};
use tokio::time::{Instant, interval};

use super::stage::{Hand, Kind, Stage, job};

const ONE_AT_A_TIME: &str = "topics: {t: p}\npools: {p: {}}\nlimits: [{name: one, per: [topic], max_concurrent: 1}]\n";
/// With the default settings.
const START_WITHIN: Duration = Duration::from_secs(120);
const RUN_FOR: Duration = Duration::from_secs(300);

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

fn token(assignment: &Assignment) -> &AttemptToken {
    &assignment.job.life.attempt.token
}

fn reason(job: &Job) -> Option<Reason> {
    job.life.last_error.as_ref().map(|failure| failure.reason)
}

/// A beat of a worker that has these attempts and has not begun with any.
pub(super) async fn beat_unstarted(worker: &Hand, assignments: &[Assignment]) {
    let item = |assignment: &Assignment| {
        let job_id = assignment.job.request.job_id.clone();
        InventoryItem { job_id, token: token(assignment).clone(), started: false }
    };
    let inventory = assignments.iter().map(item).collect();
    let highest_assignment = assignments.iter().map(|assignment| assignment.number).max().unwrap_or(0);
    let beat = Beat { number: 1, highest_assignment, inventory, active_jobs: 0, load: Load::default(), slots: None };
    worker.attachment.receive(FromWorker { beat: Some(beat), ..FromWorker::default() }).await;
}

/// The attempt waits in its worker, which is heard all the time, and nothing is said to it.
async fn wait_unstarted(worker: &mut Hand, assignment: &Assignment, span: Duration) {
    let (began, mut beats) = (Instant::now(), interval(Duration::from_secs(3)));
    while began.elapsed() < span {
        beats.tick().await;
        beat_unstarted(worker, slice::from_ref(assignment)).await;
        let said = worker.inbound_now();
        assert!(said.is_none(), "{said:?} after {:?}", began.elapsed());
    }
}

/// Trap 23: the first attempt was stopped, its handler is not gone, and the second one is lost on its way.
async fn left_over() -> (Stage, Hand, Assignment) {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 2).await;
    stage.submit(NewJob { timeout_ms: Some(1_000), ..job("t") }).await;
    let first = worker.take().await;
    worker.start(&first).await;
    let mut beats = interval(Duration::from_secs(1));
    let stopped = loop {
        beats.tick().await;
        worker.beat().await;
        if let Some(ToWorker::Stop { token, .. }) = worker.inbound_now() {
            break token;
        }
    };
    assert_eq!(stopped, *token(&first));
    let second = worker.take().await;
    assert_eq!((second.job.life.attempt.no, &second.job.request.job_id), (2, &first.job.request.job_id));
    worker.forget(&second);
    (stage, worker, second)
}

/// At once: silence, or its own limits, would end it as well, and much later.
async fn assert_lost(stage: &Stage, assignment: &Assignment) {
    let job = stage.job(&assignment.job.request.job_id).await;
    assert_eq!((job.life.attempt.no, reason(&job)), (3, Some(Reason::AgentLost)), "{job:?}");
    assert_eq!((job.life.counters.failures, job.life.counters.infra_failures), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_beat_shows_of_an_earlier_attempt_does_not_hide_that_the_next_one_is_lost() {
    let (stage, mut worker, second) = left_over().await;
    worker.beat().await;
    assert_lost(&stage, &second).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_hello_shows_of_an_earlier_attempt_does_not_hide_that_the_next_one_is_lost() {
    let (stage, worker, second) = left_over().await;
    let (held, highest) = worker.into_inventory();
    assert_eq!(held.values().collect::<Vec<_>>(), [&second.job.request.job_id], "the first attempt is still shown");
    let _worker = Hand::attach_with(&stage.engine, "w", &["t"], 2, held, highest).await;
    assert_lost(&stage, &second).await;
}

/// Trap 17.
#[tokio::test(start_paused = true)]
async fn what_does_not_start_in_time_is_called_off_before_it_is_sent_again() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 2).await;
    let id = stage.submit(job("t")).await;
    let first = worker.take().await;
    let sent = Instant::now();
    wait_unstarted(&mut worker, &first, START_WITHIN).await;
    let mut beats = interval(Duration::from_secs(1));
    let said = loop {
        beats.tick().await;
        beat_unstarted(&worker, slice::from_ref(&first)).await;
        if let Some(said) = worker.inbound_now() {
            break said;
        }
    };
    assert!(sent.elapsed() <= START_WITHIN + Duration::from_secs(5), "{:?}", sent.elapsed());
    let ToWorker::Stop { token: stopped, reason: why, .. } = said else { panic!("{said:?}") };
    assert_eq!((&stopped, &*why), (token(&first), "dispatch_lost"));

    let second = worker.take().await;
    assert_eq!((second.job.life.attempt.no, reason(&second.job)), (2, Some(Reason::DispatchLost)));
    assert_eq!(worker.report_late(&first, done()).await, Acknowledged::Superseded);
    assert_eq!(stage.job(&id).await.state(), JobState::Dispatched, "the one that counts goes on");
    assert_eq!(worker.report(&second, done()).await, Acknowledged::Stored);
    let ended = stage.job(&id).await;
    assert_eq!((ended.state(), ended.life.attempt.no), (JobState::Succeeded, 2));
}

/// Trap 12.
#[tokio::test(start_paused = true)]
async fn the_successor_of_a_lost_attempt_has_its_own_times_and_a_place_in_the_limit() {
    let stage = Stage::new();
    stage.pools(ONE_AT_A_TIME).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 9)).await;
    let id = stage.submit(job("t")).await;
    let first = worker.take().await;
    wait_unstarted(&mut worker, &first, Duration::from_secs(100)).await;
    worker.forget(&first);
    worker.beat().await;
    let lost = stage.job(&id).await;
    assert_eq!((lost.state(), lost.life.attempt.no, reason(&lost)), (JobState::Scheduled, 2, Some(Reason::AgentLost)));
    assert_eq!((&lost.life.attempt.binding, lost.life.attempt.started_at), (&None, None));
    assert!(matches!(worker.next().await, ToWorker::Stop { .. }), "should it have it after all");

    let second = worker.take().await;
    let bound = |assignment: &Assignment| assignment.job.life.attempt.binding.clone().expect("sent");
    let (before, now) = (bound(&first), bound(&second));
    assert!(now.dispatched_at.since(before.dispatched_at) >= Duration::from_secs(100));
    assert_eq!(now.start_by.since(now.dispatched_at), START_WITHIN);
    assert_eq!(now.timeout_at.since(now.dispatched_at), RUN_FOR);
    // Longer than the first one had left.
    wait_unstarted(&mut worker, &second, Duration::from_secs(100)).await;
    worker.start(&second).await;
    assert_eq!(worker.report(&second, done()).await, Acknowledged::Stored);
    assert_eq!(stage.job(&id).await.life.attempt.no, 2);
}

/// Trap 43.
#[tokio::test(start_paused = true)]
async fn the_place_of_a_worker_that_died_before_it_began_is_free_when_its_session_ends() {
    let stage = Stage::new();
    stage.pools(ONE_AT_A_TIME).await;
    let mut doomed = Hand::attach_as(&stage.engine, "doomed", &Kind::of("p", &["*"], 1)).await;
    stage.submit(job("t")).await;
    doomed.take().await;
    let silent_since = Instant::now();
    let next = stage.submit(job("t")).await;
    let mut heir = Hand::attach_as(&stage.engine, "heir", &Kind::of("p", &["*"], 9)).await;
    stage.until_reason(&next, "limit_full").await;
    let mut beats = interval(Duration::from_secs(1));
    let given = loop {
        beats.tick().await;
        heir.beat().await;
        if let Some(ToWorker::Assign(given)) = heir.inbound_now() {
            break given;
        }
    };
    // Limits are compared with what workers hold every 30 s, and only the second look frees something.
    assert!(silent_since.elapsed() <= Duration::from_secs(14), "{:?}", silent_since.elapsed());
    assert_eq!(given[0].job.request.job_id, next);
    assert!(stage.number("lockgate_limits_leaked_total").abs() < f64::EPSILON, "nothing leaked");
}
