//! Whose turn it is. Bounds are in claims.

use lockgate_core::lane::Priority;
use lockgate_core::turns::ROUND;

use super::stage::{Spec, Stage, job, priority, seqs, tenant, topic};

/// L-2.
pub async fn low_is_served_within_85_claims_of_a_steady_critical_stream(mut stage: Stage) {
    for round in 0..3 {
        let low = stage.wait(&priority(Priority::Low)).await;
        let mut claims = 0;
        loop {
            stage.wait(&priority(Priority::Critical)).await;
            claims += 1;
            let [claim] = <[_; 1]>::try_from(stage.claim(&["echo"], 1).await).unwrap_or_else(|c| panic!("{c:?}"));
            let seq = claim.key.seq;
            assert!(stage.dispatch(claim).await);
            if seq == low.seq {
                break;
            }
        }
        assert!(claims <= ROUND, "round {round}: low was served by claim {claims}");
    }
}

/// L-3. The noisy tenant's rows are not kept in the model: only what the lanes do with the offers matters here.
pub async fn a_quiet_tenant_is_served_next_to_100_000_jobs_of_a_noisy_one(stage: Stage) {
    for chunk in 0..100 {
        let noisy = (0..1_000).map(|n| job(&tenant("noisy"), chunk * 1_000 + n).into()).collect();
        stage.lanes.offer(noisy).await;
    }
    stage.claim_for(&[(&["echo"], 2)]).await;
    stage.lanes.offer(vec![job(&tenant("quiet"), 1_000_000).into()]).await;
    let claims = stage.claim_for(&[(&["echo"], 2)]).await;
    assert!(claims.iter().any(|claim| claim.lane.tenant.as_str() == "quiet"), "{claims:?}");
}

/// L-3.
pub async fn tenants_of_one_priority_take_turns(mut stage: Stage) {
    for name in ["a", "b", "c"] {
        stage.wait_many(if name == "a" { 6 } else { 2 }, &tenant(name)).await;
    }
    let claims = stage.claim(&["echo"], 3).await;
    let mut served: Vec<_> = claims.iter().map(|claim| claim.lane.tenant.to_string()).collect();
    served.sort();
    assert_eq!(served, ["a", "b", "c"]);
    let again = stage.claim(&["echo"], 3).await;
    assert_eq!(again.iter().filter(|claim| claim.lane.tenant.as_str() == "a").count(), 1);
}

pub async fn a_shape_that_fits_nobody_delays_nobody(mut stage: Stage) {
    stage.wait_many(5_000, &topic("needs-gpu")).await;
    let job = stage.wait(&Spec { due_ms: 2_000, ..topic("echo") }).await;
    let claims = stage.claim(&["echo"], 10).await;
    assert_eq!(seqs(&claims), [job.seq.0]);
}

pub async fn a_priority_that_fits_nobody_yields(mut stage: Stage) {
    stage.wait_many(200, &Spec { priority: Priority::Critical, ..topic("needs-gpu") }).await;
    stage.wait_many(5, &Spec { priority: Priority::Low, ..topic("echo") }).await;
    assert_eq!(stage.claim(&["echo"], 5).await.len(), 5);
}

pub async fn jobs_of_a_tenant_come_in_ready_order_over_shapes(mut stage: Stage) {
    let late = stage.wait(&Spec { due_ms: 3_000, ..topic("echo") }).await;
    let early = stage.wait(&Spec { due_ms: 1_000, ..topic("echo") }).await;
    let middle = stage.wait(&Spec { due_ms: 2_000, ..topic("noop") }).await;
    let tied = stage.wait(&Spec { due_ms: 2_000, ..topic("noop") }).await;
    let claims = stage.claim(&["echo", "noop"], 9).await;
    assert_eq!(seqs(&claims), [early.seq.0, middle.seq.0, tied.seq.0, late.seq.0]);
}

pub async fn seats_share_the_load(mut stage: Stage) {
    stage.wait_many(6, &topic("echo")).await;
    stage.refill().await;
    let claims = stage.claim_for(&[(&["echo"], 4), (&["echo"], 1), (&["echo"], 4)]).await;
    let per_seat: Vec<_> = (0..3).map(|seat| claims.iter().filter(|claim| claim.seat == seat).count()).collect();
    assert_eq!(claims.len(), 6);
    assert_eq!(per_seat[1], 1);
    assert!(per_seat[0] >= 2 && per_seat[2] >= 2, "{per_seat:?}");
}

pub async fn each_seat_gets_only_shapes_it_fits(mut stage: Stage) {
    stage.wait_many(3, &topic("echo")).await;
    stage.wait_many(3, &topic("noop")).await;
    stage.wait_many(3, &topic("needs-gpu")).await;
    stage.refill().await;
    let claims = stage.claim_for(&[(&["echo"], 2), (&["noop", "echo", "unknown"], 9), (&[], 9)]).await;
    assert_eq!(claims.len(), 6);
    for claim in &claims {
        let topic = claim.lane.shape.topic.as_str();
        assert!(matches!((claim.seat, topic), (0, "echo") | (1, "echo" | "noop")), "{claim:?}");
    }
}
