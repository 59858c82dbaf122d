//! Fairness. Bounds are in claims.

use lockgate_core::fairness::ROUND;
use lockgate_core::lane::Priority;
use lockgate_core::time::Timestamp;

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
pub async fn ten_jobs_of_a_quiet_tenant_start_within_20_claims_next_to_100_000_of_a_noisy_one(stage: Stage) {
    for chunk in 0..100 {
        let noisy = (0..1_000).map(|n| job(&tenant("noisy"), chunk * 1_000 + n).into()).collect();
        stage.lanes.offer(noisy).await;
    }
    stage.claim_for(&[(&["echo"], 2)]).await;
    for n in 0..10 {
        stage.lanes.offer(vec![job(&tenant("quiet"), 1_000_000 + n).into()]).await;
        let claims = stage.claim_for(&[(&["echo"], 2)]).await;
        assert!(claims.iter().any(|claim| claim.lane.tenant.as_str() == "quiet"), "{n}: {claims:?}");
    }
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

/// L-3, with weights: three, one and one turn in a round of five.
pub async fn tenants_get_turns_by_their_weights_in_every_round(mut stage: Stage) {
    stage.adopt("topics: {'*': default}\npools: {default: {}}\nfairness: {tenants: {heavy: 3}}").await;
    for name in ["heavy", "b", "c"] {
        stage.wait_many(20, &tenant(name)).await;
    }
    for round in 0..4 {
        let claims = stage.claim(&["echo"], 5).await;
        let of = |name: &str| claims.iter().filter(|claim| claim.lane.tenant.as_str() == name).count();
        assert_eq!((of("heavy"), of("b"), of("c")), (3, 1, 1), "round {round}");
        for claim in claims {
            stage.dispatch(claim).await;
        }
    }
}

/// Turns by weight among tenants that all wait for one limit.
pub async fn tenants_get_turns_by_their_weights_at_a_full_limit(mut stage: Stage) {
    let pools = "
topics: {'*': default}
pools: {default: {}}
limits: [{name: all, max_concurrent: 1}]
fairness: {tenants: {heavy: 3}}";
    stage.adopt(pools).await;
    for name in ["heavy", "b", "c"] {
        stage.wait_many(20, &tenant(name)).await;
    }
    let mut served = Vec::new();
    for _ in 0..20 {
        let Some((tenant, _, token)) = stage.start_one(&["echo"]).await else { break };
        served.push(tenant);
        stage.release(&token).await;
    }
    let of = |name: &str| served.iter().filter(|tenant| *tenant == name).count();
    assert_eq!((of("heavy"), of("b"), of("c")), (12, 4, 4), "{served:?}");
}

/// L-2, with weights.
pub async fn priorities_get_turns_by_their_weights_in_every_round(mut stage: Stage) {
    let weights = "fairness: {priorities: {critical: 4, high: 3, default: 2, low: 1}}";
    stage.adopt(&format!("topics: {{'*': default}}\npools: {{default: {{}}}}\n{weights}")).await;
    for p in Priority::ALL {
        stage.wait_many(20, &priority(p)).await;
    }
    for round in 0..3 {
        let claims = stage.claim(&["echo"], 10).await;
        let of = |p: Priority| claims.iter().filter(|claim| claim.lane.priority == p).count();
        assert_eq!(Priority::ALL.map(of), [4, 3, 2, 1], "round {round}");
        for claim in claims {
            stage.dispatch(claim).await;
        }
    }
}

pub async fn strict_priorities_serve_nothing_while_something_more_urgent_waits(mut stage: Stage) {
    stage.adopt("topics: {'*': default}\npools: {default: {}}\nfairness: {priorities: strict}").await;
    let low = stage.wait(&priority(Priority::Low)).await;
    for _ in 0..200 {
        let high = stage.wait(&priority(Priority::High)).await;
        let claims = stage.claim(&["echo"], 1).await;
        assert_eq!(seqs(&claims), [high.seq.0]);
        for claim in claims {
            stage.dispatch(claim).await;
        }
    }
    assert_eq!(stage.drain(&["echo"], 1).await, [low.seq.0]);
}

pub async fn shares_say_what_tenants_got_and_were_entitled_to(mut stage: Stage) {
    stage.adopt("topics: {'*': default}\npools: {default: {}}\nfairness: {tenants: {heavy: 3}}").await;
    stage.wait_many(40, &Spec { due_ms: 2_000, ..tenant("heavy") }).await;
    stage.wait_many(40, &Spec { due_ms: 1_500, ..tenant("light") }).await;
    for _ in 0..10 {
        for claim in stage.claim(&["echo"], 2).await {
            stage.dispatch(claim).await;
        }
    }
    stage.refill().await;
    assert_eq!(stage.taken().await, [("default".into(), 20)]);
    let shares = stage.shares(9).await;
    let names: Vec<_> = shares.iter().map(|share| (share.tenant.to_string(), share.claims)).collect();
    assert_eq!(names, [("heavy".into(), 15), ("light".into(), 5)]);
    assert!((shares[0].entitled - 15.0).abs() < 0.01 && (shares[1].entitled - 5.0).abs() < 0.01, "{shares:?}");
    let oldest: Vec<_> = shares.iter().map(|share| share.oldest.map(Timestamp::as_millis)).collect();
    assert_eq!(oldest, [Some(2_000), Some(1_500)]);
    assert_eq!(stage.shares(1).await.len(), 1);
}

/// A tenant without claimable jobs is entitled to no turns meanwhile.
pub async fn a_tenant_without_work_is_entitled_to_nothing(mut stage: Stage) {
    stage.wait_many(10, &tenant("a")).await;
    stage.wait(&tenant("b")).await;
    stage.drain(&["echo"], 1).await;
    let shares = stage.shares(9).await;
    let entitled = |name: &str| shares.iter().find(|share| share.tenant.as_str() == name).map(|share| share.entitled);
    assert!(entitled("b").is_some_and(|turns| turns <= 1.0), "{shares:?}");
    assert!(entitled("a").is_some_and(|turns| turns >= 10.0), "{shares:?}");
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
