//! What happens while jobs are on their way to a worker: one batch is being committed, the next waits behind it.

use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::pools::Closed;
use lockgate_core::request::Json;
use lockgate_model::DispatchFault;
use lockgate_ports::{JobStore, Lanes};
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, caller, job};

const PATIENCE: Duration = Duration::from_secs(60);

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

async fn until(what: &str, wanted: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    while !wanted().await {
        assert!(Instant::now() < deadline, "it did not happen: {what}");
        tick.tick().await;
    }
}

/// Two jobs are claimed for two workers: the first is about to be committed, the second waits for that.
struct UnderWay {
    stage: Stage,
    jobs: [JobId; 2],
    workers: [Hand; 2],
}

impl UnderWay {
    async fn new() -> Self {
        let stage = Stage::shared();
        let jobs = [stage.submit(job("t")).await, stage.submit(job("t")).await];
        stage.store.set_dispatches(DispatchFault::Wait);
        let first = Hand::attach(&stage.engine, "first", &["t"], 1).await;
        until("the first is about to be committed", async || stage.store.held_dispatches() == 1).await;
        let second = Hand::attach(&stage.engine, "second", &["t"], 1).await;
        until("the second is claimed", async || stage.lanes.demand().await.expect("memory").is_empty()).await;
        Self { stage, jobs, workers: [first, second] }
    }

    fn go_on(&self) {
        self.stage.store.set_dispatches(DispatchFault::Go);
    }

    /// Both jobs end well, each by one attempt that a worker was sent.
    async fn end_well(mut self) {
        for worker in &mut self.workers {
            let assignment = worker.take().await;
            worker.start(&assignment).await;
            worker.report(&assignment, done()).await;
        }
        for id in &self.jobs {
            let ended = self.stage.until(id, |job| job.state() == JobState::Succeeded).await;
            assert_eq!(ended.life.attempt.no, 1, "nothing was sent twice");
        }
        assert!(self.workers.iter_mut().all(Hand::is_quiet));
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_waits_for_another_is_sent_after_it() {
    let under_way = UnderWay::new().await;
    under_way.go_on();
    under_way.end_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_paused_gets_nothing_that_was_claimed_before() {
    let mut under_way = UnderWay::new().await;
    let engine = &under_way.stage.engine;
    engine.set_pool_state(&caller(), &"default".into(), Some(Closed::Paused)).await.expect("paused");
    under_way.go_on();
    let asked = Instant::now();
    until("time passes", async || asked.elapsed() > Duration::from_secs(5)).await;
    for id in &under_way.jobs {
        assert_eq!(under_way.stage.job(id).await.state(), JobState::Scheduled);
    }
    assert!(under_way.workers.iter_mut().all(|worker| worker.inbound_now().is_none()), "and their streams are not cut");
    under_way.stage.engine.set_pool_state(&caller(), &"default".into(), None).await.expect("opened");
    under_way.end_well().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_on_its_way_is_not_sent() {
    for which in [0, 1] {
        let mut under_way = UnderWay::new().await;
        let UnderWay { stage, jobs, workers } = &mut under_way;
        stage.engine.cancel(&caller(), &jobs[which], None).await.expect("cancelled");
        stage.store.set_dispatches(DispatchFault::Go);
        let sent = workers[1 - which].take().await;
        assert_eq!(sent.job.request.job_id, jobs[1 - which]);
        assert_eq!(stage.job(&jobs[which]).await.state(), JobState::Cancelled);
        // Its place is free for another.
        let next = stage.submit(job("t")).await;
        assert_eq!(workers[which].take().await.job.request.job_id, next);
    }
}

#[tokio::test(start_paused = true)]
async fn who_attaches_anew_is_sent_what_was_on_its_way() {
    for which in [0, 1] {
        let mut under_way = UnderWay::new().await;
        let name = ["first", "second"][which];
        under_way.workers[which] = Hand::attach(&under_way.stage.engine, name, &["t"], 1).await;
        under_way.go_on();
        under_way.end_well().await;
    }
}

/// Lanes that were rebuilt give out what is on its way once more.
#[tokio::test(start_paused = true)]
async fn what_was_claimed_for_an_earlier_attach_does_not_take_its_place_from_the_later_one() {
    let stage = Stage::shared();
    let id = stage.submit(job("t")).await;
    stage.store.set_dispatches(DispatchFault::Wait);
    let _before = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    until("it is about to be committed", async || stage.store.held_dispatches() == 1).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.lanes.rebuild(stage.store.ready_lanes().await.expect("memory")).await;
    let is_claimed =
        async || stage.lanes.refill_requests().await.is_empty() && stage.lanes.demand().await.expect("memory").is_empty();
    until("it is claimed again", is_claimed).await;
    stage.store.set_dispatches(DispatchFault::Go);
    let assignment = worker.take().await;
    worker.report(&assignment, done()).await;
    let ended = stage.until(&id, |job| job.state() == JobState::Succeeded).await;
    assert_eq!(ended.life.attempt.no, 1);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_gives_back_what_waited() {
    let UnderWay { stage, jobs, workers } = UnderWay::new().await;
    let other = stage.beside();
    stage.stop().await;
    drop(workers);
    other.store.set_dispatches(DispatchFault::Go);
    let mut worker = Hand::attach(&other.engine, "third", &["t"], 2).await;
    for assignment in &worker.take_many(2).await {
        worker.report_late(assignment, done()).await;
    }
    for id in &jobs {
        other.until(id, |job| job.state() == JobState::Succeeded).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_waited_for_too_long_is_dispatched_by_the_clock_of_then() {
    let mut under_way = UnderWay::new().await;
    let held = Instant::now();
    until("time passes", async || held.elapsed() > Duration::from_secs(6)).await;
    let before = under_way.stage.clock().now();
    under_way.go_on();
    let sent = under_way.workers[1].take().await;
    let binding = sent.job.life.attempt.binding.as_ref().expect("dispatched");
    assert!(binding.dispatched_at >= before, "{:?} before {before:?}", binding.dispatched_at);
    assert_eq!(sent.job.life.attempt.no, 1);
}

#[tokio::test(start_paused = true)]
async fn who_came_back_with_other_topics_is_not_sent_what_was_claimed_for_the_old_ones() {
    let stage = Stage::new();
    let _before = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.lanes_slow.send_replace(true);
    let id = stage.submit(job("t")).await;
    until("it is claimed", async || stage.lanes_slow.receiver_count() == 1).await;
    let mut after = Hand::attach(&stage.engine, "w", &["u"], 1).await;
    let mut other = Hand::attach(&stage.engine, "other", &["t"], 1).await;
    stage.lanes_slow.send_replace(false);
    let went = Instant::now();
    assert_eq!(other.take().await.job.request.job_id, id);
    assert!(went.elapsed() < Duration::from_millis(100), "at once, not with the next look: {:?}", went.elapsed());
    assert!(after.is_quiet());
}

/// An attempt keeps its token until it is dispatched: one that two processes claimed has one token in both.
#[tokio::test(start_paused = true)]
async fn what_is_not_committed_frees_nothing_of_what_another_process_dispatched() {
    let slow = Stage::shared();
    slow.pools("topics: {t: p}\npools: {p: {}}\nlimits: [{name: two, per: [topic], max_concurrent: 2}]\n").await;
    let fast = slow.beside();
    slow.store.set_dispatches(DispatchFault::WaitFor("slow".into()));
    let _idle = Hand::attach_as(&slow.engine, "slow", &Kind::of("p", &["t"], 1)).await;
    let id = slow.submit(job("t")).await;
    until("it is about to be committed", async || slow.store.held_dispatches() == 1).await;
    slow.lanes.rebuild(slow.store.ready_lanes().await.expect("memory")).await;
    let mut worker = Hand::attach_as(&fast.engine, "fast", &Kind::of("p", &["t"], 1)).await;
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, id);
    // Long enough for the other one to look at what it has on its way.
    let taken = Instant::now();
    until("time passes", async || taken.elapsed() > Duration::from_secs(3)).await;
    let token = &assignment.job.life.attempt.token;
    assert!(slow.lanes.holding().await.expect("memory").contains(token), "it is at work and counts");
    slow.store.set_dispatches(DispatchFault::Go);
    worker.start(&assignment).await;
    worker.report(&assignment, done()).await;
    slow.until(&id, |job| job.state() == JobState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_cannot_commit_leaves_jobs_to_others() {
    let cut_off = Stage::shared();
    let other = cut_off.beside();
    cut_off.store.set_dispatches(DispatchFault::FailFor("cut-off".into()));
    let mut idle = Hand::attach(&cut_off.engine, "cut-off", &["t"], 50).await;
    let mut worker = Hand::attach(&other.engine, "w", &["t"], 50).await;
    for _ in 0..20 {
        let (id, asked) = (cut_off.submit(job("t")).await, Instant::now());
        assert_eq!(worker.take().await.job.request.job_id, id);
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        worker.beat().await;
        idle.beat().await;
    }
}

/// What is counted of the failures of a loop.
fn failures(stage: &Stage, name: &str) -> f64 {
    stage.number(&format!("lockgate_reaper_list_errors_total{{loop=\"{name}\"}}"))
}

#[tokio::test(start_paused = true)]
async fn dispatches_and_starts_that_cannot_be_stored_are_counted() {
    let stage = Stage::new();
    assert_eq!(["dispatch", "sending", "starts"].map(|name| failures(&stage, name)), [0.0; 3]);
    stage.store.set_dispatches(DispatchFault::FailFor("w".into()));
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    until("dispatches that fail are counted", async || failures(&stage, "sending") > 1.0).await;
    assert!(stage.number("lockgate_scheduler_decisions_total{decision=\"dispatch_failed\"}") > 1.0);
    stage.store.set_dispatches(DispatchFault::Go);
    stage.store.fail_starts(true);
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    until("starts that fail are counted", async || failures(&stage, "starts") > 1.0).await;
    stage.store.fail_starts(false);
    stage.until(&id, |job| job.state() == JobState::Running).await;
}
