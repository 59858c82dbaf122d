//! Pools in real processes: a file that is edited while work flows, a worker that is sent away.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use lockgate_proto::v1::JobState;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::harness::{Client, PATIENCE, Server, binary, get, job, submit, until, until_idle, wait_for_jobs};

/// Two pools, of which the first takes what flows here.
fn to_pool(name: &str, other: &str) -> String {
    format!("topics: {{job.noop: {name}, job.echo: {other}}}\npools: {{{name}: {{}}, {other}: {{}}}}\n")
}

fn write(path: &Path, text: &str) {
    // As editors do it: the file is never seen half written.
    let draft = path.with_extension("draft");
    std::fs::write(&draft, text).expect("written");
    std::fs::rename(draft, path).expect("renamed");
}

/// Submits 1,000 jobs a second until told to stop. How many.
async fn flow(mut client: Client, mut stop: oneshot::Receiver<()>) -> u64 {
    let mut beats = tokio::time::interval(Duration::from_millis(50));
    let mut sent = 0;
    while stop.try_recv().is_err() {
        beats.tick().await;
        let jobs = (sent..sent + 50).map(|n| job(&format!("job-{n}"), "job.noop", ""));
        submit(&mut client, jobs.collect()).await.expect("submitted");
        sent += 50;
    }
    sent
}

#[tokio::test]
async fn a_pools_file_is_followed_while_1000_jobs_a_second_flow_and_nothing_is_lost_or_misrouted() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("pools.yaml");
    write(&file, &to_pool("first", "second"));
    let server = Server::start(&["--no-worker", "--pools", file.to_str().expect("UTF-8")]).await;
    let _first = server.worker("first-worker", 16, &["--pool", "first"]);
    let _second = server.worker("second-worker", 16, &["--pool", "second"]);
    let mut client = server.client().await;
    let (stop, stopped) = oneshot::channel();
    let flowing = tokio::spawn(flow(server.client().await, stopped));
    wait_for_jobs(&mut client, 200).await;
    write(&file, &to_pool("second", "first"));
    server.wait_for_output(&["pools", "history"], "      2  pools:").await;
    submit(&mut client, vec![job("after", "job.noop", "")]).await.expect("submitted");
    let in_force_at = get(&mut client, "after").await.submitted_at_ms;
    until(&mut client, "after", |job| job.ended_at_ms.is_some()).await;
    stop.send(()).expect("it flows");
    let sent = flowing.await.expect("every page was taken");
    until_idle(&mut client).await;

    let mut workers = BTreeSet::new();
    for n in 0..sent {
        let job = get(&mut client, &format!("job-{n}")).await;
        assert_eq!((job.state(), job.attempts), (JobState::Succeeded, 1), "{job:?}");
        let attempt = &job.history[0];
        let late = attempt.dispatched_at_ms > Some(in_force_at);
        assert!(!late || attempt.worker_id == "second-worker", "sent by pools that are no longer in force: {job:?}");
        workers.insert(attempt.worker_id.clone());
    }
    assert_eq!(workers.into_iter().collect::<Vec<_>>(), ["first-worker", "second-worker"]);
}

#[tokio::test]
async fn a_pool_is_paused_drained_and_resumed_while_1000_jobs_a_second_flow() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("pools.yaml");
    write(&file, "topics: {job.noop: [first, second]}\npools: {first: {}, second: {}}\n");
    let server = Server::start(&["--no-worker", "--pools", file.to_str().expect("UTF-8")]).await;
    let _first = server.worker("first-worker", 64, &["--pool", "first"]);
    let _second = server.worker("second-worker", 64, &["--pool", "second"]);
    let mut client = server.client().await;
    let (stop, stopped) = oneshot::channel();
    let flowing = tokio::spawn(flow(server.client().await, stopped));
    wait_for_jobs(&mut client, 200).await;
    let said = async |verb: &str| {
        let output = server.cli(&["pools", verb, "first"]).await;
        assert!(output.status.success(), "{output:?}");
    };
    said("pause").await;
    submit(&mut client, vec![job("while-paused", "job.noop", "")]).await.expect("submitted");
    server.wait_for_output(&["why", "while-paused"], "pool_paused").await;
    said("resume").await;
    until(&mut client, "while-paused", |job| job.ended_at_ms.is_some()).await;
    said("drain").await;
    submit(&mut client, vec![job("while-draining", "job.noop", "")]).await.expect("submitted");
    until(&mut client, "while-draining", |job| job.ended_at_ms.is_some()).await;
    said("resume").await;
    stop.send(()).expect("it flows");
    let sent = flowing.await.expect("every page was taken");
    until_idle(&mut client).await;

    assert_eq!(get(&mut client, "while-draining").await.history[0].worker_id, "second-worker", "it was passed on");
    for n in 0..sent {
        let job = get(&mut client, &format!("job-{n}")).await;
        assert_eq!((job.state(), job.attempts), (JobState::Succeeded, 1), "{job:?}");
    }
}

#[tokio::test]
async fn a_server_whose_pools_do_not_know_its_worker_comes_up_without_it() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("pools.yaml");
    write(&file, &to_pool("first", "second"));
    let path = file.to_str().expect("UTF-8");
    let server = Server::start(&["--pools", path]).await;
    assert_eq!(server.banner["worker_slots"], 0);
    assert!(server.banner["pools"].as_str().is_some_and(|snapshot| snapshot.starts_with("pools:")), "{}", server.banner);

    let server = Server::start(&["--pools", path, "--worker-pool", "first"]).await;
    assert_eq!(server.banner["worker_slots"], 16);
    let output = server.cli(&["submit", "job.noop", "--wait"]).await;
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn a_faulty_pools_file_stops_the_start_and_every_fault_is_told() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("pools.yaml");
    write(&file, "topics: {job.x: a}\npools: {b: {}}\nlimits: none\n");
    let refused = binary()
        .args(["serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .arg("--pools")
        .arg(&file)
        .output()
        .await
        .expect("it runs");
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refused.stderr);
    for fault in ["pools.yaml:1: ", "pools.yaml:2: ", "pools.yaml:3: "] {
        assert!(text.contains(fault), "{fault} is not in {text}");
    }
}

#[tokio::test]
async fn a_worker_that_is_drained_finishes_what_it_holds_and_leaves() {
    let server = Server::start(&["--no-worker"]).await;
    let mut worker = server.worker("leaving", 2, &[]);
    let mut client = server.client().await;
    submit(&mut client, vec![job("held", "job.sleep", r#"{"ms":1000}"#)]).await.expect("submitted");
    until(&mut client, "held", |job| job.state() == JobState::Running).await;
    let told = server.cli(&["workers", "drain", "leaving"]).await;
    assert!(told.status.success(), "{told:?}");
    submit(&mut client, vec![job("later", "job.noop", "")]).await.expect("submitted");

    let left = tokio::time::timeout(PATIENCE, worker.wait()).await.expect("it leaves in time").expect("a status");
    assert_eq!(left.code(), Some(0));
    let held = get(&mut client, "held").await;
    assert_eq!((held.state(), held.attempts), (JobState::Succeeded, 1), "{held:?}");
    assert_eq!(get(&mut client, "later").await.state(), JobState::Scheduled, "a worker that leaves gets nothing new");
    let _next = server.worker("next", 2, &[]);
    until(&mut client, "later", |job| job.state() == JobState::Succeeded).await;
}
