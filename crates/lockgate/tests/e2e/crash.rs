//! Promise 1 under kill -9: nothing acknowledged is lost, nothing ends twice.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use lockgate_proto::v1;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::harness::{Client, PATIENCE, Server, all_jobs, job, submit, until_idle};

/// Histories looked at side by side: there are thousands, and each takes a call.
const HISTORIES_AT_ONCE: usize = 32;

/// What a client that never stops has been promised.
#[derive(Default)]
struct Load {
    acknowledged: Mutex<BTreeSet<String>>,
    count: AtomicUsize,
    over: AtomicBool,
}

/// Submits batches for as long as the test lasts; a lost server only costs the batch under way.
async fn keep_submitting(api: String, load: Arc<Load>) {
    let mut serial = 0;
    let mut pause = tokio::time::interval(Duration::from_millis(5));
    while !load.over.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(api.clone()).await else {
            pause.tick().await;
            continue;
        };
        while !load.over.load(Ordering::Relaxed) {
            let batch = (serial..serial + 50).map(|n| job(&format!("load-{n}"), "job.noop", "null")).collect();
            serial += 50;
            let Ok(ids) = submit(&mut client, batch).await else { break };
            load.count.fetch_add(ids.len(), Ordering::Relaxed);
            load.acknowledged.lock().await.extend(ids);
        }
    }
}

/// Decides when to kill: a linear congruential generator, so that a seed can be tried again.
struct Chance(u64);

impl Chance {
    /// From `LOCKGATE_SOAK_SEED`, or new each time. A failing test shows what it printed.
    fn seeded() -> Self {
        let given = std::env::var_os("LOCKGATE_SOAK_SEED").and_then(|n| n.to_str()?.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0));
        println!("LOCKGATE_SOAK_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The low bits of such a generator repeat soon.
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

async fn until_acknowledged(load: &Load, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(5));
    while load.count.load(Ordering::Relaxed) < count {
        assert!(Instant::now() < deadline, "the load came to a halt");
        pause.tick().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_of_the_server_under_load_loses_and_doubles_nothing() {
    // `make soak` asks for more.
    let kills = std::env::var_os("LOCKGATE_SOAK_KILLS").and_then(|n| n.to_str()?.parse().ok()).unwrap_or(10);
    let mut server = Server::start(&["--worker-slots", "64"]).await;
    let load = Arc::new(Load::default());
    let submitting = tokio::spawn(keep_submitting(server.api.clone(), load.clone()));
    let mut chance = Chance::seeded();
    for _ in 0..kills {
        // Always somewhere else in the flow of commits.
        let more = chance.below(700);
        until_acknowledged(&load, load.count.load(Ordering::Relaxed) + more).await;
        server.crash_and_restart().await;
    }
    load.over.store(true, Ordering::Relaxed);
    submitting.await.expect("the load ends");

    let mut client = server.client().await;
    until_idle(&mut client).await;
    let acknowledged = load.acknowledged.lock().await.clone();
    let mut ended = BTreeSet::new();
    for job in all_jobs(&mut client).await {
        assert_eq!(job.state(), v1::JobState::Succeeded, "{job:?}");
        assert!(ended.insert(job.job_id.clone()), "there twice: {}", job.job_id);
    }
    let missing: Vec<_> = acknowledged.difference(&ended).collect();
    assert!(missing.is_empty(), "acknowledged and gone: {missing:?}");
    let histories = futures::stream::iter(&acknowledged).map(|id| {
        let mut client = client.clone();
        async move { (id, ends(&mut client, id).await) }
    });
    let doubled = histories.buffer_unordered(HISTORIES_AT_ONCE).filter(|(_, ends)| std::future::ready(*ends != 1));
    assert_eq!(doubled.collect::<Vec<_>>().await, [], "each must end exactly once");
}

/// Terminal events in a job's whole history.
async fn ends(client: &mut Client, id: &str) -> usize {
    let mut stream =
        client.watch_job(v1::WatchJobRequest { job_id: id.to_owned(), after: 0 }).await.expect("watched").into_inner();
    let mut ends = 0;
    while let Some(item) = stream.message().await.expect("events") {
        if let Some(v1::watch_job_response::Item::Event(event)) = item.item {
            ends +=
                usize::from(matches!(event.kind.as_str(), "succeeded" | "failed" | "timed_out" | "cancelled" | "denied"));
        }
    }
    ends
}
