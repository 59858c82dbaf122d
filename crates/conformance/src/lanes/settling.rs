//! Settlement of claims, and the lanes' own reports.

use std::sync::Arc;

use lockgate_core::job::Job;
use lockgate_core::lane::{Priority, Shape};
use lockgate_core::pools::DEFAULT_POOL;

use super::stage::{Spec, Stage, job, key, returned, seqs, tenant, topic};
use lockgate_ports::lanes::{Demand, Settlement};

pub async fn never_more_than_the_seats_ask_for(mut stage: Stage) {
    stage.wait_many(10, &topic("echo")).await;
    stage.refill().await;
    assert_eq!(stage.claim_for(&[(&["echo"], 2), (&["echo"], 0), (&["echo"], 1)]).await.len(), 3);
    assert!(stage.claim_for(&[]).await.is_empty());
    assert!(stage.claim_for(&[(&["echo"], 0)]).await.is_empty());
}

pub async fn a_waiting_job_is_not_added_twice(mut stage: Stage) {
    let job = stage.wait(&Spec::default()).await;
    stage.offer(&[job.clone(), job.clone()]).await;
    assert_eq!(stage.depths(9).await[0].waiting, 1);
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1);
}

pub async fn a_claimed_job_is_not_added_again(mut stage: Stage) {
    let job = stage.wait(&Spec::default()).await;
    let claims = stage.claim(&["echo"], 1).await;
    stage.offer(&[job]).await;
    assert_eq!(claims.len(), 1);
    assert!(stage.claim(&["echo"], 1).await.is_empty());
}

pub async fn a_newer_version_replaces_the_waiting_one(mut stage: Stage) {
    let job = stage.wait(&Spec::default()).await;
    let mut newer = (*job).clone();
    newer.version += 1;
    stage.offer(&[Arc::new(newer.clone()), job]).await;
    let claims = stage.claim(&["echo"], 9).await;
    assert_eq!(claims.len(), 1);
    // An adapter that keeps no jobs answers with ids, and the Store has the newest version in any case.
    assert!(claims[0].job.as_ref().is_none_or(|claimed| claimed.version == newer.version));
}

pub async fn a_returned_job_goes_back_to_its_place(mut stage: Stage) {
    let jobs = stage.wait_many(3, &Spec::default()).await;
    let claims = stage.claim(&["echo"], 1).await;
    assert_eq!(seqs(&claims), [jobs[0].seq.0]);
    stage.lanes.settle(vec![returned(&claims[0], &jobs[0])]).await;
    assert_eq!(stage.drain(&["echo"], 1).await, jobs.iter().map(|job| job.seq.0).collect::<Vec<_>>());
}

pub async fn a_gone_job_is_not_claimed(mut stage: Stage) {
    let jobs = stage.wait_many(3, &Spec::default()).await;
    stage.remove(&jobs[1].lane(), jobs[1].ready_key());
    stage.lanes.settle(vec![Settlement::Gone { lane: jobs[1].lane(), key: jobs[1].ready_key(), claim: None }]).await;
    assert_eq!(stage.drain(&["echo"], 9).await, [jobs[0].seq.0, jobs[2].seq.0]);
}

pub async fn a_dispatched_job_may_wait_again_later(mut stage: Stage) {
    let job = stage.wait(&Spec::default()).await;
    assert_eq!(stage.drain(&["echo"], 1).await, [job.seq.0]);
    stage.offer(&[job]).await;
    assert_eq!(stage.claim(&["echo"], 1).await.len(), 1);
}

pub async fn settling_unknown_jobs_changes_nothing(mut stage: Stage) {
    let stranger = job(&tenant("stranger"), 77);
    let known_lane = job(&Spec::default(), 78);
    let waiting = stage.wait(&Spec::default()).await;
    let gone = |job: &Job| Settlement::Gone { lane: job.lane(), key: job.ready_key(), claim: None };
    let gone = [&stranger, &known_lane].map(gone);
    stage.lanes.settle(gone.into()).await;
    assert_eq!(stage.drain(&["echo"], 9).await, [waiting.seq.0]);
}

pub async fn depths_count_what_waits_deepest_first(mut stage: Stage) {
    stage.wait_many(2, &tenant("few")).await;
    let many = stage.wait_many(300, &tenant("many")).await;
    stage.wait_many(20, &tenant("some")).await;
    let depths = stage.depths(2).await;
    let names: Vec<_> = depths.iter().map(|depth| (depth.lane.tenant.to_string(), depth.waiting)).collect();
    assert_eq!(names, [("many".into(), 300), ("some".into(), 20)]);
    assert_eq!(depths[0].oldest, Some(many[0].ready_key()));
    let claims = stage.claim_for(&[(&["echo"], 3)]).await;
    // A claimed job is still SCHEDULED in the Store: it counts until it is settled.
    assert_eq!(stage.depths(9).await.iter().map(|depth| depth.waiting).sum::<u64>(), 322);
    assert_eq!(stage.depths(9).await.iter().map(|depth| depth.unclaimed).sum::<u64>(), 319);
    for claim in claims {
        stage.dispatch(claim).await;
    }
    assert_eq!(stage.depths(9).await.iter().map(|depth| depth.waiting).sum::<u64>(), 319);
    stage.drain(&["echo"], 50).await;
    assert_eq!(stage.depths(9).await, []);
}

pub async fn demand_counts_what_could_be_claimed_by_shape(mut stage: Stage) {
    assert_eq!(stage.demand().await, []);
    stage.wait_many(2, &topic("echo")).await;
    stage.wait(&Spec { priority: Priority::Low, ..tenant("other") }).await;
    stage.wait(&topic("noop")).await;
    stage.refill().await;
    assert_eq!(stage.demanded().await, [("echo".into(), 3), ("noop".into(), 1)]);
    let claims = stage.claim_for(&[(&["echo"], 3)]).await;
    let noop = Demand {
        pool: Some(DEFAULT_POOL.into()),
        shape: Arc::new(Shape::of("noop")),
        urgency: Priority::Default,
        waiting: 1,
    };
    assert_eq!(stage.demand().await, std::slice::from_ref(&noop));
    let job = claims[0].job.clone().unwrap_or_else(|| Arc::new(job(&topic("echo"), claims[0].key.seq.0)));
    stage.lanes.settle(vec![returned(&claims[0], &job)]).await;
    assert_eq!(stage.demanded().await, [("echo".into(), 1), ("noop".into(), 1)]);
    stage.drain(&["echo", "noop"], 9).await;
    assert_eq!(stage.demand().await, []);
}

/// Workers do not look at concurrency keys: a thousand of them are one thing to ask for.
pub async fn jobs_that_differ_for_limits_only_are_one_demand(mut stage: Stage) {
    stage.wait(&key("a")).await;
    stage.wait(&key("b")).await;
    stage.wait(&Spec { max_concurrent: Some(7), ..Spec::default() }).await;
    let demand = Demand {
        pool: Some(DEFAULT_POOL.into()),
        shape: Arc::new(Shape::of("echo")),
        urgency: Priority::Default,
        waiting: 3,
    };
    assert_eq!(stage.demand().await, [demand]);
    assert_eq!(stage.drain(&["echo"], 9).await.len(), 3);
}

pub async fn what_no_pool_takes_is_counted_and_never_claimed(mut stage: Stage) {
    let pools = "topics: {echo: default}\npools: {default: {}}";
    stage.adopt(pools).await;
    let lost = stage.wait(&topic("nobody.knows")).await;
    stage.wait(&topic("echo")).await;
    assert_eq!(stage.drain(&["echo", "nobody.knows"], 9).await.len(), 1);
    let demand = Demand { pool: None, shape: lost.lane().shape, urgency: Priority::Default, waiting: 1 };
    assert_eq!(stage.demand().await, [demand]);
    let depths = stage.depths(9).await;
    assert_eq!((depths.len(), depths[0].pool.clone(), depths[0].waiting), (1, None, 1));
    stage.adopt("topics: {\"*\": default}\npools: {default: {}}").await;
    assert_eq!(stage.drain(&["nobody.knows"], 9).await, [lost.seq.0]);
}

pub async fn jobs_wait_in_the_first_pool_of_their_topic(mut stage: Stage) {
    stage.adopt("topics: {echo: [fast, slow], noop: slow}\npools: {fast: {}, slow: {}}").await;
    let echo = stage.wait(&topic("echo")).await;
    let noop = stage.wait(&topic("noop")).await;
    let both: &[(&[&'static str], usize)] = &[(&["echo", "noop"], 9)];
    let pools: Vec<_> = stage.depths(9).await.into_iter().map(|depth| depth.pool).collect();
    assert_eq!(pools.len(), 2);
    assert!(pools.contains(&Some("fast".into())) && pools.contains(&Some("slow".into())));
    assert_eq!(seqs(&stage.claim_in("slow", "slow", both).await.claims), [noop.seq.0]);
    assert_eq!(seqs(&stage.claim_in("fast", "slow", both).await.claims), [echo.seq.0]);
    assert!(stage.claim_in("unknown", "unknown", both).await.claims.is_empty());
}

/// Workers often fit jobs of another pool too: those jobs take no turn in this pool's claim.
pub async fn seats_that_fit_what_waits_in_another_pool_take_what_waits_in_the_one_asked(mut stage: Stage) {
    stage.adopt("topics: {echo: fast, noop: slow}\npools: {fast: {}, slow: {}}").await;
    for name in ["a", "b"] {
        stage.wait(&Spec { priority: Priority::Critical, ..tenant(name) }).await;
    }
    let noop = stage.wait(&Spec { topic: "noop", ..tenant("c") }).await;
    let both: &[(&[&'static str], usize)] = &[(&["echo", "noop"], 9)];
    assert_eq!(seqs(&stage.claim_in("slow", "slow", both).await.claims), [noop.seq.0]);
    assert_eq!(stage.claim_in("fast", "fast", both).await.claims.len(), 2);
}
