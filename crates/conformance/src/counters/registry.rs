//! Locks that only save work, and the workers' snapshot for starting replicas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::worker::{Load, WorkerProfile};

use super::Stage;
use lockgate_ports::counters::Counters;
use lockgate_ports::registry::{Sighting, SnapshotWorker, WorkersSnapshot};

const LONG: Duration = Duration::from_secs(60);

async fn hold(counters: &dyn Counters, locks: &[&str], holder: &str, ttl: Duration) -> Vec<bool> {
    counters.hold(locks, holder, ttl).await.expect("the counters answer")
}

pub async fn one_holds_a_lock_until_it_lets_go(stage: Stage) {
    assert_eq!(hold(&*stage.a, &["x", "y"], "a", LONG).await, [true, true]);
    assert_eq!(hold(&*stage.b, &["y", "z"], "b", LONG).await, [false, true], "each lock for itself");
    assert_eq!(hold(&*stage.a, &["x"], "a", LONG).await, [true], "the holder keeps it");
    stage.a.let_go(&["x", "y"], "a").await.expect("an answer");
    assert_eq!(hold(&*stage.b, &["x", "y"], "b", LONG).await, [true, true]);
    assert_eq!(hold(&*stage.a, &[], "a", LONG).await, [] as [bool; 0]);
}

pub async fn a_lock_that_nobody_keeps_is_free_again(stage: Stage) {
    let short = Duration::from_millis(400);
    assert_eq!(hold(&*stage.a, &["x"], "a", short).await, [true]);
    // Kept in time, and so for longer than it was taken for.
    assert_eq!(hold(&*stage.a, &["x"], "a", Duration::from_millis(2_000)).await, [true]);
    stage.pass(Duration::from_millis(500));
    assert_eq!(hold(&*stage.b, &["x"], "b", LONG).await, [false]);
    stage.pass(Duration::from_millis(1_600));
    assert_eq!(hold(&*stage.b, &["x"], "b", LONG).await, [true]);
    assert_eq!(hold(&*stage.a, &["x"], "a", LONG).await, [false], "whoever was too late does not get it back");
}

pub async fn only_the_holder_can_give_a_lock_back(stage: Stage) {
    assert_eq!(hold(&*stage.a, &["x"], "a", LONG).await, [true]);
    stage.b.let_go(&["x", "nobody's"], "b").await.expect("an answer");
    assert_eq!(hold(&*stage.b, &["x"], "b", LONG).await, [false]);
}

fn snapshot(name: &str) -> WorkersSnapshot {
    let profile = WorkerProfile {
        worker: name.into(),
        pool: "gpu".into(),
        topics: vec!["job.*".into()],
        capabilities: BTreeSet::from([Arc::from("cuda")]),
        labels: BTreeMap::from([(Arc::from("region"), Arc::from("eu"))]),
        slots: 8,
        in_process: false,
        lost_after_ms: None,
        owner: None,
    };
    let load = Load { cpu: Some(40), gpu: None, memory: Some(71) };
    let (session, epoch) = (format!("session-of-{name}").into(), 7);
    let seen = Sighting {
        session,
        epoch,
        busy: 3,
        active_jobs: 2,
        load,
        attached: true,
        draining: false,
        heard_ms_ago: 900,
        slots: 16,
        said: 7,
        claimed: Some(7),
        leaving: vec!["stopped".into()],
    };
    WorkersSnapshot { workers: vec![SnapshotWorker { profile: Arc::new(profile), seen }] }
}

pub async fn the_latest_snapshot_of_workers_is_read_with_its_age(stage: Stage) {
    assert_eq!(stage.a.kept_workers().await.expect("an answer"), None);
    stage.a.keep_workers(&snapshot("first")).await.expect("kept");
    stage.a.keep_workers(&snapshot("second")).await.expect("kept");
    stage.pass(Duration::from_millis(300));
    let (found, age) = stage.b.kept_workers().await.expect("an answer").expect("a snapshot");
    assert_eq!(found, snapshot("second"));
    assert!((250..25_000).contains(&age.as_millis()), "{age:?}");
}
