//! L-1: a job that was offered after its commit is in a window, claimed, or behind the frontier of a hungry lane.

use std::collections::BTreeSet;

use super::stage::{Spec, Stage, seqs};
use lockgate_ports::lanes::{Refill, RefillRequest};

/// Enough for any window to overflow.
const BACKLOG: usize = 3_000;

pub async fn a_backlog_larger_than_any_window_is_drained_in_order(mut stage: Stage) {
    let jobs = stage.wait_many(BACKLOG, &Spec::default()).await;
    let drained = stage.drain(&["echo"], 100).await;
    assert_eq!(drained, jobs.iter().map(|job| job.seq.0).collect::<Vec<_>>());
}

/// The Store is read, then a job with an older ready time commits and is offered, then the answer comes.
pub async fn a_job_committed_behind_a_running_refill_is_not_lost(stage: Stage) {
    race_a_refill(stage, 1).await;
}

pub async fn many_jobs_committed_behind_a_running_refill_are_not_lost(stage: Stage) {
    race_a_refill(stage, BACKLOG).await;
}

async fn race_a_refill(mut stage: Stage, late: usize) {
    stage.wait_many(BACKLOG, &at(1_000)).await;
    stage.wait_many(10, &at(9_000)).await;
    let mut raced = false;
    loop {
        let claims = stage.claim_for(&[(&["echo"], 10)]).await;
        let pages: Vec<_> = stage
            .lanes
            .refill_requests()
            .await
            .into_iter()
            .map(|asked| Refill { jobs: stage.ready(&asked), asked })
            .collect();
        if claims.is_empty() && pages.is_empty() {
            break;
        }
        for claim in claims {
            stage.dispatch(claim).await;
        }
        if !raced && pages.iter().any(|page| page.jobs.len() < page.asked.limit) {
            raced = true;
            stage.wait_many(late, &at(5_000)).await;
        }
        for page in pages {
            stage.lanes.refill(page).await;
        }
    }
    assert_eq!(stage.rows().count(), 0);
}

pub async fn an_ask_that_was_never_answered_is_made_again(mut stage: Stage) {
    stage.wait_many(BACKLOG, &Spec::default()).await;
    while !stage.claim_for(&[(&["echo"], 100)]).await.is_empty() {}
    let first = stage.lanes.refill_requests().await;
    let second = stage.lanes.refill_requests().await;
    let place = |asks: &[RefillRequest]| asks.iter().map(|ask| (ask.lane.clone(), ask.after)).collect::<Vec<_>>();
    assert_eq!(place(&first), place(&second));
}

pub async fn the_late_answer_to_an_old_ask_is_ignored(mut stage: Stage) {
    stage.wait_many(BACKLOG, &Spec::default()).await;
    while !stage.claim_for(&[(&["echo"], 100)]).await.is_empty() {}
    let old: Vec<_> =
        stage.lanes.refill_requests().await.into_iter().map(|asked| Refill { jobs: stage.ready(&asked), asked }).collect();
    let asks = stage.lanes.refill_requests().await;
    for asked in asks {
        // The Store's end, seen before the jobs below were committed.
        stage.lanes.refill(Refill { jobs: stage.ready(&asked), asked }).await;
    }
    let newcomers = stage.wait_many(10, &at(2_000)).await;
    for page in old {
        stage.lanes.refill(Refill { jobs: Vec::new(), asked: page.asked }).await;
    }
    let drained: BTreeSet<_> = stage.drain(&["echo"], 50).await.into_iter().collect();
    assert!(newcomers.iter().all(|job| drained.contains(&job.seq.0)));
}

/// Every read of the Store is overtaken by new offers, and still the window becomes whole again: from then on jobs
/// pass through memory alone.
pub async fn a_steady_stream_catches_up_with_its_refills(mut stage: Stage) {
    stage.wait_many(BACKLOG, &at(1_000)).await;
    for round in 0..BACKLOG as i64 {
        for claim in stage.claim_for(&[(&["echo"], 4)]).await {
            stage.dispatch(claim).await;
        }
        let asks = stage.lanes.refill_requests().await;
        let pages: Vec<_> = asks.into_iter().map(|asked| Refill { jobs: stage.ready(&asked), asked }).collect();
        stage.wait(&at(2_000 + round)).await;
        for page in pages {
            stage.lanes.refill(page).await;
        }
    }
    assert_eq!(stage.lanes.refill_requests().await, []);
}

pub async fn rebuilt_lanes_are_read_from_their_start(mut stage: Stage) {
    let jobs: Vec<_> = (0..BACKLOG).map(|_| stage.commit(&Spec::default())).collect();
    stage.lanes.rebuild(stage.ready_lanes()).await;
    assert_eq!(stage.depths(9).await[0].waiting, BACKLOG as u64);
    assert_eq!(stage.drain(&["echo"], 100).await, jobs.iter().map(|job| job.seq.0).collect::<Vec<_>>());
    assert_eq!(stage.depths(9).await, []);
}

pub async fn a_job_offered_while_the_lanes_are_rebuilt_is_not_lost(mut stage: Stage) {
    stage.commit(&Spec::default());
    let read = stage.ready_lanes();
    let same_lane = stage.wait(&Spec::default()).await;
    let other_lane = stage.wait(&Spec { tenant: "other", ..Spec::default() }).await;
    stage.lanes.rebuild(read).await;
    let drained = stage.drain(&["echo"], 9).await;
    assert!([same_lane, other_lane].iter().all(|job| drained.contains(&job.seq.0)), "{drained:?}");
}

pub async fn a_claim_is_forgotten_when_its_lane_is_rebuilt(mut stage: Stage) {
    let job = stage.wait(&Spec::default()).await;
    assert_eq!(seqs(&stage.claim(&["echo"], 1).await), [job.seq.0]);
    stage.lanes.rebuild(stage.ready_lanes()).await;
    assert_eq!(seqs(&stage.claim(&["echo"], 1).await), [job.seq.0]);
}

fn at(due_ms: i64) -> Spec {
    Spec { due_ms, ..Spec::default() }
}
