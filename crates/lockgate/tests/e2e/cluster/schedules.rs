//! Schedules whose work ends at another process than the one that turns them.

use std::time::Duration;

use lockgate_proto::v1;

use super::super::harness::{Client, PATIENCE, Server, all_jobs, until_idle};
use super::stage::{Ground, client, worker};

const WAITING: usize = 20;
/// Without a hint from the process where a job ends, the next one is found by a look a second later.
const MUCH_SOONER_THAN_A_TICK_MS: i64 = 400;

async fn do_it(server: &Server, arguments: &[&str]) {
    let output = server.cli(arguments).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_goes_on_as_soon_as_a_job_ends_at_another_process() {
    let ground = Ground::start();
    let _turns = ground.process("orchestrator,scheduler", &[]).await;
    let gateway = ground.process("gateway", &[]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("schedules.yaml");
    // Long enough for its start to be told before its end: the next one must not take the one for the other.
    let job = "{topic: job.sleep, payload: {ms: 400}}";
    let line = format!("s: {{every: 1d, overlap: queue, queue: {WAITING}, job: {job}}}");
    std::fs::write(&file, format!("version: 1\nschedules:\n  {line}\n")).expect("written");
    do_it(&gateway, &["schedule", "apply", &file.display().to_string()]).await;
    // All of them wait for the first, which no worker takes yet.
    for _ in 0..WAITING {
        do_it(&gateway, &["schedule", "trigger", "s"]).await;
    }
    let mut client = client(&gateway).await;
    let _worker = worker("w", 4, &[&gateway]);
    let jobs = wait_for_ended(&mut client).await;
    let mut gaps: Vec<i64> =
        jobs.windows(2).map(|two| two[1].submitted_at_ms - two[0].ended_at_ms.expect("ended")).collect();
    gaps.sort_unstable();
    println!("{WAITING} drained; from the end of one to the start of the next, in ms: {gaps:?}");
    assert!(gaps[gaps.len() / 2] < MUCH_SOONER_THAN_A_TICK_MS, "most of them waited for a tick: {gaps:?}");
}

/// The rows are damaged in the database itself, under running processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_rows_fail_only_the_calls_that_name_them() {
    let ground = Ground::start();
    let server = ground.process("gateway,scheduler,orchestrator", &[]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("schedules.yaml");
    let lines = ["good", "bad"].map(|name| format!("  {name}: {{every: 1d, job: {{topic: job.noop}}}}\n")).concat();
    std::fs::write(&file, format!("version: 1\nschedules:\n{lines}")).expect("written");
    do_it(&server, &["schedule", "apply", &file.display().to_string()]).await;
    do_it(&server, &["schedule", "trigger", "good"]).await;
    do_it(&server, &["submit", "job.noop", "--job-id", "a"]).await;
    for damage in [
        "UPDATE schedules SET body = 'no JSON: plum' WHERE name = 'bad'",
        "UPDATE jobs_hot SET life = 'no JSON: plum' WHERE job_id = 'a'",
    ] {
        ground.sql(damage).await;
    }
    let listed = server.cli(&["schedule", "list"]).await;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.status.success() && text.contains("good") && !text.contains("bad"), "{listed:?}");
    do_it(&server, &["schedule", "show", "good"]).await;
    do_it(&server, &["schedule", "slots", "good"]).await;
    for named in [
        &["schedule", "show", "bad"][..],
        &["schedule", "pause", "bad"],
        &["schedule", "trigger", "bad"],
        &["get", "a"],
        &["cancel", "a"],
        &["why", "a"],
    ] {
        let refused = server.cli(named).await;
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && text.contains("is damaged and cannot be read"), "{named:?}: {refused:?}");
        assert!(text.contains("docs/runbooks/LockgateRowsUnreadable.md") && !text.contains("plum"), "{named:?}: {text}");
    }
    server.wait_for_output(&["health"], "rows_unreadable").await;
}

/// All of them, in the order in which they were started.
async fn wait_for_ended(client: &mut Client) -> Vec<v1::Job> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(50));
    loop {
        pause.tick().await;
        until_idle(client).await;
        let mut jobs = all_jobs(client).await;
        if jobs.len() == WAITING && jobs.iter().all(|job| job.state() == v1::JobState::Succeeded) {
            jobs.sort_by_key(|job| (job.submitted_at_ms, job.ended_at_ms));
            return jobs;
        }
        assert!(tokio::time::Instant::now() < deadline, "{} of {WAITING} ended", jobs.len());
    }
}
