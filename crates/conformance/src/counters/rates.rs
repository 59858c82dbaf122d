//! Rates that replicas share.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::rate::{Rate, RateGrant};

use super::Stage;
use lockgate_ports::counters::Counters;

fn per_hour(name: &str, max: u32) -> (Arc<str>, Rate) {
    (name.into(), Rate { max, window: Duration::from_secs(3600) })
}

async fn take(counters: &dyn Counters, buckets: &[(Arc<str>, Rate)], want: u32) -> RateGrant {
    counters.take(buckets, want).await.expect("the counters answer")
}

pub async fn a_bucket_is_shared_and_says_when_it_has_more(stage: Stage) {
    let bucket = [per_hour("tenant/acme", 36)];
    assert_eq!(take(&*stage.a, &bucket, 30).await.granted, 30);
    let second = take(&*stage.b, &bucket, 30).await;
    assert_eq!(second.granted, 6);
    let third = take(&*stage.a, &bucket, 1).await;
    assert_eq!(third.granted, 0);
    // A token comes back in 100 seconds.
    assert!((90..=100).contains(&third.again_in.as_secs()), "{third:?}");
    assert_eq!(take(&*stage.a, &[per_hour("tenant/other", 36)], 50).await.granted, 36, "others have their own");
}

pub async fn what_one_bucket_lacks_is_taken_from_none(stage: Stage) {
    let both = [per_hour("actor/ann", 3), per_hour("tenant/acme", 10)];
    let few = take(&*stage.a, &both, 5).await;
    assert_eq!((few.granted, few.short), (3, Some(0)), "the first of them had too few");
    assert_eq!(take(&*stage.a, &both[1..], 0).await.short, None);
    assert_eq!(take(&*stage.b, &both, 5).await.granted, 0);
    assert_eq!(take(&*stage.b, &both[1..], 99).await.granted, 7);
    assert_eq!(take(&*stage.a, &[], 4).await, RateGrant::all(4));
}

pub async fn buckets_fill_with_time(stage: Stage) {
    let bucket = [("fast".into(), Rate { max: 4, window: Duration::from_millis(1_600) })];
    assert_eq!(take(&*stage.a, &bucket, 9).await.granted, 4);
    stage.pass(Duration::from_millis(450));
    let some = take(&*stage.b, &bucket, 4).await.granted;
    assert!((1..=3).contains(&some), "{some}");
    stage.pass(Duration::from_millis(1_650));
    assert_eq!(take(&*stage.a, &bucket, 9).await.granted, 4, "never more than a bucket");
}

pub async fn another_rate_is_another_bucket(stage: Stage) {
    assert_eq!(take(&*stage.a, &[per_hour("tenant/acme", 2)], 9).await.granted, 2);
    assert_eq!(take(&*stage.b, &[per_hour("tenant/acme", 5)], 9).await.granted, 5);
}
