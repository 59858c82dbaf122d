//! Rates. The lanes have no clock: the time is that of the claims.

use lockgate_core::time::Timestamp;

use super::stage::{Spec, Stage, returned, seqs, tenant, topic};

const FOUR_A_SECOND: &str = "
topics: {'*': default}
pools: {default: {}}
limits: [{name: echoes, topics: [echo], rate: 4/s}]";

const ECHO: &[(&[&str], usize)] = &[(&["echo", "noop"], 99)];

fn at(millis: i64) -> Option<Timestamp> {
    Some(Timestamp::from_millis(millis))
}

/// Claims at a time and counts what came.
async fn claim_at(stage: &mut Stage, millis: i64) -> (usize, Option<Timestamp>) {
    stage.refill().await;
    stage.now_ms = millis;
    let claimed = stage.claim_in("default", "default", ECHO).await;
    let count = claimed.claims.len();
    for claim in claimed.claims {
        stage.dispatch(claim).await;
    }
    (count, claimed.again_at)
}

pub async fn a_rate_lets_a_burst_through_and_then_says_when(mut stage: Stage) {
    stage.adopt(FOUR_A_SECOND).await;
    stage.wait_many(9, &topic("echo")).await;
    assert_eq!(claim_at(&mut stage, 10_000).await, (4, at(10_250)));
    assert_eq!(claim_at(&mut stage, 10_249).await, (0, at(10_250)));
    assert_eq!(claim_at(&mut stage, 10_250).await, (1, at(10_500)));
    assert_eq!(claim_at(&mut stage, 10_850).await, (2, at(11_000)));
    assert_eq!(claim_at(&mut stage, 12_000).await, (2, None), "nothing waits any more");
}

pub async fn a_rate_delays_no_other_lane_and_is_shared_by_tenants(mut stage: Stage) {
    stage.adopt(FOUR_A_SECOND).await;
    for name in ["a", "b", "c"] {
        stage.wait_many(3, &tenant(name)).await;
    }
    assert_eq!(claim_at(&mut stage, 10_000).await.0, 4);
    assert_eq!(stage.demanded().await, []);
    stage.wait_many(2, &topic("noop")).await;
    stage.wait(&tenant("d")).await;
    assert_eq!(stage.demanded().await, [("noop".into(), 2)]);
    assert_eq!(claim_at(&mut stage, 10_001).await, (2, at(10_250)));
}

/// A claim without seats is enough to let time pass.
pub async fn what_a_rate_held_back_is_demanded_after_a_claim_at_its_time(mut stage: Stage) {
    stage.adopt(FOUR_A_SECOND).await;
    stage.wait_many(6, &topic("echo")).await;
    claim_at(&mut stage, 10_000).await;
    stage.now_ms = 10_250;
    assert_eq!(stage.claim_in("default", "default", &[]).await.again_at, None, "somebody may come now");
    assert_eq!(stage.demanded().await, [("echo".into(), 2)]);
    assert_eq!(claim_at(&mut stage, 10_250).await, (1, at(10_500)));
}

pub async fn a_claim_that_came_to_nothing_is_not_charged_to_a_rate(mut stage: Stage) {
    stage.adopt(FOUR_A_SECOND).await;
    let jobs = stage.wait_many(6, &topic("echo")).await;
    stage.refill().await;
    let claims = stage.claim_for(&[(&["echo"], 4)]).await;
    assert_eq!(seqs(&claims), [jobs[0].seq.0, jobs[1].seq.0, jobs[2].seq.0, jobs[3].seq.0]);
    let back = (0..2).map(|at| returned(&claims[at], &jobs[at])).collect();
    stage.lanes.settle(back).await;
    assert_eq!(seqs(&stage.claim_for(&[(&["echo"], 9)]).await), [jobs[0].seq.0, jobs[1].seq.0]);
}

pub async fn the_limits_of_a_lane_say_when_its_rate_has_room(mut stage: Stage) {
    stage.adopt(FOUR_A_SECOND).await;
    let jobs = stage.wait_many(9, &topic("echo")).await;
    claim_at(&mut stage, 10_000).await;
    let view = stage.lanes.limits(&jobs[0].lane()).await;
    assert_eq!((view[0].full, view[0].again_at, view[0].max), (true, at(10_250), None));
}

pub async fn a_rate_outlives_new_pools_that_keep_it(mut stage: Stage) {
    stage.adopt(FOUR_A_SECOND).await;
    stage.wait_many(9, &topic("echo")).await;
    assert_eq!(claim_at(&mut stage, 10_000).await.0, 4);
    stage.adopt(FOUR_A_SECOND).await;
    assert_eq!(claim_at(&mut stage, 10_000).await, (0, at(10_250)));
}

pub async fn a_limit_may_bound_both_at_once_and_by_time(mut stage: Stage) {
    stage.adopt(&FOUR_A_SECOND.replace("rate: 4/s", "rate: 4/s, max_concurrent: 1")).await;
    stage.wait_many(9, &Spec::default()).await;
    for _ in 0..4 {
        stage.now_ms = 10_000;
        let Some((_, _, token)) = stage.start_one(&["echo"]).await else { panic!("the rate has room") };
        assert!(stage.claim(&["echo"], 9).await.is_empty());
        stage.release(&token).await;
    }
    assert!(stage.claim(&["echo"], 9).await.is_empty());
    assert_eq!(claim_at(&mut stage, 10_250).await.0, 1);
}
