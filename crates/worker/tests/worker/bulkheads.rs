//! Slots of their own for groups of topics, and slots that follow the load.

use std::time::Duration;

use lockgate_proto::v1::result::Outcome;
use lockgate_worker::{AdaptiveSlots, JobError, Worker};

use crate::edge::{Attached, Edge, Manners, job};
use crate::running::Running;

fn worker(edge: &Edge) -> Worker {
    Worker::connect(edge.url())
        .worker_id("w")
        .slots(2)
        .handle("slow", |_, _| std::future::pending::<Result<(), _>>())
        .handle("quick", |_, payload| async { Ok(payload) })
}

#[tokio::test]
async fn a_slow_group_takes_no_slot_from_others() {
    let mut edge = Edge::start(Manners::default()).await;
    let _running = Running::start(worker(&edge).bulkhead("io", 1, ["slow"]));
    let mut streams: Vec<Attached> = vec![edge.accept().await, edge.accept().await];
    streams.sort_by_key(|stream| stream.hello.worker_id.clone());
    let said: Vec<_> = streams.iter().map(|it| (&*it.hello.worker_id, it.hello.slots, it.hello.topics.join(" "))).collect();
    assert_eq!(said, [("w", 2, "quick".to_owned()), ("w.io", 1, "slow".to_owned())]);
    let sessions: Vec<_> = streams.iter().map(|stream| stream.hello.session.clone()).collect();
    assert_eq!(sessions[1], format!("{}.io", sessions[0]));
    streams[1].assign([job("hangs", "slow", ""), job("waits", "slow", "")]);
    streams[1].beat("a full group", |beat| beat.active_jobs == 1).await;
    streams[0].assign([job("runs", "quick", "1")]);
    let results = streams[0].results(1).await;
    assert!(matches!(results["runs"], Outcome::Succeeded(_)), "{results:?}");
}

#[tokio::test]
async fn slots_follow_the_time_of_handlers_within_their_bounds() {
    let mut edge = Edge::start(Manners::default()).await;
    let target_p95 = Some(Duration::from_millis(1));
    let adaptive = AdaptiveSlots { min: 2, max: 8, target_p95 };
    let slow = |_, _| wait_for_longer_than_allowed();
    let _running = Running::start(worker(&edge).slots(64).adaptive_slots(adaptive).handle("nap", slow));
    let mut stream = edge.accept().await;
    assert_eq!(stream.hello.slots, 8, "it begins within its bounds");
    for slots in (2..8).rev() {
        // Handlers take longer than they may: one slot less after each look that saw enough of them.
        stream.assign((0..40).map(|n| job(&format!("{slots}-{n}"), "nap", "")));
        stream.beat("fewer slots", |beat| beat.slots == Some(slots)).await;
    }
    stream.assign((0..40).map(|n| job(&format!("last-{n}"), "nap", "")));
    stream.results(40).await;
    let beat = stream.beat("its least", |beat| beat.active_jobs == 0).await;
    assert_eq!(beat.slots, Some(2));
}

/// What a slow handler does; the clock is real, for that is what is measured.
async fn wait_for_longer_than_allowed() -> Result<(), JobError> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    Ok(())
}
