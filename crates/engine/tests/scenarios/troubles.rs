//! Troubles that move the metric families which nothing moves while all is well.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lockgate_core::breaker::BreakerState;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::{Json, NewJob};
use lockgate_core::time::Timestamp;
use lockgate_model::{DispatchFault, HealthAnswer};
use lockgate_ports::{BreakerMove, Hold, Lanes, StoreError};

use super::numbers::Witness;
use super::stage::{Hand, Kind, Stage, job, pass};

const LIMITED: &str = "topics: {t: p}\npools: {p: {tenant_max_concurrent: 2}}\n";
const FAIL_OPEN: &str = "
version: 1
default: {decision: allow, reason: fine}
output:
  fail_mode: open
  rules:
    - {id: cards, match: {scan: [credit_card]}, decision: quarantine, reason: a card}
";

pub(super) async fn all(witness: &mut Witness) {
    limits_that_count_wrongly(witness).await;
    lanes_that_lost_their_memory(witness).await;
    a_kernel_that_is_away(witness).await;
    rows_that_cannot_be_written_or_read(witness).await;
    a_store_that_is_away(witness).await;
    a_worker_that_does_not_read(witness).await;
    a_run_that_nothing_moves(witness).await;
    a_stranger(witness).await;
}

/// One attempt counts that no worker has, and one does not count that a worker has.
async fn limits_that_count_wrongly(witness: &mut Witness) {
    let stage = Stage::new();
    stage.pools(LIMITED).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 1)).await;
    stage.submit(job("t")).await;
    let assignment = worker.take().await;
    stage.lanes.release(vec![assignment.job.life.attempt.token.clone()]).await;
    let lane = assignment.job.lane();
    stage.lanes.hold(vec![Hold { lane, pool: "p".into(), token: "nobody-has-it".into() }]).await;
    let mut beats = tokio::time::interval(Duration::from_secs(3));
    for _ in 0..30 {
        beats.tick().await;
        worker.beat().await;
    }
    witness.wait_for(&stage, &["lockgate_limits_leaked_total", "lockgate_limits_uncounted_total"]).await;
}

async fn lanes_that_lost_their_memory(witness: &mut Witness) {
    let stage = Stage::shared();
    stage.pools(LIMITED).await;
    stage.lanes_blank.store(true, Ordering::Relaxed);
    witness.wait_for(&stage, &["lockgate_lanes_rebuilt_total"]).await;
}

/// Its breaker opens, and a result comes out unchecked.
async fn a_kernel_that_is_away(witness: &mut Witness) {
    let stage = Stage::new();
    stage.apply(FAIL_OPEN).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.submit(job("t")).await;
    let assignment = worker.take().await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let opened = BreakerMove {
        at: Timestamp::from_millis(1),
        breaker: "input",
        from: BreakerState::Closed,
        to: BreakerState::Open,
        error: Some("no answer".into()),
    };
    stage.breaker_moves.lock().expect("no test panicked").push(opened);
    let card = Json::parse(r#""4111 1111 1111 1111""#).expect("JSON");
    worker.report(&assignment, Outcome::Succeeded { result: card }).await;
    let moved = ["lockgate_output_policy_skipped_total", "lockgate_breaker_state", "lockgate_breaker_transitions_total"];
    witness.wait_for(&stage, &moved).await;
}

/// Their deadlines pass, and they cannot be ended.
async fn rows_that_cannot_be_written_or_read(witness: &mut Witness) {
    let stage = Stage::new();
    let hurried = || NewJob { deadline_ms: Some(2_000), ..job("t") };
    let (refused, spoilt) = (stage.submit(hurried()).await, stage.submit(hurried()).await);
    stage.store.refuse([refused]);
    stage.store.spoil([spoilt]);
    let moved = ["lockgate_store_refused_rows_total", "lockgate_store_unreadable_rows_total", "lockgate_stale_jobs"];
    witness.wait_for(&stage, &moved).await;
}

async fn a_store_that_is_away(witness: &mut Witness) {
    let stage = Stage::new();
    let _worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.store.set_dispatches(DispatchFault::FailFor("w".into()));
    stage.submit(job("t")).await;
    witness.wait_for(&stage, &["lockgate_reaper_list_errors_total"]).await;
    stage.store.set_mood(HealthAnswer::Refuses(StoreError::Unavailable("away".to_owned())));
    witness.wait_for(&stage, &["lockgate_reaping_deferred_seconds"]).await;
}

async fn a_worker_that_does_not_read(witness: &mut Witness) {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 2).await;
    let held = stage.submit(job("t")).await;
    stage.until(&held, |job| job.state() == JobState::Dispatched).await;
    super::unread::beats_until_cut(&stage, &mut worker).await;
    witness.wait_for(&stage, &["lockgate_worker_streams_cut_total"]).await;
}

async fn a_run_that_nothing_moves(witness: &mut Witness) {
    let stage = Stage::new();
    super::orphans::a_run_that_waits_for_nothing(&stage).await;
    // Longer than runs that only wait are left alone.
    pass(Duration::from_secs(300)).await;
    witness.wait_for(&stage, &["lockgate_dag_runs_orphaned_total"]).await;
}

/// The gateway counts here whom it does not let in; its own tests show that it does.
async fn a_stranger(witness: &mut Witness) {
    let stage = Stage::new();
    stage.engine.metrics().access.refused("unauthenticated");
    witness.wait_for(&stage, &["lockgate_access_refused_total"]).await;
}
