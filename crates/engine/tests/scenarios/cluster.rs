//! Several processes on one Store, one set of lanes and one bus.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{Acknowledged, Settings, ToWorker, WorkerStatus};
use lockgate_ports::{JobStore, Lanes, Leases, Sessions, Settlement};
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, caller, job, pass};

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

#[tokio::test(start_paused = true)]
async fn a_job_taken_by_one_process_starts_at_a_worker_of_another() {
    let one = Stage::shared();
    let other = one.beside();
    let mut worker = Hand::attach(&other.engine, "w", &["t"], 1).await;
    let id = one.submit(job("t")).await;
    let assignment = worker.take().await;
    assert_eq!(worker.report(&assignment, done()).await, Acknowledged::Stored);
    one.until(&id, |job| job.state() == JobState::Succeeded).await;
}

async fn cancelled_after(unheard: bool) -> Duration {
    let one = Stage::shared();
    let other = if unheard { one.beside_unheard() } else { one.beside() };
    let mut worker = Hand::attach(&other.engine, "w", &["t"], 1).await;
    let id = one.submit(job("t")).await;
    let assignment = worker.take().await;
    let cancelled = Instant::now();
    one.engine.cancel(&caller(), &id, None).await.expect("cancelled");
    let ToWorker::Stop { token, .. } = worker.next().await else { panic!("a stop") };
    assert_eq!(token, assignment.job.life.attempt.token);
    let waited = cancelled.elapsed();
    // As soon as its handler is gone, its place is free.
    worker.let_go(&assignment).await;
    one.submit(job("t")).await;
    worker.take().await;
    waited
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_process_that_holds_the_worker() {
    let waited = cancelled_after(false).await;
    assert!(waited <= Duration::from_millis(50), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_whose_ring_is_lost_reaches_the_worker_within_two_seconds() {
    let waited = cancelled_after(true).await;
    assert!(waited <= Duration::from_millis(2_100), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_moves_to_another_process_keeps_its_attempts() {
    let one = Stage::shared();
    let other = one.beside();
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 1).await;
    let id = one.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    one.kill();
    let (held, highest) = worker.into_inventory();
    let mut worker = Hand::attach_with(&other.engine, "w", &["t"], 1, held, highest).await;
    for _ in 0..10 {
        worker.beat().await;
        other.until(&id, |job| job.state().is_held()).await;
        pass(Duration::from_secs(2)).await;
    }
    assert_eq!(worker.report(&assignment, done()).await, Acknowledged::Stored);
    let job = other.job(&id).await;
    assert_eq!((job.state(), job.life.attempt.no), (JobState::Succeeded, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_held_runs_elsewhere_within_fifteen_seconds() {
    let one = Stage::shared();
    let other = one.beside();
    let mut doomed = Hand::attach(&one.engine, "doomed", &["t"], 1).await;
    let id = one.submit(job("t")).await;
    doomed.take().await;
    let mut heir = Hand::attach(&other.engine, "heir", &["t"], 1).await;
    // Long enough for the other one to trust what it hears and does not hear.
    for _ in 0..10 {
        doomed.beat().await;
        heir.beat().await;
        pass(Duration::from_secs(2)).await;
    }
    let died = Instant::now();
    one.kill();
    let moved = loop {
        heir.beat().await;
        pass(Duration::from_millis(500)).await;
        let job = other.job(&id).await;
        if job.life.attempt.binding.as_ref().is_some_and(|binding| binding.worker.as_str() == "heir") {
            break job;
        }
        assert!(died.elapsed() < Duration::from_secs(60), "{job:?}");
    };
    assert!(died.elapsed() <= Duration::from_secs(15), "{:?}", died.elapsed());
    assert_eq!(moved.life.last_error.expect("a reason").reason, Reason::AgentLost);
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_stored_and_never_offered_runs_elsewhere_as_soon_as_its_edge_is_closed() {
    // More than the head of a lane and more than a page, so that one look is not enough.
    const JOBS: u32 = 40;
    let one = Stage::shared();
    let other = one.beside_with(Settings { batch_max: 16, ..Settings::default() });
    // Long enough for the other one to trust what it hears and does not hear.
    pass(Duration::from_secs(20)).await;
    // One that is known is not taken for all of them.
    one.submit(job("t")).await;
    let mut unoffered = Vec::new();
    for _ in 1..JOBS {
        let id = one.submit(job("t")).await;
        let job = one.job(&id).await;
        unoffered.push(Settlement::Gone { lane: job.lane(), key: job.ready_key(), claim: None });
    }
    // As if it had died between its commits and its offers.
    one.lanes.settle(unoffered).await;
    let known = one.lanes.depths(1).await.expect("they are in memory");
    assert_eq!(known.iter().map(|depth| depth.waiting).sum::<u64>(), 1);
    let died = Instant::now();
    one.kill();
    let mut heir = Hand::attach(&other.engine, "heir", &["t"], JOBS).await;
    while !other.store.ready_lanes().await.expect("memory").is_empty() {
        // Far less than until all lanes of the Store are compared anyway.
        assert!(died.elapsed() <= Duration::from_secs(20), "they wait for the sweep");
        heir.beat().await;
        pass(Duration::from_millis(500)).await;
    }
    assert!(died.elapsed() >= Duration::from_secs(5), "nobody could know of them yet: {:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn processes_that_die_one_after_another_do_not_cost_a_comparison_of_all_lanes_each() {
    let leader = Stage::shared();
    // Alone, so that it leads everything from here on.
    pass(Duration::from_secs(6)).await;
    let doomed: Vec<Stage> = (0..15).map(|_| leader.beside()).collect();
    leader.submit(job("unserved")).await;
    pass(Duration::from_secs(20)).await;
    // The one row that waits is read once a round.
    let rounds = || leader.number("lockgate_ready_rows_read_total");
    let (before, began) = (rounds(), Instant::now());
    for process in &doomed {
        process.kill();
        pass(Duration::from_secs(2)).await;
    }
    pass(Duration::from_secs(20)).await;
    assert_eq!(leader.store.open_edges().await.expect("memory").len(), 1, "all of them were closed");
    // Ticks come up to a tenth early.
    let ticks = began.elapsed().as_secs_f64() / 4.5;
    let rounds = rounds() - before;
    assert!(rounds <= ticks + 2.0, "{rounds} rounds in the time of {ticks} ticks");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stood_still_closes_no_edge_when_it_goes_on() {
    let leader = Stage::shared();
    let other = leader.beside();
    let mut worker = Hand::attach(&other.engine, "w", &["t"], 1).await;
    let id = leader.submit(NewJob { timeout_ms: Some(3_600_000), ..job("t") }).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    for _ in 0..10 {
        worker.beat().await;
        pass(Duration::from_secs(2)).await;
    }
    // Nobody runs meanwhile, and the leader is the first to go on.
    tokio::time::advance(Duration::from_secs(30)).await;
    for _ in 0..10 {
        worker.beat().await;
        pass(Duration::from_secs(2)).await;
    }
    assert_eq!(worker.report(&assignment, done()).await, Acknowledged::Stored);
    assert_eq!(other.job(&id).await.life.attempt.no, 1);
}

/// When a job whose worker was told `told` runs elsewhere after the death of that worker's process.
async fn moved_after_the_death_of_a_process_that_said(told: Duration) -> Duration {
    let leader = Stage::shared();
    let doomed = leader.beside_with(Settings { lost_after: told, ..Settings::default() });
    let mut worker = Hand::attach(&doomed.engine, "w", &["t"], 1).await;
    let id = leader.submit(NewJob { timeout_ms: Some(3_600_000), ..job("t") }).await;
    worker.take().await;
    let mut heir = Hand::attach(&leader.engine, "heir", &["t"], 1).await;
    for _ in 0..10 {
        worker.beat().await;
        heir.beat().await;
        pass(Duration::from_secs(2)).await;
    }
    worker.beat().await;
    let heard = Instant::now();
    doomed.kill();
    loop {
        heir.beat().await;
        pass(Duration::from_millis(500)).await;
        let attempt = leader.job(&id).await.life.attempt;
        if attempt.no > 1 && attempt.binding.is_some() {
            return heard.elapsed();
        }
        assert!(heard.elapsed() < Duration::from_secs(200), "{attempt:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_was_told_of_silence_outlives_the_process_that_told_it() {
    // The margin is what a worker leaves itself that stops before its lease ends.
    let margin = Duration::from_secs(2);
    for told in [Duration::from_secs(10), Duration::from_secs(25), Duration::from_secs(60)] {
        let moved = moved_after_the_death_of_a_process_that_said(told).await;
        assert!(moved >= told - margin, "told {told:?}, and run elsewhere after {moved:?}");
        assert!(moved <= told + Duration::from_secs(5), "told {told:?}, and run elsewhere after {moved:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_beat_says_how_long_ago_others_heard_of_the_process() {
    let one = Stage::shared();
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 1).await;
    for _ in 0..10 {
        worker.beat().await;
        pass(Duration::from_secs(2)).await;
    }
    let renewed = worker.lease_age().await;
    assert!(renewed <= Duration::from_millis(2_500), "{renewed:?}");
    // Its loops are gone, and it still answers: as when it is cut off from the Store alone.
    one.kill();
    pass(Duration::from_secs(30)).await;
    let renewed = worker.lease_age().await;
    assert!(renewed >= Duration::from_secs(30), "{renewed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_attempt_keeps_its_limit_until_a_worker_of_another_process_has_let_go_of_it() {
    let leader = Stage::shared();
    leader.pools("topics: {t: p}\npools: {p: {}}\nlimits: [{name: one, per: [topic], max_concurrent: 1}]\n").await;
    let other = leader.beside();
    let mut worker = Hand::attach_as(&other.engine, "w", &Kind::of("p", &["*"], 9)).await;
    let first = leader.submit(job("t")).await;
    let assignment = worker.take().await;
    leader.engine.cancel(&caller(), &first, None).await.expect("cancelled");
    let ToWorker::Stop { .. } = worker.next().await else { panic!("a stop") };
    let second = leader.submit(job("t")).await;
    // Longer than the look for leaks takes, four times.
    for _ in 0..60 {
        worker.beat().await;
        pass(Duration::from_secs(2)).await;
    }
    leader.until_reason(&second, "limit_full").await;
    worker.let_go(&assignment).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_attempt_of_a_dead_process_gives_its_limit_back_with_the_end_of_its_session() {
    let leader = Stage::shared();
    leader.pools("topics: {t: p}\npools: {p: {}}\nlimits: [{name: one, per: [topic], max_concurrent: 1}]\n").await;
    let doomed = leader.beside();
    let mut worker = Hand::attach_as(&doomed.engine, "w", &Kind::of("p", &["*"], 9)).await;
    let mut heir = Hand::attach_as(&leader.engine, "heir", &Kind::of("p", &["other"], 9)).await;
    let first = leader.submit(job("t")).await;
    worker.take().await;
    leader.engine.cancel(&caller(), &first, None).await.expect("cancelled");
    let ToWorker::Stop { .. } = worker.next().await else { panic!("a stop") };
    for _ in 0..10 {
        worker.beat().await;
        heir.beat().await;
        pass(Duration::from_secs(2)).await;
    }
    let second = leader.submit(job("t")).await;
    doomed.kill();
    let died = Instant::now();
    let mut late = Hand::attach_as(&leader.engine, "late", &Kind::of("p", &["t"], 1)).await;
    while late.inbound_now().is_none() {
        late.beat().await;
        assert!(died.elapsed() <= Duration::from_secs(15), "{:?}", leader.engine.why(&caller(), &second).await);
        pass(Duration::from_millis(500)).await;
    }
    assert!(died.elapsed() >= Duration::from_secs(8), "its worker may still have been at it: {:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_only_a_worker_elsewhere_fits_is_not_given_up() {
    let one = Stage::shared();
    let other = one.beside();
    one.pools("topics: {'*': direct}\npools: {direct: {dispatch: direct}}").await;
    let mut worker = Hand::attach_as(&other.engine, "w", &Kind::of("direct", &["t"], 1)).await;
    one.submit(NewJob { timeout_ms: Some(3_600_000), ..job("t") }).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    let (fits, fits_nobody) = (one.submit(job("t")).await, one.submit(job("other")).await);
    while !one.job(&fits_nobody).await.state().is_terminal() {
        worker.beat().await;
        pass(Duration::from_secs(3)).await;
    }
    assert_eq!(one.job(&fits).await.state(), JobState::Scheduled);
}

#[tokio::test(start_paused = true)]
async fn workers_of_other_processes_are_listed() {
    let one = Stage::shared();
    let other = one.beside();
    let _worker = Hand::attach(&other.engine, "w", &["t"], 3).await;
    pass(Duration::from_secs(3)).await;
    let seen: Vec<_> = one.engine.workers().into_iter().map(|view| (view.profile.slots, view.status)).collect();
    assert_eq!(seen, [(3, WorkerStatus::Elsewhere)]);
}

async fn sent_away_after(unheard: bool) -> Duration {
    let one = Stage::shared();
    let other = if unheard { one.beside_unheard() } else { one.beside() };
    let mut worker = Hand::attach(&other.engine, "w", &["t"], 2).await;
    pass(Duration::from_secs(3)).await;
    one.submit(job("t")).await;
    let assignment = worker.take().await;
    let asked = Instant::now();
    assert_eq!(one.engine.drain_worker(&caller(), &"w".into()).await.expect("told"), 1);
    assert!(matches!(worker.next().await, ToWorker::Drain));
    let waited = asked.elapsed();
    // It gets nothing more, and may leave when it is done.
    let next = one.submit(job("t")).await;
    worker.report(&assignment, done()).await;
    assert!(worker.dismissed);
    assert_eq!(one.job(&next).await.state(), JobState::Scheduled);
    waited
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_sent_away_by_whichever_process_is_asked() {
    let waited = sent_away_after(false).await;
    assert!(waited <= Duration::from_millis(50), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_sent_away_within_two_seconds_if_the_ring_is_lost() {
    let waited = sent_away_after(true).await;
    assert!(waited <= Duration::from_millis(2_100), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_sent_away_is_told_again_by_the_next_process_it_attaches_to() {
    let one = Stage::shared();
    let other = one.beside();
    let mut worker = Hand::attach(&one.engine, "w", &["t"], 1).await;
    one.engine.drain_worker(&caller(), &"w".into()).await.expect("told");
    assert!(matches!(worker.next().await, ToWorker::Drain));
    one.kill();
    let mut moved = Hand::attach(&other.engine, "w", &["t"], 1).await;
    assert!(matches!(moved.next().await, ToWorker::Drain));
}

#[tokio::test(start_paused = true)]
async fn leadership_moves_at_once_when_a_process_stops_and_soon_when_it_dies() {
    let one = Stage::shared();
    let other = one.beside();
    pass(Duration::from_secs(5)).await;
    let deadline = |ms| NewJob { deadline_ms: Some(ms), ..job("nobody") };
    let first = other.submit(deadline(1_000)).await;
    one.stop().await;
    let ended = other.until(&first, |job| job.state() == JobState::Timeout).await;
    let late = ended.life.ended_at.expect("ended").since(ended.life.submitted_at);
    assert!(late <= Duration::from_millis(2_100), "{late:?}");
    let third = other.beside();
    other.kill();
    let second = third.submit(deadline(1_000)).await;
    let ended = third.until(&second, |job| job.state() == JobState::Timeout).await;
    let late = ended.life.ended_at.expect("ended").since(ended.life.submitted_at);
    assert!(late <= Duration::from_millis(4_100), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_edge_was_closed_leads_on_and_hands_everything_over_when_it_stops() {
    let stage = Stage::shared();
    let store = stage.store.clone();
    pass(Duration::from_secs(5)).await;
    let led = store.leases().await.expect("memory");
    assert!(led.iter().any(|lease| lease.name == "lockgate:edge:closer"), "{led:?}");
    let edge = store.open_edges().await.expect("memory")[0].edge.clone();
    store.renew_edge(&edge, Duration::ZERO).await.expect("memory");
    let open = store.open_edges().await.expect("memory");
    assert_eq!(store.close_edges(&open, Duration::ZERO).await.expect("memory"), [edge]);
    pass(Duration::from_secs(5)).await;
    assert_eq!(store.open_edges().await.expect("memory").len(), 1, "it has another one");
    let now = store.leases().await.expect("memory");
    for lease in &led {
        let same = now.iter().any(|row| (&row.name, &row.holder, row.epoch) == (&lease.name, &lease.holder, lease.epoch));
        assert!(same, "{lease:?} is not in {now:?}");
    }
    stage.stop().await;
    let left = store.leases().await.expect("memory");
    assert!(left.iter().all(|lease| lease.holder.is_none()), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn retries_go_on_when_the_process_that_pumped_them_dies() {
    let one = Stage::shared();
    let other = one.beside();
    pass(Duration::from_secs(3)).await;
    let mut worker = Hand::attach_with(&other.engine, "w", &["t"], 1, BTreeMap::new(), 0).await;
    one.submit(job("t")).await;
    let assignment = worker.take().await;
    let again = Some(Duration::from_secs(1));
    worker.report(&assignment, Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: again }).await;
    one.kill();
    let failed = Instant::now();
    worker.take().await;
    assert!(failed.elapsed() <= Duration::from_secs(3), "{:?}", failed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_is_away_shows_in_its_gauge_until_it_is_back() {
    let one = Stage::shared();
    let other = one.beside();
    one.until_number("lockgate_bus_reachable", 1.0).await;
    one.bus.set_away(Some("gone"));
    one.until_number("lockgate_bus_reachable", 0.0).await;
    other.until_number("lockgate_bus_reachable", 1.0).await;
    one.bus.set_away(None);
    one.until_number("lockgate_bus_reachable", 1.0).await;
}
