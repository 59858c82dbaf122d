//! A worker that is attached, beats, and does not read what it is told.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId};
use lockgate_core::job::{JobState, Reason};
use lockgate_core::limits::{INVENTORY_MAX, SLOTS_MAX};
use lockgate_engine::{ToWorker, WorkerStatus};

use super::stage::{Hand, Stage, job};

/// More beats than may go unread.
const BEATS_MAX: usize = 3 * INVENTORY_MAX;

/// The only worker beats, and reads nothing of what it is answered.
pub(super) async fn beats_until_cut(stage: &Stage, worker: &mut Hand) {
    let mut beats = 0;
    while stage.engine.workers()[0].status == WorkerStatus::Attached {
        assert!(beats < BEATS_MAX, "what waits for it has no bound");
        worker.beat().await;
        beats += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn who_never_reads_is_given_up_and_then_lost_like_anybody_who_is_silent() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 2).await;
    let held = stage.submit(job("t")).await;
    stage.until(&held, |job| job.state() == JobState::Dispatched).await;
    beats_until_cut(&stage, &mut worker).await;
    assert_eq!(stage.engine.workers()[0].status, WorkerStatus::Detached);
    assert_eq!(stage.number("lockgate_worker_streams_cut_total"), 1.0);
    let given_up = tokio::time::timeout(Duration::from_secs(1), worker.attachment.given_up()).await;
    given_up.expect("whoever hears the worker is told to stop");

    let waits = stage.submit(job("t")).await;
    stage.until_reason(&waits, "workers_away").await;
    drop(worker);
    let lost = stage.until(&held, |job| job.life.attempt.no == 2).await;
    assert_eq!(lost.life.last_error.expect("a reason").reason, Reason::AgentLost);
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_with_all_it_may_hold_is_told_of_each() {
    let stage = Stage::new();
    let unknown = |n: usize| (AttemptToken::from(format!("token-{n}")), JobId::from(format!("job-{n}")));
    let held: BTreeMap<AttemptToken, JobId> = (0..INVENTORY_MAX).map(unknown).collect();
    let mut worker = Hand::attach_with(&stage.engine, "w", &["t"], SLOTS_MAX, held, 0).await;
    let said = std::iter::from_fn(|| worker.inbound_now());
    assert_eq!(said.filter(|said| matches!(said, ToWorker::Stop { .. })).count(), INVENTORY_MAX);
    worker.beat().await;
    assert_eq!(stage.engine.workers()[0].status, WorkerStatus::Attached);
}
