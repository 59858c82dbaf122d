//! Rounds of many slow pages: they keep their leader, and keep no process from its end.

use std::time::Duration;

use lockgate_core::job::Outcome;
use lockgate_core::limits::Limits;
use lockgate_core::request::NewJob;
use lockgate_engine::{Acknowledged, Settings};
use lockgate_model::MemoryStore;
use lockgate_ports::{Clock, Leases, Upkeep};
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, job, pass};

const PATIENCE: Duration = Duration::from_secs(120);
const PAGE: usize = 100;
const PAGES: usize = 12;
const BACKLOG: usize = PAGES * PAGE;

/// Pages are short, and what has ended is soon forgotten.
fn settings() -> Settings {
    let (retention, prune_every) = (Duration::from_secs(30), Duration::from_secs(5));
    Settings { batch_max: PAGE, retention, prune_every, exclusive_store: false, ..Settings::default() }
}

/// What nobody can take is given up after three tries, which are seven seconds.
fn impatient() -> Settings {
    let limits = Limits { placing_tries_max: 3, ..Limits::default() };
    Settings { limits, batch_max: PAGE, exclusive_store: false, ..Settings::default() }
}

async fn submit_backlog(stage: &Stage, like: &NewJob) {
    let answers = stage.engine.submit(&caller(), vec![like.clone(); BACKLOG]).await.expect("taken");
    assert!(answers.iter().all(Result::is_ok));
}

fn due_in(clock: &dyn Clock, span: Duration, topic: &str) -> NewJob {
    NewJob { not_before: Some(clock.now() + span), ..job(topic) }
}

/// Two processes, and many jobs that become due at once, in five seconds from now.
async fn two_before_a_backlog_is_due() -> (Stage, Stage) {
    let one = Stage::with(settings());
    let other = one.beside_with(settings());
    submit_backlog(&one, &due_in(one.clock(), Duration::from_secs(10), "nobody")).await;
    pass(Duration::from_secs(5)).await;
    (one, other)
}

/// Who leads the loop of what is due, and since when.
async fn pump(store: &MemoryStore) -> (Option<String>, u64) {
    let leases = store.leases().await.expect("memory");
    let lease = leases.into_iter().find(|lease| lease.name == "lockgate:retry:pump").expect("somebody leads");
    (lease.holder, lease.epoch)
}

async fn until_ended(store: &MemoryStore, wanted: impl Fn(usize) -> bool) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    loop {
        let totals = store.totals().await.expect("memory");
        let ended = usize::try_from(totals.ended).expect("few");
        if wanted(ended) {
            return ended;
        }
        assert!(Instant::now() < deadline, "it did not happen: {totals:?}");
        tick.tick().await;
    }
}

/// SIGTERM while a round is under way that would take five seconds more.
async fn stop_soon(stage: Stage) {
    let asked = Instant::now();
    stage.stop().await;
    assert!(asked.elapsed() <= Duration::from_secs(1), "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_long_backlog_of_what_is_due_is_read_once_by_one_leader() {
    let (one, _other) = two_before_a_backlog_is_due().await;
    let leader = pump(&one.store).await;
    // The lease is good for a second, and the backlog takes five.
    one.store.slow_pages(Duration::from_millis(400));
    pass(Duration::from_secs(30)).await;
    assert_eq!(pump(&one.store).await, leader);
    assert_eq!(one.store.due_rows(), BACKLOG);
}

#[tokio::test(start_paused = true)]
async fn leaders_that_lose_their_lease_within_a_page_come_to_the_end_of_the_backlog_all_the_same() {
    let (one, _other) = two_before_a_backlog_is_due().await;
    one.store.slow_pages(Duration::from_millis(1_500));
    pass(Duration::from_secs(120)).await;
    let read = one.store.due_rows();
    assert!((BACKLOG..=2 * BACKLOG).contains(&read), "{read} rows: each process reads each of them once at most");
    // What becomes due now does not wait for the backlog.
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 1).await;
    let late = Instant::now() + Duration::from_secs(1);
    one.submit(due_in(one.clock(), Duration::from_secs(1), "t")).await;
    worker.take().await;
    assert!(late.elapsed() <= Duration::from_secs(5), "{:?}", late.elapsed());
}

#[tokio::test(start_paused = true)]
async fn by_a_clock_behind_the_stores_nothing_that_is_due_is_passed_by() {
    let stage = Stage::behind(Duration::from_millis(300));
    pass(Duration::from_millis(500)).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 20).await;
    // One after another, so that ticks find each at another distance.
    let began = Instant::now();
    for n in 0..20 {
        stage.submit(due_in(stage.clock(), Duration::from_millis(1_000 + 100 * n), "t")).await;
    }
    worker.take_many(20).await;
    assert!(began.elapsed() <= Duration::from_millis(3_500), "{:?}", began.elapsed());
}

/// To the Store each of these delays is over when it is committed, so nothing but the commit itself says that the job waits.
#[tokio::test(start_paused = true)]
async fn by_a_clock_far_behind_the_stores_short_delays_are_kept_and_not_forgotten() {
    let stage = Stage::behind(Duration::from_secs(5));
    pass(Duration::from_secs(6)).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let delay = Duration::from_secs(1);
    let in_time = Duration::from_millis(900)..=Duration::from_secs(3);
    let began = Instant::now();
    stage.submit(due_in(stage.clock(), delay, "t")).await;
    let assignment = worker.take().await;
    assert!(in_time.contains(&began.elapsed()), "a delayed job: {:?}", began.elapsed());
    let failed = Instant::now();
    let again = Outcome::FailedRetryable { error: "again".into(), code: None, retry_after: Some(delay) };
    assert_eq!(worker.report(&assignment, again).await, Acknowledged::Stored);
    worker.take().await;
    assert!(in_time.contains(&failed.elapsed()), "a retry: {:?}", failed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_all_that_missed_their_deadlines() {
    let one = Stage::with(settings());
    let store = one.store.clone();
    submit_backlog(&one, &NewJob { deadline_ms: Some(10_000), ..job("nobody") }).await;
    store.slow_pages(Duration::from_millis(400));
    until_ended(&store, |ended| ended > 0).await;
    let next = one.beside_with(settings());
    stop_soon(one).await;
    let ended = until_ended(&store, |_| true).await;
    assert!(ended < BACKLOG, "all of them ended first");
    until_ended(&store, |ended| ended == BACKLOG).await;
    next.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_until_all_is_forgotten_that_ended_long_ago() {
    let one = Stage::with(settings());
    let store = one.store.clone();
    submit_backlog(&one, &NewJob { deadline_ms: Some(1_000), ..job("nobody") }).await;
    until_ended(&store, |ended| ended == BACKLOG).await;
    store.slow_pages(Duration::from_millis(400));
    until_ended(&store, |ended| ended < BACKLOG).await;
    let next = one.beside_with(settings());
    stop_soon(one).await;
    let left = until_ended(&store, |_| true).await;
    assert!(left > 0, "all of them were forgotten first");
    until_ended(&store, |ended| ended == 0).await;
    next.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_until_all_is_given_up_that_nobody_can_take() {
    let one = Stage::with(impatient());
    let store = one.store.clone();
    one.pools("topics: {t: p}\npools: {p: {}}\n").await;
    submit_backlog(&one, &job("unmapped")).await;
    store.slow_lanes(Duration::from_millis(400));
    until_ended(&store, |ended| ended > 0).await;
    let next = one.beside_with(impatient());
    stop_soon(one).await;
    let ended = until_ended(&store, |_| true).await;
    assert!(ended < BACKLOG, "all of them were given up first");
    until_ended(&store, |ended| ended == BACKLOG).await;
    next.stop().await;
}
