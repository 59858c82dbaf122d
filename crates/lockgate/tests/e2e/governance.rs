//! Policy in a real process: the story, a kernel that dies, a crash before a scan, an emergency.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockgate_proto::v1::{self, JobState};
use lockgate_worker::{Act, Context, Payload, Worker};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use super::harness::{Client, PATIENCE, Server, all_jobs, get, job, submit, until, until_idle, wait_for_jobs};

fn file(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

#[tokio::test]
async fn the_story_of_governance_goes_as_it_is_told() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/governance/story.sh");
    let mut story = tokio::process::Command::new("bash");
    let run = story.arg(script).env("LOCKGATE", env!("CARGO_BIN_EXE_lockgate")).kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE, run).await.expect("it ends in time").expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
}

const ALLOW: &str = "version: 1\ndefault: {decision: allow, reason: fine}\n";

/// Where the breaker of jobs went, oldest first, by the record.
async fn breaker_moves(server: &Server) -> Vec<String> {
    let listed = server.cli(&["audit", "list", "--json"]).await;
    assert!(listed.status.success(), "{listed:?}");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let mut rows: Vec<&Value> = listed["rows"].as_array().expect("rows").iter().collect();
    rows.sort_by_key(|row| row["id"].as_i64());
    let moved = rows.into_iter().filter(|row| row["action"] == "breaker_moved" && row["subject"] == "input");
    moved.map(|row| row["detail"]["to"].as_str().expect("a state").to_owned()).collect()
}

/// Waits until it went as wanted.
async fn until_moved(server: &Server, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
    let deadline = Instant::now() + 3 * PATIENCE;
    loop {
        let moves = breaker_moves(server).await;
        if wanted(&moves) {
            return moves;
        }
        assert!(Instant::now() < deadline, "{moves:?}");
    }
}

/// With `LOCKGATE_SOAK_KERNEL` the breaker stays open for as long as in real life.
#[tokio::test]
async fn while_the_kernel_is_dead_nothing_runs_and_when_it_is_back_everything_does() {
    let retry = if std::env::var_os("LOCKGATE_SOAK_KERNEL").is_some() { "30s" } else { "1s" };
    let folder = TempDir::new().expect("a folder");
    let policy = file(&folder, "policy.yaml", ALLOW);
    let mut kernel = Server::start(&["--roles", "kernel", "--policy", text(&policy)]).await;
    let address = kernel.api.trim_start_matches("http://").to_owned();
    let remote = ["--safety-kernel", &address, "--safety-kernel-insecure", "--safety-kernel-retry", retry];
    let server = Server::start(&remote).await;
    let mut client = server.client().await;
    let noop = |n: usize| job(&format!("job-{n}"), "job.noop", "");
    submit(&mut client, (0..50).map(noop).collect()).await.expect("submitted");
    until_idle(&mut client).await;

    // Killed while jobs come in.
    let mut busy = client.clone();
    let load = tokio::spawn(async move {
        for n in 50..350 {
            submit(&mut busy, vec![noop(n)]).await.expect("submitted");
        }
    });
    wait_for_jobs(&mut client, 100).await;
    kernel.crash().await;
    load.await.expect("all were submitted");
    submit(&mut client, (350..400).map(|n| job(&format!("job-{n}"), "job.noop", "")).collect()).await.expect("submitted");
    let opened = until_moved(&server, |moves| !moves.is_empty()).await;
    assert_eq!(opened[0], "open");
    let shown = server.cli(&["breaker", "--json"]).await;
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["breakers"][0]["failures"], 3, "three failed calls were enough: {shown}");
    // Away for longer than the breaker is open: a probe failed.
    until_moved(&server, |moves| moves.iter().filter(|to| *to == "open").count() >= 2).await;
    let waiting = all_jobs(&mut client).await.into_iter().filter(|job| job.state() == JobState::Pending).count();
    assert!(waiting >= 50, "none of those that came since runs without a verdict: {waiting}");
    server.wait_for_output(&["why", "job-399"], "Safety kernel unavailable").await;

    kernel.start_again().await;
    let closed = until_moved(&server, |moves| moves.last().is_some_and(|to| to == "closed")).await;
    assert_eq!(closed[closed.len() - 2..], ["half_open", "closed"], "{closed:?}");
    until_idle(&mut client).await;
    let jobs = all_jobs(&mut client).await;
    assert_eq!(jobs.len(), 400);
    for job in jobs {
        assert_eq!((job.state(), job.attempts, job.failures), (JobState::Succeeded, 1, 0), "{job:?}");
    }
}

#[tokio::test]
async fn a_kernel_elsewhere_judges_the_jobs_of_runs_and_what_undoes_them() {
    let folder = TempDir::new().expect("a folder");
    let policy = file(&folder, "policy.yaml", ALLOW);
    let kernel = Server::start(&["--roles", "kernel", "--policy", text(&policy)]).await;
    let address = kernel.api.trim_start_matches("http://").to_owned();
    let server = Server::start(&["--safety-kernel", &address, "--safety-kernel-insecure"]).await;
    let dag = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dags/travel-booking.yaml");
    assert!(server.cli(&["dag", "apply", text(&dag)]).await.status.success());
    let start = ["dag", "start", "travel-booking", "--param", "car_failures=1", "--watch"];
    let undone = tokio::time::timeout(PATIENCE, server.cli(&start)).await.expect("it is over in time");
    assert!(String::from_utf8_lossy(&undone.stdout).contains("COMPENSATED"), "{undone:?}");
}

const NO_EVIL: &str = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - {id: no-evil, match: {topics: [action.url], when: \"payload.value.contains('evil')\"}, decision: deny, reason: an evil place}
";

#[tokio::test]
async fn a_worker_asks_before_it_acts_and_goes_on_only_with_a_yes() {
    let folder = TempDir::new().expect("a folder");
    let policy = file(&folder, "policy.yaml", NO_EVIL);
    let server = Server::start(&["--no-worker", "--policy", text(&policy)]).await;
    let worker = Worker::connect(server.api.clone()).handle("fetch", |context: Context, payload: Payload| async move {
        let url: String = payload.json()?;
        context.check(Act::Tool("browser"), &json!({})).await?;
        context.check(Act::Url(&url), &json!({ "method": "GET" })).await?;
        Ok("fetched")
    });
    let running = tokio::spawn(worker.run_until(std::future::pending()));
    let mut client = server.client().await;
    let fetch = |id: &str, url: &str| job(id, "fetch", &json!(url).to_string());
    submit(&mut client, vec![fetch("good", "https://good.example"), fetch("bad", "https://evil.example")])
        .await
        .expect("taken");
    let good = until(&mut client, "good", |job| job.ended_at_ms.is_some()).await;
    assert_eq!((good.state(), &*good.result_json), (JobState::Succeeded, br#""fetched""#.as_slice()));
    let bad = until(&mut client, "bad", |job| job.ended_at_ms.is_some()).await;
    assert_eq!((bad.state(), bad.attempts), (JobState::Failed, 1), "no retry changes a refusal");
    let why = server.cli(&["why", "bad"]).await;
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.contains("no-evil") && why.contains("an evil place"), "{why}");
    server.wait_for_output(&["audit", "list"], "action_refused").await;
    running.abort();
}

#[tokio::test]
async fn a_byte_flipped_on_disk_is_found_and_its_place_named() {
    let folder = TempDir::new().expect("a folder");
    let policy = file(&folder, "unmistakable.yaml", ALLOW);
    let mut server = Server::start(&["--no-worker"]).await;
    assert!(server.cli(&["policy", "apply", text(&policy)]).await.status.success());
    server.wait_for_output(&["audit", "verify"], "intact  1 rows").await;
    server.stop().await;
    let flipped =
        std::fs::read_dir(server.folder()).expect("read").map(|entry| flip(&entry.expect("an entry").path())).sum::<usize>();
    assert!(flipped > 0, "the row is on disk as it was written");
    server.start_again().await;
    let verified = server.cli(&["audit", "verify"]).await;
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert_eq!(verified.status.code(), Some(5), "{said}");
    assert!(said.contains("audit block 1 (rows 1 to 1) is broken: its rows are not the ones"), "{said}");
}

/// Changes one letter of the row in a file, wherever it stands.
fn flip(path: &Path) -> usize {
    let Ok(mut bytes) = std::fs::read(path) else { return 0 };
    let marker = b"unmistakable.yaml";
    let places: Vec<usize> =
        (0..bytes.len().saturating_sub(marker.len())).filter(|at| bytes[*at..].starts_with(marker)).collect();
    places.iter().for_each(|at| bytes[*at] ^= 1);
    if !places.is_empty() {
        std::fs::write(path, bytes).expect("written");
    }
    places.len()
}

const CARDS: &str = "
version: 1
default: {decision: allow, reason: fine}
output: {fail_mode: closed, rules: [{id: cards, match: {scan: [credit_card]}, decision: quarantine, reason: a card}]}
";

#[tokio::test]
async fn a_crash_after_the_end_does_not_skip_the_scan() {
    let folder = TempDir::new().expect("a folder");
    let policy = file(&folder, "policy.yaml", CARDS);
    let mut server = Server::start(&["--policy", text(&policy), "--worker-slots", "64"]).await;
    let mut client = server.client().await;
    let cards = (0..300).map(|n| job(&format!("job-{n}"), "job.echo", r#""4111 1111 1111 1111""#)).collect();
    submit(&mut client, cards).await.expect("submitted");
    until(&mut client, "job-20", |job| job.ended_at_ms.is_some()).await;
    server.crash_and_restart().await;
    let mut client = server.client().await;
    until_idle(&mut client).await;
    for n in 0..300 {
        let held = until(&mut client, &format!("job-{n}"), |job| job.state() == JobState::OutputQuarantined).await;
        assert!(held.result_json.is_empty(), "nothing comes out: {held:?}");
    }
}

const EMERGENCY: &str = "
version: 1
default: {decision: deny, reason: an emergency}
";

#[tokio::test]
async fn after_an_emergency_deny_nothing_that_waited_starts() {
    const JOBS: u64 = 30_000;
    let folder = TempDir::new().expect("a folder");
    let (calm, emergency) = (file(&folder, "calm.yaml", ALLOW), file(&folder, "emergency.yaml", EMERGENCY));
    let server = Server::start(&["--no-worker", "--policy", text(&calm)]).await;
    let mut client = server.client().await;
    for page in 0..JOBS / 10_000 {
        let jobs = (0..10_000).map(|n| job(&format!("job-{}", page * 10_000 + n), "job.sleep", r#"{"ms": 500}"#));
        submit(&mut client, jobs.collect()).await.expect("submitted");
    }
    wait_for_jobs(&mut client, JOBS).await;
    // At work before, during and after it.
    let _worker = server.worker("busy", 64, &[]);
    until_ended(&mut client, 50).await;
    let applied = server.cli(&["policy", "apply", text(&emergency)]).await;
    assert!(applied.status.success(), "{applied:?}");
    #[expect(clippy::disallowed_methods, reason = "the server's clock is this machine's")]
    let acknowledged = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();

    until_ended(&mut client, JOBS).await;
    let queues = client.list_queues(v1::ListQueuesRequest {}).await.expect("answered").into_inner();
    assert_eq!((queues.live, queues.ended), (0, JOBS));
    let (ran, denied): (Vec<_>, Vec<_>) =
        all_jobs(&mut client).await.into_iter().partition(|job| job.state() == JobState::Succeeded);
    assert!((50..5_000).contains(&ran.len()), "{} ran", ran.len());
    assert!(denied.iter().all(|job| job.state() == JobState::Denied));
    for job in ran {
        let job = get(&mut client, &job.job_id).await;
        let started = job.history.iter().filter_map(|attempt| attempt.started_at_ms).max().expect("it ran");
        assert!(u128::try_from(started).expect("after 1970") <= acknowledged, "started after the acknowledgement: {job:?}");
    }
}

/// Waits until so many jobs ended.
async fn until_ended(client: &mut Client, count: u64) {
    let deadline = Instant::now() + 4 * PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    loop {
        let queues = client.list_queues(v1::ListQueuesRequest {}).await.expect("answered").into_inner();
        if queues.ended >= count {
            return;
        }
        assert!(Instant::now() < deadline, "too few ended: {queues:?}");
        pause.tick().await;
    }
}

/// A kernel that never was there: nothing listens on the port.
const DEAD_KERNEL: [&str; 3] = ["--safety-kernel", "127.0.0.1:1", "--safety-kernel-insecure"];

async fn why(server: &Server, id: &str) -> Value {
    let told = server.cli(&["--json", "why", id]).await;
    serde_json::from_slice(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"))
}

#[tokio::test]
async fn a_dead_kernel_is_called_unreachable_with_its_error_and_named_in_the_banner() {
    let server = Server::start(&DEAD_KERNEL).await;
    let banner = &server.banner;
    assert_eq!((&banner["safety_kernel"], &banner["policy"]), (&json!("127.0.0.1:1"), &Value::Null), "{banner}");
    let mut client = server.client().await;
    submit(&mut client, vec![job("waits", "job.noop", "")]).await.expect("submitted");
    server.wait_for_output(&["breaker"], "open").await;
    let told = why(&server, "waits").await;
    assert_eq!(told["reason"], "safety_kernel_unavailable", "{told}");
    let summary = told["summary"].as_str().expect("a sentence");
    assert!(summary.contains("circuit open") && summary.contains("unreachable: "), "{told}");
    // Judged again after five seconds, and the circuit stays open for thirty: what comes next is the probe.
    let deadline = Instant::now() + PATIENCE;
    let mut looks = tokio::time::interval(Duration::from_millis(200));
    let due = get(&mut client, "waits").await.submitted_at_ms + 5_000;
    while now_ms() < due + 500 {
        let told = why(&server, "waits").await;
        let next = told["next_at"].as_str().map(|at| at.parse::<jiff::Timestamp>().expect("a time").as_millisecond());
        assert!(next.is_none_or(|next| next > now_ms() - 2_000), "in the past: {told}");
        assert!(Instant::now() < deadline, "time stands still");
        looks.tick().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the server's clock is this machine's")]
fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_millis()).expect("a date")
}

#[tokio::test]
async fn what_runs_past_a_dead_kernel_says_which_error_let_it_through() {
    let server = Server::start(&[&DEAD_KERNEL[..], &["--fail-mode", "open"]].concat()).await;
    let mut client = server.client().await;
    let mut reasons = Vec::new();
    for n in 0..12 {
        let id = format!("job-{n}");
        submit(&mut client, vec![job(&id, "job.noop", "")]).await.expect("submitted");
        // Its result is held until a kernel says which rules hold for results.
        let passed = until(&mut client, &id, |job| job.platform_labels.contains_key("safety_bypass_reason")).await;
        reasons.push(passed.platform_labels["safety_bypass_reason"].clone());
    }
    let (open, failed): (Vec<&String>, Vec<&String>) = reasons.iter().partition(|why| why.contains("circuit open"));
    assert!(failed.iter().all(|why| why.contains("safety kernel unreachable: ")), "{reasons:?}");
    assert!(open.iter().all(|why| why.ends_with("-- safety kernel circuit open")), "{reasons:?}");
    assert!(!open.is_empty(), "after three failures it is not asked any more: {reasons:?}");
}
