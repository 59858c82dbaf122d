//! Two replicas, one safety kernel, one Redis.

mod outputs;
mod support;

use std::time::Duration;

use lockgate_core::breaker::{BreakerSettings, BreakerState};
use lockgate_core::verdict::Judgement;
use lockgate_ports::{Kernel, Sharing};
use lockgate_testbed::Redis;

use support::{Mode, Scene, wait_for};

fn slow() -> BreakerSettings {
    BreakerSettings::default()
}

/// Half-open soon after it opened.
fn quick() -> BreakerSettings {
    BreakerSettings { open_for: Duration::from_millis(100), probe_ttl: Duration::from_secs(600), ..slow() }
}

#[tokio::test]
async fn three_failures_of_one_replica_stop_the_next_call_of_the_other() {
    let redis = Redis::start().expect("a server");
    let scene = Scene::new(Mode::Fail).await;
    let (a, b) = (scene.replica(&redis, slow()).await, scene.replica(&redis, slow()).await);
    for _ in 0..3 {
        assert!(b.ready());
        assert_eq!(a.decided_elsewhere().await, None);
    }
    assert_eq!(scene.calls(), 3);
    assert_eq!(b.decided_elsewhere().await, None);
    assert_eq!(scene.calls(), 3, "the other replica does not even try");
    assert!(!a.ready() && !b.ready());
    let view = &b.breakers()[0];
    assert_eq!((view.state, view.failures, view.sharing), (BreakerState::Open, 3, Sharing::Shared));
    assert!(view.open_until.is_some(), "{view:?}");
    assert_eq!(b.breakers()[1].state, BreakerState::Closed, "results have their own breaker");
}

#[tokio::test]
async fn a_refused_question_is_no_failure() {
    let redis = Redis::start().expect("a server");
    let scene = Scene::new(Mode::Refuse).await;
    let a = scene.replica(&redis, slow()).await;
    for _ in 0..5 {
        assert_eq!(a.decided_elsewhere().await, None);
    }
    assert_eq!((scene.calls(), a.breakers()[0].failures), (5, 0));
}

#[tokio::test]
async fn at_most_three_probes_are_in_flight_over_both_replicas() {
    let redis = Redis::start().expect("a server");
    let scene = Scene::new(Mode::Fail).await;
    let (a, b) = (scene.replica(&redis, quick()).await, scene.replica(&redis, quick()).await);
    for _ in 0..3 {
        a.decided_elsewhere().await;
    }
    scene.set(Mode::Hold);
    let counters = scene.counters(&redis).await;
    let look = async || counters.look("safety", &quick()).await.expect("an answer").state;
    wait_for("probes are let through", async || look().await == BreakerState::HalfOpen).await;
    let asked: Vec<_> = (0..20)
        .map(|turn| if turn % 2 == 0 { a.clone() } else { b.clone() })
        .map(|replica| tokio::spawn(async move { replica.decided_elsewhere().await }))
        .collect();
    wait_for("17 calls are refused", async || asked.iter().filter(|call| call.is_finished()).count() == 17).await;
    wait_for("three probes are with the kernel", async || scene.in_flight() == 3).await;
    assert_eq!(scene.calls(), 3 + 3);
    scene.set(Mode::Answer);
    let mut answers = 0;
    for call in asked {
        answers += usize::from(call.await.expect("ended").is_some());
    }
    assert_eq!(answers, 3);
    for replica in [&a, &b] {
        assert!(replica.decided_elsewhere().await.is_some(), "closed for both");
        assert_eq!(replica.breakers()[0].state, BreakerState::Closed);
    }
}

#[tokio::test]
async fn without_redis_each_replica_counts_alone_and_with_it_together_again() {
    let mut redis = Redis::start().expect("a server");
    let scene = Scene::new(Mode::Fail).await;
    let (a, b) = (scene.replica(&redis, slow()).await, scene.replica(&redis, slow()).await);
    a.decided_elsewhere().await;
    a.decided_elsewhere().await;
    assert_eq!(b.breakers()[0].sharing, Sharing::Shared);

    redis.kill();
    a.decided_elsewhere().await;
    let view = &a.breakers()[0];
    assert_eq!((view.state, view.sharing), (BreakerState::Open, Sharing::LocalFallback), "it remembers its own calls");
    assert!(!a.ready());
    assert_eq!(a.decided_elsewhere().await, None);
    assert_eq!(scene.calls(), 3, "the fallback refuses too");
    b.decided_elsewhere().await;
    assert_eq!(scene.calls(), 4, "nobody told the other one");
    assert_eq!((b.breakers()[0].failures, b.ready()), (1, true));

    redis.restart().expect("started");
    scene.set(Mode::Answer);
    for replica in [&a, &b] {
        wait_for("the breakers are shared again", async || {
            replica.decided_elsewhere().await;
            replica.breakers().iter().all(|view| view.sharing == Sharing::Shared)
        })
        .await;
        assert!(replica.decided_elsewhere().await.is_some(), "an empty server knows of no failures");
    }
}

#[tokio::test]
async fn a_replica_that_shares_nothing_says_so() {
    let scene = Scene::new(Mode::Fail).await;
    let alone = scene.lonely(slow());
    for _ in 0..4 {
        alone.decided_elsewhere().await;
    }
    let view = &alone.breakers()[0];
    assert_eq!((view.state, view.sharing, scene.calls()), (BreakerState::Open, Sharing::Alone, 3));
}

#[tokio::test]
async fn the_breaker_of_results_is_seen_by_a_replica_that_checks_none() {
    let redis = Redis::start().expect("a server");
    let scene = Scene::new(Mode::Answer).await;
    let (a, b) = (scene.replica(&redis, slow()).await, scene.replica(&redis, slow()).await);
    for _ in 0..3 {
        // The kernel of this scene has no such service.
        assert!(a.scan(&support::content()).await.is_none());
    }
    assert!(b.decided_elsewhere().await.is_some());
    assert_eq!(b.breakers()[1].state, BreakerState::Open);
}

#[tokio::test]
async fn who_gets_no_verdict_is_told_why() {
    let scene = Scene::new(Mode::Refuse).await;
    let kernel = scene.lonely(slow());
    let request = support::content().request;
    let why = async || match &kernel.judge(std::slice::from_ref(&request)).await[..] {
        [Judgement::Unavailable(Some(why))] => why.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(why().await, "the safety kernel refused the question: told to refuse");
    scene.set(Mode::Fail);
    for _ in 0..3 {
        assert_eq!(why().await, "safety kernel unreachable: told to fail", "also the call that opens the circuit");
    }
    let asked = scene.calls();
    assert_eq!(why().await, "safety kernel circuit open");
    assert_eq!(scene.calls(), asked, "it was not even asked");
    assert_eq!(kernel.breakers()[0].last_error.as_deref(), Some("unreachable: told to fail"));
}
