//! Workers die, hang and come back.

use std::path::Path;
use std::time::Duration;

use lockgate_proto::v1::{self, JobState};
use tempfile::TempDir;
use tokio::time::Instant;

use super::harness::{PATIENCE, Server, get, job, signal, submit, until};

/// Four seconds of silence are enough here; ten are the default. The server asks for beats three times as often.
const LOST_SOON: [&str; 3] = ["--no-worker", "--lost-after", "4s"];

#[tokio::test]
async fn after_kill_9_of_a_worker_its_job_runs_elsewhere() {
    let server = Server::start(&LOST_SOON).await;
    let mut client = server.client().await;
    let mut doomed = server.worker("doomed", 1, &[]);
    submit(&mut client, vec![job("j", "job.sleep", r#"{"ms":30000}"#)]).await.expect("submitted");
    until(&mut client, "j", |job| job.state() == JobState::Running).await;
    let _heir = server.worker("heir", 1, &[]);
    doomed.kill().await.expect("killed");

    let job = until(&mut client, "j", |job| job.state() == JobState::Running && job.attempts == 2).await;
    let workers: Vec<&str> = job.history.iter().map(|attempt| attempt.worker_id.as_str()).collect();
    assert_eq!(workers, ["doomed", "heir"]);
    assert_eq!(job.history[0].reason, "agent_lost");
    assert_eq!(job.failures, 0, "the client's budget is not the platform's to spend");
}

#[tokio::test]
async fn the_late_result_of_a_worker_that_hung_changes_nothing() {
    let server = Server::start(&LOST_SOON).await;
    let mut client = server.client().await;
    let hung = server.worker("hung", 1, &["--capability", "probe"]);
    submit(&mut client, vec![job("j", "job.sleep", r#"{"ms":3000}"#)]).await.expect("submitted");
    until(&mut client, "j", |job| job.state() == JobState::Running).await;
    signal(&hung, "STOP").await;
    let _heir = server.worker("heir", 1, &[]);
    let ended = until(&mut client, "j", |job| job.ended_at_ms.is_some()).await;
    assert_eq!((ended.state(), ended.attempts), (JobState::Succeeded, 2), "{ended:?}");

    signal(&hung, "CONT").await;
    // A worker speaks over one stream, in order: the end of a job that only this one can run comes after the late result.
    let probe = v1::NewJob { requires: vec!["probe".to_owned()], ..job("probe", "job.noop", "null") };
    submit(&mut client, vec![probe]).await.expect("submitted");
    let probed = until(&mut client, "probe", |job| job.ended_at_ms.is_some()).await;
    assert_eq!(probed.history[0].worker_id, "hung");
    let after = get(&mut client, "j").await;
    assert_eq!(after.ended_at_ms, ended.ended_at_ms);
    assert_eq!(after.history, ended.history);
}

#[tokio::test]
async fn an_attempt_left_out_of_the_inventory_is_requeued() {
    let server = Server::start(&["--worker-slots", "4"]).await;
    let mut client = server.client().await;
    submit(&mut client, vec![job("hidden", "job.sleep", r#"{"ms":6000,"renew":false}"#)]).await.expect("submitted");
    let job = until(&mut client, "hidden", |job| job.attempts == 2).await;
    assert_eq!(job.history[0].reason, "agent_lost", "{job:?}");
}

#[tokio::test]
async fn a_result_in_the_journal_outlives_its_worker_and_the_server() {
    // The worker's first life must not count as lost before the second one speaks for it.
    let mut server = Server::start(&["--no-worker", "--lost-after", "60s"]).await;
    let folder = TempDir::new().expect("a folder");
    let journal = folder.path().join("results");
    let more = ["--journal", journal.to_str().expect("UTF-8")];
    let mut first = server.worker("first", 1, &more);
    let mut client = server.client().await;
    submit(&mut client, vec![job("j", "job.sleep", r#"{"ms":2000}"#)]).await.expect("submitted");
    until(&mut client, "j", |job| job.state() == JobState::Running).await;
    server.crash().await;
    wait_for_content(&journal).await;
    first.kill().await.expect("killed");

    let _second = server.worker("second", 1, &more);
    server.start_again().await;
    let job = until(&mut server.client().await, "j", |job| job.ended_at_ms.is_some()).await;
    assert_eq!((job.state(), job.attempts), (JobState::Succeeded, 1), "{job:?}");
}

#[tokio::test]
async fn a_worker_that_is_told_so_stops_what_must_not_outlive_its_lease() {
    // Longer than the worker takes to come back to the server that was started again.
    let mut server = Server::start(&["--no-worker", "--lost-after", "8s"]).await;
    let folder = TempDir::new().expect("a folder");
    let journal = folder.path().join("results");
    let more = ["--on-lease-loss", "job.*=stop", "--journal", journal.to_str().expect("UTF-8")];
    let _worker = server.worker("exclusive", 1, &more);
    let mut client = server.client().await;
    submit(&mut client, vec![job("j", "job.sleep", r#"{"ms":30000}"#)]).await.expect("submitted");
    until(&mut client, "j", |job| job.state() == JobState::Running).await;
    server.crash().await;
    wait_for_content(&journal).await;

    server.start_again().await;
    let job = until(&mut server.client().await, "j", |job| job.attempts == 2).await;
    assert_eq!(job.history[0].reason, "interrupted", "{job:?}");
}

#[tokio::test]
async fn a_worker_that_crashes_on_purpose_ends_as_if_killed_and_its_job_runs_elsewhere() {
    let server = Server::start(&LOST_SOON).await;
    let mut client = server.client().await;
    let mut doomed = server.worker("doomed", 1, &["--faults", "crash=1"]);
    submit(&mut client, vec![job("j", "job.noop", "null")]).await.expect("submitted");
    let status = tokio::time::timeout(PATIENCE, doomed.wait()).await.expect("it ends in time").expect("a status");
    assert_eq!(status.code(), Some(137), "{status}");

    let _heir = server.worker("heir", 1, &[]);
    let job = until(&mut client, "j", |job| job.ended_at_ms.is_some()).await;
    assert_eq!((job.state(), job.failures), (JobState::Succeeded, 0), "{job:?}");
}

#[tokio::test]
async fn errors_on_purpose_in_the_built_in_worker_are_failures_like_any_other() {
    let server = Server::start(&["--worker-faults", "error=1"]).await;
    let mut client = server.client().await;
    let once = v1::NewJob { max_attempts: Some(1), ..job("j", "job.noop", "null") };
    submit(&mut client, vec![once]).await.expect("submitted");
    let job = until(&mut client, "j", |job| job.ended_at_ms.is_some()).await;
    assert_eq!(job.state(), JobState::Failed, "{job:?}");
    assert!(job.last_error.as_ref().is_some_and(|error| error.message.contains("injected")), "{job:?}");
}

async fn wait_for_content(file: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while std::fs::metadata(file).is_ok_and(|data| data.len() == 0) {
        assert!(Instant::now() < deadline, "nothing was written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
