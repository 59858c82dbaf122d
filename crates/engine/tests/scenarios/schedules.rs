//! Schedules: what starts when, what becomes of times that could not be kept, and what survives.
//!
//! Most jobs here have no worker: one that waits for one is at work as far as its schedule can tell.

use std::time::Duration;

use lockgate_core::audit::AuditAction;
use lockgate_core::dag::RunState;
use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome as Reported};
use lockgate_core::request::{Caller, Json};
use lockgate_core::schedule::{Schedule, ScheduleNews, Slot, SlotOutcome, Target};
use lockgate_core::time::Timestamp;
use lockgate_engine::{ApiError, AppliedAs, AppliedSchedule, BackfillSpan};
use lockgate_ports::{AuditStore, JobStore, ScheduleChange, ScheduleStore};
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, pass, somebody};

const PATIENCE: Duration = Duration::from_secs(60);
const MINUTE: Duration = Duration::from_secs(60);
/// When every stage begins, and a minute of it.
const START: i64 = 1_767_225_600_000;

fn minute(number: i64) -> i64 {
    START + number * 60_000
}

impl Stage {
    /// Applies one schedule called `s` that starts a job.
    async fn schedule(&self, lines: &str) {
        self.put_schedule(&format!("{lines}, job: {{topic: job.s}}")).await;
    }

    async fn put_schedule(&self, lines: &str) -> Vec<AppliedSchedule> {
        let text = format!("version: 1\nschedules:\n  s: {{{lines}}}\n");
        self.engine.put_schedules(&caller(), "s.yaml", &text).await.expect("a good schedule")
    }

    /// By nominal time, the earliest first.
    async fn slots(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.engine.slots(&caller(), "s", cursor, 1_000).await.expect("listed");
            slots.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                slots.reverse();
                return slots;
            }
        }
    }

    async fn until_slots(&self, wanted: impl Fn(&[Slot]) -> bool) -> Vec<Slot> {
        let deadline = Instant::now() + PATIENCE;
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        loop {
            let slots = self.slots().await;
            if wanted(&slots) {
                return slots;
            }
            assert!(Instant::now() < deadline, "it did not happen: {slots:?}");
            tick.tick().await;
        }
    }

    async fn until_outcomes(&self, wanted: &[(i64, SlotOutcome)]) -> Vec<Slot> {
        self.until_slots(|slots| outcomes(slots) == wanted).await
    }

    async fn head(&self) -> Schedule {
        self.engine.schedule(&caller(), "s").await.expect("there").schedule
    }

    async fn end(&self, slot: &Slot) {
        self.engine.cancel(&caller(), &job_of(slot), None).await.expect("ended");
    }

    async fn jobs_of(&self, slots: &[Slot]) -> Vec<JobState> {
        let ids: Vec<JobId> = slots.iter().filter(|slot| slot.target.is_some()).map(job_of).collect();
        let jobs = self.store.load(&ids).await.expect("read");
        jobs.into_iter().map(|job| job.expect("there").state()).collect()
    }
}

fn outcomes(slots: &[Slot]) -> Vec<(i64, SlotOutcome)> {
    slots.iter().map(|slot| (slot.key.nominal.as_millis(), slot.outcome)).collect()
}

fn reasons(slots: &[Slot]) -> Vec<&str> {
    slots.iter().filter_map(|slot| slot.reason.as_deref()).collect()
}

fn job_of(slot: &Slot) -> JobId {
    match &slot.target {
        Some(Target::Job(id)) => id.clone(),
        other => panic!("{other:?} is no job"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_starts_its_job_at_the_time() {
    let stage = Stage::new();
    let applied = stage.put_schedule("every: 1m, job: {topic: job.s, payload: {at: \"${nominal}\"}}").await;
    assert_eq!(applied, [AppliedSchedule { name: "s".into(), revision: 1, changed: AppliedAs::Created }]);
    pass(MINUTE - Duration::from_millis(1)).await;
    assert!(stage.slots().await.is_empty());
    let started = stage.until_outcomes(&[(minute(1), SlotOutcome::Started)]).await;
    let taken = Hand::attach(&stage.engine, "w", &["job.s"], 1).await.take().await;
    assert_eq!(taken.job.request.job_id, job_of(&started[0]));
    assert_eq!(taken.job.request.payload.as_str(), r#"{"at":"2026-01-01T00:01:00+00:00"}"#);
    assert!(started[0].decided_at.since(Timestamp::from_millis(minute(1))) < Duration::from_millis(50), "not by a tick");
    assert!(stage.number("lockgate_schedule_slots_total") >= 2.0);
    assert!((stage.number("lockgate_schedule_lag_seconds_count") - 1.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_due_and_start_neither_loses_nor_doubles() {
    let stage = Stage::new();
    stage.schedule("every: 1m, overlap: allow").await;
    let head = stage.head().await;
    stage.kill();
    // Somebody decides, and dies before anything is begun.
    let now = Timestamp::from_millis(minute(1));
    let turn = head.turn(&ScheduleNews { now, keep: MINUTE, ..ScheduleNews::default() }).expect("due");
    let (schedule, fresh, changed) = (turn.schedule, turn.fresh, turn.changed);
    let due = fresh.clone();
    let change = ScheduleChange { schedule, gone: false, fresh, changed, audit: Vec::new() };
    stage.store.turn(vec![change]).await.expect("stored")[0].expect("taken");
    let stage = stage.crash(MINUTE + Duration::from_secs(1)).await;
    let slots = stage.until_outcomes(&[(minute(1), SlotOutcome::Started)]).await;
    assert_eq!(slots[0].target, due[0].target);
    assert_eq!(stage.jobs_of(&slots).await.len(), 1);
}

/// An hour in which nobody is there, with a schedule of every ten minutes.
async fn after_an_hour(misfire: &str) -> Vec<(i64, SlotOutcome)> {
    let stage = Stage::new();
    stage.schedule(&format!("every: 10m, overlap: allow, misfire: {misfire}")).await;
    let stage = stage.crash(65 * MINUTE).await;
    pass(Duration::from_secs(2)).await;
    let slots = stage.slots().await;
    assert_eq!(stage.jobs_of(&slots).await.len(), slots.iter().filter(|slot| slot.outcome == SlotOutcome::Started).count());
    outcomes(&slots)
}

#[tokio::test(start_paused = true)]
async fn after_an_hour_down_the_misfire_policy_says_what_is_made_up_for() {
    let (missed, started) = (SlotOutcome::Missed, SlotOutcome::Started);
    assert_eq!(after_an_hour("skip").await, [(minute(60), missed)]);
    assert_eq!(after_an_hour("latest").await, [(minute(50), missed), (minute(60), started)]);
    let all: Vec<_> = (1..=6).map(|ten| (minute(ten * 10), started)).collect();
    assert_eq!(after_an_hour("all").await, all);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_missed_times_are_exactly_what_the_policy_says() {
    let stage = Stage::new();
    stage.schedule("every: 1m, overlap: allow, misfire: all, misfire_window: 1000m").await;
    let stage = stage.crash(Duration::from_secs(1_200 * 60 + 30)).await;
    let slots = stage.until_slots(|slots| slots.len() == 1_001 && slots[1_000].outcome == SlotOutcome::Started).await;
    assert_eq!(slots[0].outcome, SlotOutcome::Missed);
    assert_eq!(reasons(&slots), ["200 times from 2026-01-01T00:01:00+00:00 to 2026-01-01T03:20:00+00:00 were missed"]);
    assert_eq!(slots[1].key.nominal.as_millis(), minute(201));
    assert_eq!(stage.jobs_of(&slots).await.len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn times_may_overlap_or_not_as_the_schedule_says() {
    let (started, skipped, queued) = (SlotOutcome::Started, SlotOutcome::Skipped, SlotOutcome::Queued);
    for (overlap, second) in [("allow", started), ("skip", skipped), ("queue", queued)] {
        let stage = Stage::new();
        stage.schedule(&format!("every: 1m, overlap: {overlap}")).await;
        let base = stage.head().await.done_until.as_millis();
        pass(2 * MINUTE + Duration::from_secs(1)).await;
        let slots = stage.slots().await;
        assert_eq!(outcomes(&slots), [(base + 60_000, started), (base + 120_000, second)], "{overlap}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_the_queue_starts_as_soon_as_the_one_before_it_ends() {
    let stage = Stage::new();
    stage.schedule("every: 1m, overlap: queue").await;
    pass(2 * MINUTE + Duration::from_secs(10)).await;
    let slots = stage.until_outcomes(&[(minute(1), SlotOutcome::Started), (minute(2), SlotOutcome::Queued)]).await;
    stage.end(&slots[0]).await;
    let ended = Instant::now();
    stage.until_outcomes(&[(minute(1), SlotOutcome::Started), (minute(2), SlotOutcome::Started)]).await;
    assert!(ended.elapsed() < Duration::from_millis(100), "not by looking again: {:?}", ended.elapsed());
}

#[tokio::test(start_paused = true)]
async fn replace_cancels_what_is_at_work_and_starts_the_next() {
    let stage = Stage::new();
    stage.schedule("every: 1m, overlap: replace").await;
    pass(2 * MINUTE + Duration::from_secs(1)).await;
    let slots = stage.until_outcomes(&[(minute(1), SlotOutcome::Started), (minute(2), SlotOutcome::Started)]).await;
    assert_eq!(stage.jobs_of(&slots).await, [JobState::Cancelled, JobState::Scheduled]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_policy_denies_was_started_and_is_denied() {
    let stage = Stage::new();
    let rule = "{id: no, match: {topics: ['job.s']}, decision: deny, reason: not here}";
    stage.apply(&format!("version: 1\ndefault: {{decision: allow, reason: fine}}\nrules: [{rule}]")).await;
    stage.schedule("every: 1m").await;
    pass(MINUTE).await;
    let slots = stage.until_outcomes(&[(minute(1), SlotOutcome::Started)]).await;
    assert_eq!(stage.jobs_of(&slots).await, [JobState::Denied], "governance ruled; the schedule did its part");
}

const DAG: &str = "version: 1\ndag: d\nparams: {day: text}\nnodes: {a: {topic: job.a, payload: \"${params.day}\"}}";

#[tokio::test(start_paused = true)]
async fn a_schedule_starts_runs_of_the_newest_version_of_a_dag() {
    let stage = Stage::new();
    stage.engine.put_dag(&caller(), "d.yaml", DAG).await.expect("stored");
    stage.put_schedule("every: 1m, dag: {name: d, params: {day: \"${nominal}\"}}").await;
    pass(MINUTE).await;
    let slots = stage.until_outcomes(&[(minute(1), SlotOutcome::Started)]).await;
    let Some(Target::Run(id)) = &slots[0].target else { panic!("no run: {slots:?}") };
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a"], 1).await;
    let node = worker.take().await;
    assert_eq!(node.job.request.payload.as_str(), "\"2026-01-01T00:01:00+00:00\"");
    worker.report(&node, Reported::Succeeded { result: Json::null() }).await;
    pass(Duration::from_secs(1)).await;
    let run = stage.engine.run_head(&caller(), id).await.expect("there");
    assert_eq!((run.state, run.actor.as_str()), (RunState::Succeeded, "tester"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_begin_is_refused_with_the_reason() {
    let stage = Stage::new();
    stage.put_schedule("every: 1m, dag: {name: d}").await;
    pass(MINUTE).await;
    let slots = stage.until_outcomes(&[(minute(1), SlotOutcome::Refused)]).await;
    assert_eq!(reasons(&slots), ["there is no DAG \"d\""]);
    stage.engine.put_dag(&caller(), "d.yaml", DAG).await.expect("stored");
    pass(MINUTE).await;
    let slots = stage.until_slots(|slots| slots.len() == 2 && slots[1].outcome == SlotOutcome::Refused).await;
    let expected = "DAG \"d\" refused its parameters: params.day: must be given: text";
    assert_eq!(slots[1].reason.as_deref(), Some(expected));
}

#[tokio::test(start_paused = true)]
async fn a_backfill_keeps_to_its_concurrency_and_goes_on_when_something_ends() {
    let stage = Stage::new();
    stage.schedule("every: 1h, overlap: allow").await;
    let hour = |number: i64| Timestamp::from_millis(START - number * 3_600_000);
    let span = BackfillSpan { from: hour(5), to: hour(1), concurrency: 2 };
    stage.engine.backfill_schedule(&caller(), "s", span.clone()).await.expect("begun");
    for done in 0..5 {
        let there = (done + 2).min(5);
        let slots = stage
            .until_slots(|slots| slots.len() == there && slots.iter().all(|slot| slot.outcome == SlotOutcome::Started))
            .await;
        pass(Duration::from_secs(3)).await;
        assert_eq!(stage.slots().await.len(), there, "two at a time");
        stage.end(&slots[done]).await;
    }
    pass(Duration::from_secs(1)).await;
    assert!(stage.head().await.backfills.is_empty());
    let id = stage.engine.backfill_schedule(&caller(), "s", span).await.expect("begun again");
    stage.engine.cancel_backfill(&caller(), "s", &id).await.expect("cancelled");
    assert!(matches!(stage.engine.cancel_backfill(&caller(), "s", &id).await, Err(ApiError::NoSuch { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_paused_schedule_starts_only_what_it_is_told_to() {
    let stage = Stage::new();
    stage.schedule("every: 1m, overlap: allow").await;
    stage.engine.pause_schedule(&caller(), "s").await.expect("paused");
    pass(5 * MINUTE + Duration::from_secs(1)).await;
    assert!(stage.slots().await.is_empty());
    let slot = stage.engine.trigger_schedule(&caller(), "s").await.expect("triggered");
    assert_eq!((&*slot.key.series.0, slot.outcome), ("manual", SlotOutcome::Due));
    stage.until_slots(|slots| slots.len() == 1 && slots[0].outcome == SlotOutcome::Started).await;
    stage.engine.resume_schedule(&caller(), "s").await.expect("resumed");
    let slots = stage.slots().await;
    assert_eq!(slots[0].outcome, SlotOutcome::Missed);
    assert_eq!(reasons(&slots), ["5 times from 2026-01-01T00:01:00+00:00 to 2026-01-01T00:05:00+00:00 fell into a pause"]);
    let trail = stage.store.audit(0, 100).await.expect("read");
    let actions: Vec<AuditAction> = trail.iter().map(|row| row.entry.action).collect();
    let told = [
        AuditAction::ScheduleStored,
        AuditAction::SchedulePaused,
        AuditAction::ScheduleTriggered,
        AuditAction::ScheduleResumed,
    ];
    assert_eq!(actions, told);
}

#[tokio::test(start_paused = true)]
async fn two_engines_on_one_store_start_everything_once() {
    let one = Stage::shared();
    let other = one.beside();
    one.schedule("every: 1m, overlap: allow").await;
    pass(3 * MINUTE + Duration::from_secs(2)).await;
    let started: Vec<_> = (1..=3).map(|number| (minute(number), SlotOutcome::Started)).collect();
    let slots = other.until_outcomes(&started).await;
    assert_eq!(other.jobs_of(&slots).await.len(), 3);
    one.kill();
    pass(2 * MINUTE).await;
    other.until_slots(|slots| slots.len() == 5 && slots[4].outcome == SlotOutcome::Started).await;
}

#[tokio::test(start_paused = true)]
async fn a_file_again_changes_nothing_and_an_edit_takes_over() {
    let stage = Stage::new();
    stage.schedule("every: 1m").await;
    let again = stage.put_schedule("every: 1m, job: {topic: job.s}").await;
    assert_eq!((again[0].revision, again[0].changed), (1, AppliedAs::Unchanged));
    let edited = stage.put_schedule("every: 1h, job: {topic: job.s}").await;
    assert_eq!((edited[0].revision, edited[0].changed), (2, AppliedAs::Updated));
    let view = stage.engine.schedule(&caller(), "s").await.expect("there");
    let upcoming: Vec<i64> = view.upcoming.iter().map(|time| time.as_millis()).collect();
    assert_eq!(upcoming, (1..=5).map(|hour| minute(hour * 60)).collect::<Vec<_>>());
    let stranger = Caller::new("other", "eve");
    assert!(matches!(stage.engine.schedule(&stranger, "s").await, Err(ApiError::NoSuch { .. })));
    assert!(stage.engine.schedules(&stranger, None, 10).await.expect("listed").is_empty());
    assert!(matches!(stage.engine.pause_schedule(&stranger, "s").await, Err(ApiError::NoSuch { .. })));
    assert!(matches!(stage.engine.slots(&stranger, "s", None, 10).await, Err(ApiError::NoSuch { .. })));
    assert!(stage.engine.slots(&caller(), "s", None, 10).await.is_ok(), "it is known, due or not");
}

#[tokio::test(start_paused = true)]
async fn a_removed_schedule_starts_nothing_and_its_successor_other_things() {
    let stage = Stage::new();
    stage.schedule("every: 1m, overlap: queue").await;
    pass(2 * MINUTE + Duration::from_secs(1)).await;
    stage.engine.remove_schedule(&somebody("bob"), "s").await.expect("removed");
    let slots = stage.until_outcomes(&[(minute(1), SlotOutcome::Started), (minute(2), SlotOutcome::Skipped)]).await;
    assert_eq!(reasons(&slots), ["the schedule was removed"]);
    pass(2 * MINUTE).await;
    assert_eq!(stage.slots().await.len(), 2);
    stage.schedule("every: 1m, overlap: allow").await;
    pass(MINUTE).await;
    stage.until_slots(|slots| slots.len() == 3 && slots[2].outcome == SlotOutcome::Started).await;
}

#[tokio::test(start_paused = true)]
async fn thousands_that_are_due_in_one_second_all_start() {
    let stage = Stage::new();
    let lines: String = (0..2_500).map(|n| format!("  s{n}: {{every: 1m, job: {{topic: job.s}}}}\n")).collect();
    let text = format!("version: 1\nschedules:\n{lines}");
    assert_eq!(stage.engine.put_schedules(&caller(), "s.yaml", &text).await.expect("stored").len(), 2_500);
    pass(MINUTE + Duration::from_secs(1)).await;
    assert!((stage.number("lockgate_tasks_enqueued_total") - 2_500.0).abs() < f64::EPSILON);
    assert!((stage.number("lockgate_schedule_lag_seconds_count") - 2_500.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn what_others_ring_for_does_not_put_times_off() {
    let stage = Stage::shared();
    let noisy = stage.beside();
    stage.schedule("every: 1m").await;
    // Each submit rings.
    for _ in 0..700 {
        noisy.submit(super::stage::job("other")).await;
        pass(Duration::from_millis(100)).await;
    }
    let slots = stage.slots().await;
    assert_eq!(outcomes(&slots), [(minute(1), SlotOutcome::Started)], "{slots:?}");
}
