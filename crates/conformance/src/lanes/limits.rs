//! Limits: which lanes wait for them, and which comes next (L-7).

use lockgate_core::lane::Priority;

use super::stage::{Spec, Stage, key, priority, seqs, tenant, topic};
use lockgate_ports::lanes::Settlement;

pub(super) const TWO_AT_ONCE: &str = "
topics: {'*': default}
pools: {default: {}}
limits: [{name: echoes, topics: [echo], max_concurrent: 2}]";

const ONE_PER_KEY: &str = "
topics: {'*': default}
pools: {default: {}}
limits: [{name: keys, per: [key], max_concurrent: 1}]";

pub async fn a_full_limit_delays_no_other_lane(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    for name in ["a", "b", "c", "d"] {
        stage.wait_many(20, &Spec { priority: Priority::Critical, ..tenant(name) }).await;
    }
    assert_eq!(stage.claim(&["echo", "noop"], 9).await.len(), 2);
    let free = stage.wait(&Spec { priority: Priority::Low, ..topic("noop") }).await;
    assert_eq!(seqs(&stage.claim(&["echo", "noop"], 9).await), [free.seq.0]);
}

pub async fn jobs_that_wait_for_a_limit_are_no_demand(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    stage.wait_many(3, &tenant("a")).await;
    stage.wait_many(2, &tenant("b")).await;
    stage.refill().await;
    assert_eq!(stage.demanded().await, [("echo".into(), 5)]);
    let claims = stage.claim(&["echo"], 9).await;
    assert_eq!(stage.demanded().await, []);
    stage.wait(&tenant("c")).await;
    assert_eq!(stage.demanded().await, [], "neither is what came later");
    let limited = stage.depths(9).await.into_iter().filter(|depth| depth.limited);
    assert_eq!(limited.map(|depth| depth.unclaimed).sum::<u64>(), 4, "they wait all the same");
    for claim in claims {
        stage.dispatch(claim).await;
    }
    assert!(!stage.demanded().await.is_empty());
    assert_eq!(stage.drain(&["echo"], 9).await.len(), 4);
    assert_eq!(stage.demanded().await, []);
}

pub async fn what_waited_for_a_limit_comes_first_when_it_frees(mut stage: Stage) {
    stage.adopt(ONE_PER_KEY).await;
    for name in ["a", "b"] {
        stage.wait_many(3, &Spec { tenant: name, ..key("k") }).await;
    }
    let mut order = Vec::new();
    for _ in 0..8 {
        if order.len() == 1 {
            stage.wait_many(2, &Spec { tenant: "late", ..key("k") }).await;
        }
        let Some((tenant, _, token)) = stage.start_one(&["echo"]).await else { break };
        assert!(stage.claim(&["echo"], 9).await.is_empty());
        order.push(tenant);
        stage.release(&token).await;
    }
    assert_eq!(order[..4], ["a", "b", "a", "late"], "in the order in which they began to wait");
    assert_eq!(order.len(), 8, "{order:?}");
}

/// Its tenant has waited long for another limit, and would be next.
pub async fn a_newcomer_does_not_overtake_what_waited_for_a_limit(mut stage: Stage) {
    stage.adopt(ONE_PER_KEY).await;
    stage.wait(&Spec { tenant: "newcomer", ..topic("noop") }).await;
    stage.wait(&key("k")).await;
    let Some((_, _, running)) = stage.start_one(&["echo"]).await else { panic!("nothing was claimed") };
    let waited = stage.wait(&Spec { tenant: "waits", ..key("k") }).await;
    stage.release(&running).await;
    stage.wait(&Spec { tenant: "newcomer", ..key("k") }).await;
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [waited.seq.0]);
}

pub async fn room_that_is_never_used_up_goes_round_too(mut stage: Stage) {
    stage.adopt("topics: {'*': default}\npools: {default: {}}\nlimits: [{name: all, max_concurrent: 3}]").await;
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        stage.wait_many(9, &tenant(name)).await;
    }
    let full: Vec<_> = stage.claim(&["echo"], 3).await;
    let mut running = Vec::new();
    for claim in full {
        running.push(stage.start(claim).await);
    }
    // Two units are free and are taken one at a time: no tenant is let through twice before the others.
    stage.release(&running[0]).await;
    stage.release(&running[1]).await;
    let mut served = Vec::new();
    for _ in 0..6 {
        let Some((tenant, _, token)) = stage.start_one(&["echo"]).await else { break };
        served.push(tenant);
        stage.release(&token).await;
    }
    served.sort();
    assert_eq!(served, names);
}

pub async fn a_tenant_with_many_keys_leaves_its_turn_to_one_with_few(mut stage: Stage) {
    stage.adopt("topics: {'*': default}\npools: {default: {}}\nlimits: [{name: all, max_concurrent: 1}]").await;
    for n in 0..40 {
        let key: &'static str = Box::leak(format!("key-{n}").into_boxed_str());
        stage.wait(&Spec { tenant: "many", concurrency_key: Some(key), ..Spec::default() }).await;
    }
    let Some((_, _, first)) = stage.start_one(&["echo"]).await else { panic!("nothing was claimed") };
    stage.wait_many(2, &tenant("few")).await;
    stage.release(&first).await;
    let mut order = Vec::new();
    for _ in 0..4 {
        let Some((tenant, _, token)) = stage.start_one(&["echo"]).await else { break };
        order.push(tenant);
        stage.release(&token).await;
    }
    assert_eq!(order.iter().filter(|tenant| *tenant == "few").count(), 2, "{order:?}");
}

/// The first in line needs a worker that never comes.
pub async fn room_is_not_kept_for_a_worker_that_does_not_come(mut stage: Stage) {
    stage.adopt("topics: {'*': default}\npools: {default: {}}\nlimits: [{name: all, max_concurrent: 1}]").await;
    let job = stage.wait(&topic("echo")).await;
    let Some((_, seq, running)) = stage.start_one(&["echo"]).await else { panic!("nothing was claimed") };
    assert_eq!(seq, job.seq.0);
    stage.wait_many(3, &topic("needs-gpu")).await;
    let cpu = stage.wait(&topic("echo")).await;
    stage.release(&running).await;
    assert_eq!(stage.demanded().await, [("echo".into(), 1), ("needs-gpu".into(), 3)]);
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [cpu.seq.0]);
    assert_eq!(stage.demanded().await, []);
}

pub async fn room_goes_to_the_most_urgent_and_low_is_not_forgotten(mut stage: Stage) {
    stage.adopt(ONE_PER_KEY).await;
    stage.wait(&key("k")).await;
    let Some((_, _, mut running)) = stage.start_one(&["echo"]).await else { panic!("nothing was claimed") };
    let low = stage.wait(&Spec { priority: Priority::Low, ..key("k") }).await;
    let mut order = Vec::new();
    for _ in 0..85 {
        stage.wait(&Spec { priority: Priority::Critical, ..key("k") }).await;
        stage.release(&running).await;
        let Some((_, seq, token)) = stage.start_one(&["echo"]).await else { panic!("stuck after {order:?}") };
        order.push(seq);
        running = token;
    }
    assert_ne!(order[0], low.seq.0);
    assert!(order.contains(&low.seq.0), "within one round of 85 turns");
}

pub async fn jobs_with_one_key_run_one_at_a_time_and_others_beside_them(mut stage: Stage) {
    stage.adopt(ONE_PER_KEY).await;
    let first = stage.wait(&key("a")).await;
    let second = stage.wait(&Spec { tenant: "other", ..key("a") }).await;
    let b = stage.wait(&key("b")).await;
    let none = stage.wait_many(2, &Spec::default()).await;
    let mut claims = seqs(&stage.claim(&["echo"], 9).await);
    claims.sort_unstable();
    assert_eq!(claims, [first.seq.0, b.seq.0, none[0].seq.0, none[1].seq.0]);
    stage.remove(&first.lane(), first.ready_key());
    stage.lanes.settle(vec![Settlement::Gone { lane: first.lane(), key: first.ready_key(), claim: None }]).await;
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [second.seq.0]);
}

pub async fn tenants_have_their_own_limits_in_a_pool(mut stage: Stage) {
    stage.adopt("topics: {'*': default}\npools: {default: {tenant_max_concurrent: 1, tenants: {big: 3}}}").await;
    for name in ["big", "a", "b"] {
        stage.wait_many(5, &tenant(name)).await;
    }
    let claims = stage.claim(&["echo"], 99).await;
    let of = |name: &str| claims.iter().filter(|claim| claim.lane.tenant.as_str() == name).count();
    assert_eq!((of("big"), of("a"), of("b")), (3, 1, 1));
}

/// Two verdicts may set different bounds for jobs with one key: they share the count, and each keeps its own bound.
pub async fn policy_bounds_jobs_of_a_tenant_and_topic(mut stage: Stage) {
    stage.wait_many(3, &Spec { max_concurrent: Some(1), ..Spec::default() }).await;
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1);
    let wider = stage.wait_many(3, &Spec { max_concurrent: Some(2), ..Spec::default() }).await;
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [wider[0].seq.0]);
    stage.remove(&wider[0].lane(), wider[0].ready_key());
    stage.lanes.settle(vec![Settlement::Gone { lane: wider[0].lane(), key: wider[0].ready_key(), claim: None }]).await;
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [wider[1].seq.0]);
}

pub async fn a_pool_takes_no_more_than_its_own_bound_whatever_its_jobs_prefer(mut stage: Stage) {
    stage.adopt("topics: {echo: [fast, slow], noop: slow}\npools: {fast: {}, slow: {max_concurrent: 2}}").await;
    stage.wait_many(4, &topic("echo")).await;
    stage.wait_many(4, &topic("noop")).await;
    stage.refill().await;
    let seats: &[(&[&'static str], usize)] = &[(&["echo", "noop"], 9)];
    let mut spilled = stage.claim_in("fast", "slow", &[(&["echo"], 1)]).await.claims;
    assert_eq!(stage.claim_in("slow", "slow", seats).await.claims.len(), 1);
    assert!(stage.claim_in("fast", "slow", seats).await.claims.is_empty());
    assert_eq!(stage.demanded().await.len(), 2, "another pool may take them");
    assert_eq!(stage.claim_in("fast", "fast", seats).await.claims.len(), 3);
    let running = stage.start(spilled.remove(0)).await;
    assert!(stage.release(&running).await, "the pool has room for what waits");
    assert_eq!(stage.claim_in("slow", "slow", seats).await.claims.len(), 1);
}

pub async fn a_lane_passes_all_its_limits_or_none(mut stage: Stage) {
    let both = "
topics: {'*': default}
pools: {default: {}}
limits:
  - {name: keys, per: [key], max_concurrent: 1}
  - {name: all, max_concurrent: 2}";
    stage.adopt(both).await;
    stage.wait_many(2, &key("a")).await;
    stage.wait_many(2, &key("b")).await;
    stage.wait_many(2, &key("c")).await;
    let mut running = Vec::new();
    for claim in stage.claim(&["echo"], 9).await {
        running.push((claim.lane.shape.concurrency_key.clone(), stage.start(claim).await));
    }
    assert_eq!(running.len(), 2);
    let mut done = 0;
    while let Some((key, token)) = running.pop() {
        done += 1;
        stage.release(&token).await;
        for claim in stage.claim(&["echo"], 9).await {
            assert!(running.iter().all(|(other, _)| *other != claim.lane.shape.concurrency_key), "{key:?}");
            running.push((claim.lane.shape.concurrency_key.clone(), stage.start(claim).await));
        }
        assert!(running.len() <= 2);
    }
    assert_eq!(done, 6);
}

pub async fn the_limits_of_a_lane_say_what_is_used(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    let jobs = stage.wait_many(3, &topic("echo")).await;
    let view = stage.lanes.limits(&jobs[0].lane()).await;
    assert_eq!((view.len(), view[0].max, view[0].held, view[0].full), (1, Some(2), 0, false));
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 2);
    let view = stage.lanes.limits(&jobs[0].lane()).await;
    assert_eq!((view[0].held, view[0].full, view[0].again_at), (2, true, None));
    let unlimited = stage.wait(&topic("noop")).await;
    assert_eq!(stage.lanes.limits(&unlimited.lane()).await, []);
}

pub async fn a_cancelled_job_leaves_the_line(mut stage: Stage) {
    stage.adopt(ONE_PER_KEY).await;
    stage.wait(&key("k")).await;
    let Some((_, _, running)) = stage.start_one(&["echo"]).await else { panic!("nothing was claimed") };
    let cancelled = stage.wait(&Spec { tenant: "first", ..key("k") }).await;
    let next = stage.wait(&Spec { tenant: "second", ..key("k") }).await;
    let cancel = Settlement::Gone { lane: cancelled.lane(), key: cancelled.ready_key(), claim: None };
    stage.remove(&cancelled.lane(), cancelled.ready_key());
    stage.lanes.settle(vec![cancel]).await;
    assert!(stage.release(&running).await);
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [next.seq.0]);
}

/// The lane that was let through loses its job before a claim: the room passes to the next lane.
pub async fn room_that_was_given_to_a_cancelled_job_goes_to_the_next(mut stage: Stage) {
    stage.adopt(ONE_PER_KEY).await;
    stage.wait(&key("k")).await;
    let Some((_, _, running)) = stage.start_one(&["echo"]).await else { panic!("nothing was claimed") };
    let first = stage.wait(&Spec { tenant: "first", ..key("k") }).await;
    let second = stage.wait(&Spec { tenant: "second", ..key("k") }).await;
    stage.release(&running).await;
    stage.remove(&first.lane(), first.ready_key());
    stage.lanes.settle(vec![Settlement::Gone { lane: first.lane(), key: first.ready_key(), claim: None }]).await;
    assert_eq!(stage.demanded().await, [("echo".into(), 1)]);
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [second.seq.0]);
}

pub async fn lanes_of_several_priorities_share_a_limit(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    for p in Priority::ALL {
        stage.wait_many(2, &priority(p)).await;
    }
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 2);
    assert!(stage.claim(&["echo"], 9).await.is_empty());
}
