//! The lanes go away and come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::job::{Job, JobState, Outcome};
use lockgate_core::lane::LaneKey;
use lockgate_core::request::Json;
use lockgate_engine::{ApiError, ProblemKind};
use lockgate_memory::MemoryLanes;
use lockgate_ports::{
    Adopted, ClaimRequest, Claimed, Condition, Demand, Hold, LaneDepth, LaneLayout, Lanes, LanesAway, LimitView, Refill,
    RefillRequest, Settlement, SnapshotKind, TenantShare,
};

use tokio::sync::watch;
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, caller, job, pass};

/// Lanes that can be out of reach. They hear what is said to them all the same: only their answers are missed. But they follow no
/// new pools then, and whoever asks them to waits until that is clear.
pub(crate) struct Distant {
    pub(crate) lanes: Arc<MemoryLanes>,
    pub(crate) off: Arc<AtomicBool>,
    /// Whether claims are answered only later, and new pools are heard of only then.
    pub(crate) slow: Arc<watch::Sender<bool>>,
    /// Whether they say that they know nothing.
    pub(crate) blank: Arc<AtomicBool>,
    /// Whether they follow later pools than anybody who speaks to them.
    pub(crate) ahead: Arc<AtomicBool>,
}

impl Distant {
    fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    fn ask(&self) -> Result<&MemoryLanes, LanesAway> {
        if self.is_off() { Err(LanesAway("out of reach".into())) } else { Ok(&self.lanes) }
    }
}

#[async_trait]
impl Lanes for Distant {
    async fn adopt(&self, layout: LaneLayout, held: Vec<Hold>) -> Adopted {
        let _ = self.slow.subscribe().wait_for(|slow| !slow).await;
        if self.ahead.load(Ordering::Relaxed) {
            return Adopted::Outdated;
        }
        if self.is_off() {
            pass(Duration::from_secs(2)).await;
            return Adopted::Outdated;
        }
        self.blank.store(false, Ordering::Relaxed);
        self.lanes.adopt(layout, held).await
    }

    async fn condition(&self) -> Condition {
        match () {
            () if self.is_off() => Condition::Away("out of reach".into()),
            () if self.blank.load(Ordering::Relaxed) => Condition::Blank,
            () => Condition::Sound,
        }
    }

    async fn offer(&self, jobs: Vec<Arc<Job>>) {
        self.lanes.offer(jobs).await;
    }

    async fn refill(&self, page: Refill) {
        self.lanes.refill(page).await;
    }

    async fn claim(&self, request: ClaimRequest) -> Claimed {
        if self.is_off() {
            return Claimed::default();
        }
        let claimed = self.lanes.claim(request).await;
        if !claimed.claims.is_empty() {
            let _ = self.slow.subscribe().wait_for(|slow| !slow).await;
        }
        claimed
    }

    async fn settle(&self, settlements: Vec<Settlement>) {
        self.lanes.settle(settlements).await;
    }

    async fn demand(&self) -> Result<Vec<Demand>, LanesAway> {
        self.ask()?.demand().await
    }

    async fn hold(&self, attempts: Vec<Hold>) {
        self.lanes.hold(attempts).await;
    }

    async fn release(&self, attempts: Vec<AttemptToken>) -> bool {
        self.lanes.release(attempts).await
    }

    async fn holding(&self) -> Result<Vec<AttemptToken>, LanesAway> {
        self.ask()?.holding().await
    }

    async fn limits(&self, lane: &LaneKey) -> Vec<LimitView> {
        self.lanes.limits(lane).await
    }

    async fn shares(&self, limit: usize) -> Result<Vec<TenantShare>, LanesAway> {
        self.ask()?.shares(limit).await
    }

    async fn claimed_total(&self) -> Result<Vec<(PoolName, u64)>, LanesAway> {
        self.ask()?.claimed_total().await
    }

    async fn refill_requests(&self) -> Vec<RefillRequest> {
        self.lanes.refill_requests().await
    }

    async fn depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LanesAway> {
        self.ask()?.depths(limit).await
    }

    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>) {
        self.lanes.rebuild(lanes).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lanes_that_are_away_are_not_taken_for_empty_ones() {
    let stage = Stage::new();
    for _ in 0..3 {
        stage.submit(job("unserved")).await;
    }
    pass(Duration::from_secs(5)).await;
    let levels = stage.engine.pool_levels();
    assert_eq!(stage.number("lockgate_pool_queue_depth"), 3.0);
    stage.lanes_off.store(true, Ordering::Relaxed);
    pass(Duration::from_secs(5)).await;
    for told in [stage.engine.queues().await.err(), stage.engine.pools().await.err()] {
        assert!(matches!(told, Some(ApiError::Unavailable(_))), "{told:?}");
    }
    assert_eq!(stage.number("lockgate_pool_queue_depth"), 3.0);
    assert_eq!(stage.number("lockgate_queue_depth"), 3.0);
    let pool = stage.engine.pool(&"default".into()).await.expect("known in any case");
    assert_eq!(pool.waiting, 3);
    assert!(levels.borrow().is_fresh());
    pass(Duration::from_secs(6)).await;
    assert!(!levels.borrow().is_fresh(), "an autoscaler must not go by what was");
    stage.lanes_off.store(false, Ordering::Relaxed);
    pass(Duration::from_secs(3)).await;
    assert!(levels.borrow().is_fresh());
    assert_eq!(stage.engine.queues().await.expect("they are back").lanes[0].waiting, 3);
}

#[tokio::test(start_paused = true)]
async fn while_the_lanes_are_away_nobody_is_let_in_as_if_nothing_waited() {
    let stage = Stage::new();
    stage.quotas("ceilings: {wait: 10s}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let send = async |count: usize| {
        let answers = stage.engine.submit(&caller(), vec![job("t"); count]).await.expect("a good batch");
        answers.iter().filter(|answer| answer.is_ok()).count()
    };
    // Two jobs come a second and one is done, until the queue is too long.
    for second in 0.. {
        assert!(second < 60, "ten seconds at one a second are ten jobs");
        if send(2).await < 2 {
            break;
        }
        let assignment = worker.take().await;
        worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
        worker.beat().await;
        pass(Duration::from_secs(1)).await;
    }
    stage.lanes_off.store(true, Ordering::Relaxed);
    pass(Duration::from_secs(60)).await;
    let let_in = send(20).await;
    assert!(let_in <= 3, "nothing was taken meanwhile, and {let_in} found room");
}

#[tokio::test(start_paused = true)]
async fn tries_to_place_a_job_are_not_counted_anew_after_the_lanes_were_away() {
    let stage = Stage::new();
    stage.pools("topics: {t: p}\npools: {p: {}}\n").await;
    let id = stage.submit(job("unmapped")).await;
    stage.until_tried(&id, 5).await;
    stage.lanes_off.store(true, Ordering::Relaxed);
    pass(Duration::from_secs(10)).await;
    stage.lanes_off.store(false, Ordering::Relaxed);
    let tries = stage.engine.why(&caller(), &id).await.expect("explained").tries;
    assert!(tries.is_some_and(|tries| tries.made >= 5), "{tries:?}");
}

#[tokio::test(start_paused = true)]
async fn heads_are_not_compared_with_lanes_that_are_away() {
    let stage = Stage::new();
    let first = stage.submit(job("unserved")).await;
    stage.submit(job("unserved")).await;
    let first = stage.job(&first).await;
    let waiting = async || {
        let depths = stage.lanes.depths(10).await.expect("they are in memory");
        depths.iter().map(|depth| depth.waiting).sum::<u64>()
    };
    let forget = async || {
        stage.lanes.settle(vec![Settlement::Gone { lane: first.lane(), key: first.ready_key(), claim: None }]).await;
    };
    pass(Duration::from_secs(1)).await;
    assert_eq!(waiting().await, 2);
    forget().await;
    assert_eq!(waiting().await, 1);
    pass(Duration::from_secs(6)).await;
    assert_eq!(waiting().await, 2, "what they lost is said again");
    let rows = stage.number("lockgate_ready_rows_read_total");
    stage.lanes_off.store(true, Ordering::Relaxed);
    forget().await;
    // Shorter than until all lanes of the Store are compared.
    pass(Duration::from_secs(60)).await;
    assert_eq!((waiting().await, stage.number("lockgate_ready_rows_read_total")), (1, rows));
    stage.lanes_off.store(false, Ordering::Relaxed);
    pass(Duration::from_secs(6)).await;
    assert_eq!(waiting().await, 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_freed_while_the_lanes_cannot_say_what_they_count() {
    let stage = Stage::new();
    stage.pools("topics: {t: p}\npools: {p: {tenant_max_concurrent: 1}}\n").await;
    let id = stage.submit(job("t")).await;
    let lane = stage.job(&id).await.lane();
    stage.lanes.hold(vec![Hold { lane, pool: "p".into(), token: "nobody-has-it".into() }]).await;
    // One look, at thirty seconds: from now on it is suspected.
    pass(Duration::from_secs(45)).await;
    stage.lanes_off.store(true, Ordering::Relaxed);
    pass(Duration::from_secs(60)).await;
    assert_eq!(stage.number("lockgate_limits_leaked_total"), 0.0);
    assert_eq!(stage.lanes.holding().await.expect("they are in memory").len(), 1);
    stage.lanes_off.store(false, Ordering::Relaxed);
    // One look again, at two minutes: what was suspected before still is.
    pass(Duration::from_secs(30)).await;
    assert_eq!(stage.number("lockgate_limits_leaked_total"), 1.0);
    assert!(stage.lanes.holding().await.expect("they are in memory").is_empty());
}

/// The Store was away between two reads, and the lanes lost their memory before it was asked again.
#[tokio::test(start_paused = true)]
async fn lanes_are_not_laid_out_by_older_pools_under_a_newer_version() {
    let stage = Stage::shared();
    stage.pools("topics: {t: p}\npools: {p: {}}\n").await;
    stage.store.keep_back(Some(SnapshotKind::PoolStates));
    let new = "topics: {t: p}\npools: {p: {}}\nlimits: [{name: one, per: [topic], max_concurrent: 1}]\n";
    assert!(stage.try_pools(new).await.is_err(), "they are in force, and could not be read");
    stage.lanes_blank.store(true, Ordering::Relaxed);
    // Somebody lays the lanes out again.
    while stage.lanes_blank.load(Ordering::Relaxed) {
        pass(Duration::from_millis(100)).await;
    }
    stage.store.keep_back(None);
    pass(Duration::from_secs(10)).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["t"], 2)).await;
    for _ in 0..2 {
        stage.submit(job("t")).await;
    }
    worker.take().await;
    pass(Duration::from_secs(5)).await;
    assert!(worker.inbound_now().is_none(), "one at a time");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_dispatched_by_pools_that_the_lanes_have_not_heard_of() {
    let stage = Stage::new();
    stage.pools("topics: {t: p}\npools: {p: {}}\n").await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["t"], 2)).await;
    // So that both are claimed at once.
    stage.lanes_off.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        stage.submit(job("t")).await;
    }
    stage.lanes_slow.send_replace(true);
    let meanwhile = async {
        pass(Duration::from_millis(100)).await;
        stage.lanes_off.store(false, Ordering::Relaxed);
        stage.submit(job("t")).await;
        pass(Duration::from_secs(2)).await;
        stage.lanes_slow.send_replace(false);
    };
    let limited = "topics: {t: p}\npools: {p: {}}\nlimits: [{name: one, per: [topic], max_concurrent: 1}]\n";
    tokio::join!(stage.pools(limited), meanwhile);
    worker.take().await;
    pass(Duration::from_secs(3)).await;
    assert!(worker.inbound_now().is_none(), "one at a time");
}

/// What runs goes on without the lanes, so its workers must be let in.
#[tokio::test(start_paused = true)]
async fn workers_are_let_in_at_once_by_a_process_that_starts_while_the_lanes_are_away() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let first = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    let (held, highest) = worker.into_inventory();
    let stage = stage.crash(Duration::from_secs(1)).await;
    // Nothing of the new process has run yet.
    stage.lanes_off.store(true, Ordering::Relaxed);
    for name in ["a", "b", "c", "d"] {
        let came = Instant::now();
        Hand::attach(&stage.engine, name, &["t"], 1).await;
        assert!(came.elapsed() < Duration::from_millis(100), "{name} waited for {:?}", came.elapsed());
        pass(Duration::from_millis(700)).await;
    }
    let came = Instant::now();
    let mut worker = Hand::attach_with(&stage.engine, "w", &["t"], 1, held, highest).await;
    worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
    assert!(came.elapsed() < Duration::from_millis(100), "it waited for {:?}", came.elapsed());
    let ended = stage.job(&first).await;
    assert_eq!((ended.state(), ended.life.attempt.no), (JobState::Succeeded, 1));
    let second = stage.submit(job("t")).await;
    pass(Duration::from_secs(3)).await;
    assert!(worker.inbound_now().is_none(), "nothing is claimed from lanes that nobody laid out");
    stage.lanes_off.store(false, Ordering::Relaxed);
    assert_eq!(worker.take().await.job.request.job_id, second);
}

/// The Store was restored to a time before its latest pools, and Redis was not emptied.
#[tokio::test(start_paused = true)]
async fn lanes_of_pools_that_the_store_does_not_have_are_told_of_until_they_are_emptied() {
    let stage = Stage::shared();
    stage.lanes_ahead.store(true, Ordering::Relaxed);
    let told = async || {
        let findings = stage.engine.health().await.findings;
        findings.iter().any(|finding| finding.trouble == ProblemKind::LanesAhead)
    };
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    pass(Duration::from_secs(5)).await;
    assert!(!told().await, "somebody may have put them in force a moment ago");
    worker.beat().await;
    pass(Duration::from_secs(8)).await;
    assert!(told().await);
    assert!(worker.inbound_now().is_none(), "nothing is claimed");
    stage.lanes_ahead.store(false, Ordering::Relaxed);
    worker.beat().await;
    assert_eq!(worker.take().await.job.request.job_id, id);
    assert!(!told().await);
}
