//! Schedules of a cluster: one process turns them, the work ends at another, and what waits for that end starts at once.

use std::time::Duration;

use lockgate_core::job::Outcome as Reported;
use lockgate_core::request::Json;
use lockgate_core::schedule::{Slot, SlotOutcome, Target};
use lockgate_core::time::Timestamp;
use lockgate_engine::{BackfillSpan, Roles, Settings};
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, pass};

const WAITING: usize = 16;
/// A look without a hint comes after one second; all of them together must not take as long as two.
const DRAINED_WITHIN: Duration = Duration::from_millis(1_500);
const LOOKED_AGAIN: Duration = Duration::from_millis(1_500);

/// The process that turns schedules, and a gateway beside it that holds the workers and takes the calls.
async fn cluster(overlap: &str) -> (Stage, Stage) {
    let turning = Stage::shared();
    let roles = Roles { gateway: true, scheduler: true, orchestrator: false };
    let gateway = turning.beside_with(Settings { roles, ..Settings::default() });
    let text = format!(
        "version: 1\nschedules:\n  s: {{every: 1d, start_at: 2026-06-01T00:00:00Z, overlap: {overlap}, job: {{topic: job.s}}}}\n"
    );
    gateway.engine.put_schedules(&caller(), "s.yaml", &text).await.expect("a good schedule");
    // The first look of the turning process is over: from now on it sleeps until its next tick.
    tokio::time::sleep(Duration::from_millis(100)).await;
    (turning, gateway)
}

async fn slots(stage: &Stage) -> Vec<Slot> {
    stage.engine.slots(&caller(), "s", None, 1_000).await.expect("listed").items
}

/// Starts, talks and ends, as a worker's job does: each of these rings.
async fn work_off(worker: &mut Hand) {
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    worker.report(&assignment, Reported::Succeeded { result: Json::null() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_drains_without_waiting_for_ticks_when_the_work_ends_at_another_process() {
    let (_turning, gateway) = cluster(&format!("queue, queue: {WAITING}")).await;
    let mut worker = Hand::attach(&gateway.engine, "w", &["job.s"], 1).await;
    let began = Instant::now();
    for _ in 0..WAITING {
        gateway.engine.trigger_schedule(&caller(), "s").await.expect("triggered");
    }
    for _ in 0..WAITING {
        work_off(&mut worker).await;
    }
    assert!(began.elapsed() < DRAINED_WITHIN, "{WAITING} in {:?}", began.elapsed());
    assert_eq!(slots(&gateway).await.iter().filter(|slot| slot.outcome == SlotOutcome::Started).count(), WAITING);
}

#[tokio::test(start_paused = true)]
async fn a_backfill_goes_on_without_waiting_for_ticks_when_the_work_ends_at_another_process() {
    let (_turning, gateway) = cluster("allow").await;
    let mut worker = Hand::attach(&gateway.engine, "w", &["job.s"], 1).await;
    let day = |number: i64| Timestamp::from_millis((20_000 + number) * 86_400_000);
    let span = BackfillSpan { from: day(0), to: day(WAITING as i64 - 1), concurrency: 1 };
    let began = Instant::now();
    gateway.engine.backfill_schedule(&caller(), "s", span).await.expect("begun");
    for _ in 0..WAITING {
        work_off(&mut worker).await;
    }
    assert!(began.elapsed() < DRAINED_WITHIN, "{WAITING} in {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn runs_of_a_queue_drain_without_waiting_for_ticks() {
    let (turning, gateway) = cluster("allow").await;
    gateway.engine.put_dag(&caller(), "d.yaml", "version: 1\ndag: d\nnodes: {a: {topic: job.s}}").await.expect("stored");
    let text = format!(
        "version: 1\nschedules:\n  s: {{every: 1d, start_at: 2026-06-01T00:00:00Z, overlap: queue, queue: {WAITING}, dag: {{name: d}}}}\n"
    );
    gateway.engine.put_schedules(&caller(), "s.yaml", &text).await.expect("a good schedule");
    // A second process that could turn schedules and does not lead.
    let _spare = turning.beside();
    let mut worker = Hand::attach(&gateway.engine, "w", &["job.s"], 1).await;
    let began = Instant::now();
    for _ in 0..WAITING {
        gateway.engine.trigger_schedule(&caller(), "s").await.expect("triggered");
    }
    for _ in 0..WAITING {
        work_off(&mut worker).await;
    }
    assert!(began.elapsed() < DRAINED_WITHIN, "{WAITING} in {:?}", began.elapsed());
}

/// One at work and the rest in line.
async fn in_line(gateway: &Stage, count: usize) {
    for _ in 0..count {
        gateway.engine.trigger_schedule(&caller(), "s").await.expect("triggered");
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_told_while_the_store_was_away_is_looked_at_with_the_next_tick() {
    let (turning, gateway) = cluster("queue, queue: 2").await;
    let mut worker = Hand::attach(&gateway.engine, "w", &["job.s"], 1).await;
    in_line(&gateway, 2).await;
    let first = worker.take().await;
    worker.start(&first).await;
    // After so long, looks without a hint come every fifteen seconds.
    for _ in 0..100 {
        pass(Duration::from_secs(2)).await;
        worker.beat().await;
    }
    turning.store.fail_schedules(true);
    worker.report(&first, Reported::Succeeded { result: Json::null() }).await;
    pass(Duration::from_millis(100)).await;
    turning.store.fail_schedules(false);
    let began = Instant::now();
    worker.take().await;
    assert!(began.elapsed() < Duration::from_secs(2), "the second began after {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_gateway_started_between_two_turns_is_watched_too() {
    let (turning, gateway) = cluster("queue, queue: 3").await;
    let mut worker = Hand::attach(&gateway.engine, "w", &["job.s"], 1).await;
    in_line(&gateway, 3).await;
    let first = worker.take().await;
    worker.start(&first).await;
    turning.store.delay_next_turn(Duration::from_millis(100));
    worker.report(&first, Reported::Succeeded { result: Json::null() }).await;
    pass(Duration::from_millis(10)).await;
    // An order takes the turn of what is due before it is refused, and then there is nothing to ring for.
    gateway.engine.cancel_backfill(&caller(), "s", "none").await.expect_err("there is none");
    pass(Duration::from_millis(200)).await;
    work_off(&mut worker).await;
    let began = Instant::now();
    worker.take().await;
    assert!(began.elapsed() < Duration::from_millis(400), "the third began after {:?}", began.elapsed());
}

/// Triggers come while a backfill is at work, and the worker has room for all of it.
#[tokio::test(start_paused = true)]
async fn beside_a_backfill_never_two_of_a_schedule_are_at_work() {
    const DAYS: usize = 6;
    for overlap in ["skip", "queue, queue: 8", "replace"] {
        let (_turning, gateway) = cluster(overlap).await;
        let mut worker = Hand::attach(&gateway.engine, "w", &["job.s"], 8).await;
        let day = |number: i64| Timestamp::from_millis((20_000 + number) * 86_400_000);
        let span = BackfillSpan { from: day(0), to: day(DAYS as i64 - 1), concurrency: 1 };
        gateway.engine.backfill_schedule(&caller(), "s", span).await.expect("begun");
        let mut in_line = Vec::new();
        for worked in 0..DAYS + 2 {
            let assignment = worker.take().await;
            worker.start(&assignment).await;
            if [0, 3].contains(&worked) {
                gateway.engine.trigger_schedule(&caller(), "s").await.expect("triggered");
            }
            // Longer than it takes to look again without a hint; the worker is heard of meanwhile.
            pass(LOOKED_AGAIN).await;
            worker.beat().await;
            let at_work = at_work(&gateway).await;
            assert_eq!(at_work.len(), 1, "{overlap}, after {worked}: {at_work:?}");
            in_line.push(at_work[0].key.series.is_in_line());
            worker.report_late(&assignment, Reported::Succeeded { result: Json::null() }).await;
        }
        let expected = [false, true, false, false, true, false, false, false];
        assert_eq!(in_line, expected, "{overlap}: a trigger goes before the rest of the backfill");
        pass(LOOKED_AGAIN).await;
        let schedule = gateway.engine.schedule(&caller(), "s").await.expect("there").schedule;
        assert!(schedule.backfills.is_empty() && at_work(&gateway).await.is_empty(), "{overlap}: {schedule:?}");
    }
}

/// Slots of the schedule whose jobs have begun and not ended.
async fn at_work(stage: &Stage) -> Vec<Slot> {
    let mut live = Vec::new();
    for slot in slots(stage).await.into_iter().filter(|slot| slot.outcome == SlotOutcome::Started) {
        if let Some(Target::Job(id)) = &slot.target
            && !stage.job(id).await.state().is_terminal()
        {
            live.push(slot);
        }
    }
    live
}
