//! Clocks that show a wrong time for a while: nothing waits for it, nothing ends by it, and it is said.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::{Json, NewJob};
use lockgate_core::time::Timestamp;
use lockgate_engine::{ProblemKind, Settings};
use lockgate_ports::{Clock, GuardedClock, Steady};
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, job, pass};

const HOUR: i64 = 3_600_000;
const SETTLE: Duration = Duration::from_secs(600);

/// A clock that the test sets.
pub(crate) struct Wall {
    began: Instant,
    wrong: AtomicI64,
}

impl Wall {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), wrong: AtomicI64::new(0) })
    }

    pub(crate) fn set(&self, wrong: i64) {
        self.wrong.store(wrong, Ordering::SeqCst);
    }

    /// As the process has it that starts now.
    pub(crate) fn guarded(self: &Arc<Self>) -> Arc<dyn Clock> {
        self.guarded_for(SETTLE)
    }

    pub(crate) fn guarded_for(self: &Arc<Self>, settle: Duration) -> Arc<dyn Clock> {
        Arc::new(GuardedClock::new(self.clone(), Arc::new(Running(self.began)), settle, None))
    }
}

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        let right = Timestamp::from_millis(1_767_225_600_000) + self.began.elapsed();
        Timestamp::from_millis(right.as_millis() + self.wrong.load(Ordering::SeqCst))
    }
}

struct Running(Instant);

impl Steady for Running {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

async fn findings(stage: &Stage) -> Vec<(ProblemKind, String)> {
    stage.engine.health().await.findings.into_iter().map(|finding| (finding.trouble, finding.detail)).collect()
}

/// Twice as many seconds pass, in which the worker says that it is there.
async fn beating(worker: &mut Hand, times: u32) {
    for _ in 0..times {
        pass(Duration::from_secs(2)).await;
        worker.beat().await;
    }
}

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

/// What is asked of an installation whose clocks jump, whichever it is: by `jump` to the wrong time, and back.
async fn nothing_is_parked(stage: &Stage, jump: impl Fn(i64)) {
    pass(Duration::from_secs(30)).await;
    let in_time = stage.submit(NewJob { deadline_ms: Some(1_800_000), ..job("unserved") }).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 4).await;
    jump(HOUR);
    let plain = stage.submit(job("t")).await;
    let tried = worker.take().await;
    worker.start(&tried).await;
    let again = Some(Duration::from_secs(20));
    worker.report(&tried, Outcome::FailedRetryable { error: "not yet".into(), code: None, retry_after: again }).await;
    beating(&mut worker, 5).await;
    assert_eq!(findings(stage).await.iter().map(|(trouble, _)| *trouble).collect::<Vec<_>>(), [ProblemKind::ClockJumped]);
    assert_eq!(stage.job(&in_time).await.state(), JobState::Scheduled, "its deadline is half an hour away");
    jump(0);
    let later = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    worker.report(&assignment, done()).await;
    beating(&mut worker, 7).await;
    // The retry was asked for in twenty seconds, of which ten were wrong.
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    worker.report(&assignment, done()).await;
    for id in [&plain, &later] {
        stage.until(id, |job| job.state() == JobState::Succeeded).await;
    }
    assert_eq!(stage.job(&plain).await.life.attempt.no, 2);
    let found = findings(stage).await;
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(stage.job(&in_time).await.state(), JobState::Scheduled);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_an_hour_ahead_for_ten_seconds_parks_nothing() {
    let wall = Wall::new();
    let clock = wall.guarded();
    let stage = Stage::with_clocks(Settings::default(), Arc::default(), clock.clone(), clock);
    nothing_is_parked(&stage, |wrong| wall.set(wrong)).await;
    assert!((stage.number("lockgate_clock_jumps_total{clock=\"machine\"}") - 1.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_clock_is_an_hour_ahead_for_ten_seconds_parks_nothing() {
    let (own, stores) = (Wall::new(), Wall::new());
    let settings = Settings { exclusive_store: false, ..Settings::default() };
    let stage = Stage::with_clocks(settings, Arc::default(), stores.clone(), own.guarded());
    nothing_is_parked(&stage, |wrong| stores.set(wrong)).await;
    assert!((stage.number("lockgate_clock_jumps_total{clock=\"store\"}") - 1.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_kept_at_its_times_although_clocks_jump() {
    for shared in [false, true] {
        let (own, stores) = (Wall::new(), Wall::new());
        let settings = Settings { exclusive_store: !shared, ..Settings::default() };
        let clock = own.guarded();
        let store: Arc<dyn Clock> = if shared { stores.clone() } else { clock.clone() };
        let stage = Stage::with_clocks(settings, Arc::default(), store, clock);
        let text = "version: 1\nschedules:\n  s: {every: 5m, start_at: 2026-01-01T00:05:00Z, job: {topic: t}}\n";
        stage.engine.put_schedules(&caller(), "s.yaml", text).await.expect("a good schedule");
        pass(Duration::from_secs(30)).await;
        for wall in [&own, &stores] {
            wall.set(HOUR);
        }
        pass(Duration::from_secs(10)).await;
        for wall in [&own, &stores] {
            wall.set(0);
        }
        let started = async || stage.engine.slots(&caller(), "s", None, 10).await.expect("listed").items.len();
        assert_eq!(started().await, 0, "shared: {shared}");
        pass(Duration::from_secs(265)).await;
        assert_eq!(started().await, 1, "shared: {shared}");
        pass(Duration::from_secs(300)).await;
        assert_eq!(started().await, 2, "shared: {shared}");
    }
}

/// It cannot know which of the two is right, so nothing is decided by the later one before that has stood.
#[tokio::test(start_paused = true)]
async fn a_start_while_the_stores_clock_is_an_hour_off_says_so_and_keeps_schedules_at_their_times() {
    for (wrong, told) in [(HOUR, "3600.0 s ahead of"), (-HOUR, "3600.0 s behind")] {
        let (own, stores) = (Wall::new(), Wall::new());
        stores.set(wrong);
        let settings = Settings { exclusive_store: false, ..Settings::default() };
        let stage = Stage::with_clocks(settings, Arc::default(), stores.clone(), own.guarded());
        pass(Duration::from_secs(5)).await;
        let found = findings(&stage).await;
        assert_eq!(found.len(), 1, "{found:?}");
        let says = format!("the Store's clock was {told} the clock of this process when it started");
        assert!(found[0].0 == ProblemKind::ClockJumped && found[0].1.starts_with(&says), "{found:?}");
        assert!((stage.number("lockgate_clock_jumps_total{clock=\"store\"}") - 1.0).abs() < f64::EPSILON);
        let text = "version: 1\nschedules:\n  s: {every: 5m, start_at: 2026-01-01T00:05:00Z, job: {topic: t}}\n";
        stage.engine.put_schedules(&caller(), "s.yaml", text).await.expect("a good schedule");
        pass(Duration::from_secs(60)).await;
        assert_eq!(stage.engine.slots(&caller(), "s", None, 10).await.expect("listed").items, [], "{told}");
        stores.set(0);
        pass(Duration::from_secs(240)).await;
        assert_eq!(stage.engine.slots(&caller(), "s", None, 10).await.expect("listed").items.len(), 1, "{told}");
        let found = findings(&stage).await;
        assert!(found.is_empty(), "{found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_stays_wrong_is_followed_and_that_is_told() {
    let wall = Wall::new();
    let clock = wall.guarded();
    let stage = Stage::with_clocks(Settings::default(), Arc::default(), clock.clone(), clock);
    pass(Duration::from_secs(5)).await;
    wall.set(-HOUR);
    pass(Duration::from_secs(60)).await;
    let found = findings(&stage).await;
    assert!(found[0].1.starts_with("the clock of this machine jumped 3600.0 s back, "), "{found:?}");
    assert!((stage.number("lockgate_clock_jump_seconds{clock=\"machine\"}") + 3_600.0).abs() < 1.0);
    pass(SETTLE).await;
    let found = findings(&stage).await;
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(stage.clock().now(), wall.now());
}

#[tokio::test(start_paused = true)]
async fn why_names_the_clock_if_it_was_followed_and_is_right_again() {
    let wall = Wall::new();
    let stage = Stage::with_clocks(Settings::default(), Arc::default(), wall.clone(), wall.clone());
    wall.set(HOUR);
    let id = stage.submit(job("t")).await;
    wall.set(0);
    stage.until_reason(&id, "clock_was_ahead").await;
}

const SLOW: &str = "version: 1\ndag: slow\nnodes:\n  wait: { delay: 90m }\n";

/// A job that is due at once, one with half an hour to end in, a run that waits for 90 minutes, and a schedule.
async fn stamped(stage: &Stage) -> (JobId, JobId, RunId) {
    let plain = stage.submit(job("t")).await;
    let in_time = stage.submit(NewJob { deadline_ms: Some(1_800_000), ..job("unserved") }).await;
    stage.put(SLOW).await;
    let run = stage.begin("slow", serde_json::json!({})).await;
    let text = "version: 1\nschedules:\n  s: {every: 5m, job: {topic: unserved}}\n";
    stage.engine.put_schedules(&caller(), "s.yaml", text).await.expect("a good schedule");
    (plain, in_time, run)
}

/// None of it waits for the hour that the clock was ahead.
async fn is_brought_back(stage: &Stage, (plain, in_time, run): &(JobId, JobId, RunId)) {
    let now = stage.clock().now();
    let soon = |at: Timestamp, most: u64| at <= now + Duration::from_secs(most);
    let job = stage.job(plain).await;
    assert!(soon(job.life.due_at, 0), "{} at {now}", job.life.due_at);
    let deadline = stage.job(in_time).await.life.deadline_at.expect("it has one");
    assert!(soon(deadline, 1_800) && deadline > now + Duration::from_secs(1_200), "{deadline} at {now}");
    let wakes = stage.view(run).await.run.head.wakes_at.expect("it waits");
    assert!(soon(wakes, 5_400) && wakes > now + Duration::from_secs(4_000), "{wakes} at {now}");
    let schedule = stage.engine.schedule(&caller(), "s").await.expect("there");
    assert!(soon(schedule.schedule.wakes_at.expect("it wakes"), 300), "{schedule:?}");
    for (kind, least) in [("job", 2.0), ("run", 1.0), ("schedule", 1.0)] {
        let moved = stage.number(&format!("lockgate_clock_restamped_total{{kind=\"{kind}\"}}"));
        assert!(moved >= least, "{kind}: {moved}");
    }
    let mut worker = Hand::attach(&stage.engine, "late", &["t"], 1).await;
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, *plain);
}

#[tokio::test(start_paused = true)]
async fn what_a_followed_clock_stamped_is_brought_back_when_the_time_is_right_again() {
    let wall = Wall::new();
    let clock = wall.guarded();
    let stage = Stage::with_clocks(Settings::default(), Arc::default(), clock.clone(), clock);
    pass(Duration::from_secs(5)).await;
    wall.set(HOUR);
    pass(SETTLE + Duration::from_secs(5)).await;
    assert_eq!(stage.clock().now(), wall.now(), "it is believed by now");
    // The clock is set right at once, and that counts as late as any jump.
    wall.set(0);
    pass(SETTLE - Duration::from_secs(60)).await;
    let parked = stamped(&stage).await;
    pass(Duration::from_secs(70)).await;
    assert_eq!(stage.clock().now(), wall.now());
    is_brought_back(&stage, &parked).await;
}

#[tokio::test(start_paused = true)]
async fn a_start_with_the_right_clock_says_that_stamps_lie_ahead_and_brings_them_back_when_it_has_stood() {
    let wall = Wall::new();
    wall.set(HOUR);
    let stage = Stage::with_clocks(Settings::default(), Arc::default(), wall.clone(), wall.guarded());
    pass(Duration::from_secs(5)).await;
    let parked = stamped(&stage).await;
    wall.set(0);
    let stage = stage.crash_with(wall.guarded(), Settings::default());
    pass(Duration::from_secs(5)).await;
    let found = findings(&stage).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].0 == ProblemKind::ClockJumped && found[0].1.starts_with("the Store has stamps that were 35"),
        "{found:?}"
    );
    stage.until_reason(&parked.0, "clock_was_ahead").await;
    assert!((stage.number("lockgate_clock_jumps_total{clock=\"stamps\"}") - 1.0).abs() < f64::EPSILON);
    pass(SETTLE).await;
    is_brought_back(&stage, &parked).await;
    let found = findings(&stage).await;
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_behind_moves_nothing_if_it_is_corrected_or_the_store_knows_better() {
    for shared in [false, true] {
        let (own, stores) = (Wall::new(), Wall::new());
        let settings = || Settings { exclusive_store: !shared, ..Settings::default() };
        let store: Arc<dyn Clock> = if shared { stores.clone() } else { own.clone() };
        let stage = Stage::with_clocks(settings(), Arc::default(), store, own.guarded());
        pass(Duration::from_secs(5)).await;
        let id = stage.submit(NewJob { deadline_ms: Some(7_200_000), ..job("unserved") }).await;
        let before = stage.job(&id).await;
        own.set(-HOUR);
        let stage = stage.crash_with(own.guarded(), settings());
        pass(Duration::from_secs(30)).await;
        if !shared {
            // A machine that had no time when it started, and asked for it.
            own.set(0);
        }
        pass(SETTLE * 2).await;
        assert_eq!(stage.job(&id).await.life, before.life, "shared: {shared}");
        assert!(stage.number("lockgate_clock_restamped_total{kind=\"job\"}").abs() < f64::EPSILON);
    }
}
