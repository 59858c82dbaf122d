//! Policy in a real process: the story, a kernel that dies, a crash before a scan, an emergency.

use std::path::{Path, PathBuf};

use lockgate_proto::v1::{self, JobState};
use tempfile::TempDir;

use super::harness::{PATIENCE, Server, all_jobs, binary, job, submit, until, until_idle, wait_for_jobs};

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

#[tokio::test]
async fn while_the_kernel_is_dead_nothing_runs_and_when_it_is_back_everything_does() {
    let folder = TempDir::new().expect("a folder");
    let policy = file(&folder, "policy.yaml", ALLOW);
    let mut kernel = Server::start(&["--roles", "kernel", "--policy", text(&policy)]).await;
    let address = kernel.api.trim_start_matches("http://").to_owned();
    let remote = ["--safety-kernel", &address, "--safety-kernel-insecure", "--safety-kernel-retry", "1s"];
    let server = Server::start(&remote).await;
    let mut client = server.client().await;
    let noop = |n: usize| job(&format!("job-{n}"), "job.noop", "");
    submit(&mut client, (0..50).map(noop).collect()).await.expect("submitted");
    until_idle(&mut client).await;

    kernel.crash().await;
    submit(&mut client, (50..350).map(noop).collect()).await.expect("submitted");
    server.wait_for_output(&["breaker"], "open").await;
    let waiting = all_jobs(&mut client).await.into_iter().filter(|job| job.state() == JobState::Pending).count();
    assert_eq!(waiting, 300, "none runs without a verdict");
    let why = server.cli(&["why", "job-60"]).await;
    assert!(String::from_utf8_lossy(&why.stdout).contains("Safety kernel unavailable"), "{why:?}");

    kernel.start_again().await;
    until_idle(&mut client).await;
    for job in all_jobs(&mut client).await {
        assert_eq!((job.state(), job.attempts, job.failures), (JobState::Succeeded, 1, 0), "{job:?}");
    }
    server.wait_for_output(&["breaker"], "input    closed").await;
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
        let jobs = (0..10_000).map(|n| job(&format!("job-{}", page * 10_000 + n), "job.noop", ""));
        submit(&mut client, jobs.collect()).await.expect("submitted");
    }
    wait_for_jobs(&mut client, JOBS).await;
    let applied = server.cli(&["policy", "apply", text(&emergency)]).await;
    assert!(applied.status.success(), "{applied:?}");

    let _worker = server.worker("late", 64, &[]);
    until_idle(&mut client).await;
    let letters = client.list_queues(v1::ListQueuesRequest {}).await.expect("answered").into_inner();
    assert_eq!((letters.live, letters.ended), (0, JOBS));
    for n in [0, 1, JOBS / 2, JOBS - 1] {
        let denied = until(&mut client, &format!("job-{n}"), |job| job.ended_at_ms.is_some()).await;
        assert_eq!(denied.state(), JobState::Denied, "{denied:?}");
        assert!(denied.history.iter().all(|attempt| attempt.dispatched_at_ms.is_none()), "{denied:?}");
    }
    let started = binary().args(["--server", &server.api, "--json", "jobs", "--state", "SUCCEEDED"]).output().await;
    assert!(!String::from_utf8_lossy(&started.expect("it runs").stdout).contains("job-"), "none ran");
}
