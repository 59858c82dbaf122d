//! The data folder belongs to one process.

use std::time::Duration;

use lockgate_proto::v1;
use tokio::process::Command;
use tokio::time::Instant;

use super::harness::{PATIENCE, Server, binary, job, submit, until};

#[tokio::test]
async fn a_second_server_on_the_same_folder_is_refused_with_a_clear_error() {
    let server = Server::start(&["--no-worker"]).await;
    let second = binary()
        .args(["serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data"])
        .arg(server.folder())
        .output()
        .await
        .expect("it runs");
    assert!(!second.status.success());
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(text.contains("another lockgate process uses this data folder"), "{text}");
}

#[tokio::test]
async fn other_machines_are_kept_out_until_somebody_insists() {
    let refused = binary()
        .args(["serve", "--listen", "0.0.0.0:0", "--metrics", "127.0.0.1:0", "--data", "never-made"])
        .output()
        .await
        .expect("it runs");
    assert!(!refused.status.success());
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("--insecure-no-auth"), "{text}");
    assert!(!std::path::Path::new("never-made").exists());
}

/// The first child of a process, as soon as it has one.
async fn wait_for_child(pid: u32) -> String {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    loop {
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process") {
            let children = thread.expect("a thread").path().join("children");
            let children = std::fs::read_to_string(children).unwrap_or_default();
            if let Some(child) = children.split_whitespace().next() {
                return child.to_owned();
            }
        }
        assert!(Instant::now() < deadline, "no child");
        pause.tick().await;
    }
}

#[tokio::test]
async fn a_command_that_outlives_a_killed_server_does_not_keep_the_folder_or_the_port() {
    let mut server = Server::start(&["--allow-exec", "--drain", "1ms"]).await;
    let mut client = server.client().await;
    let command = job("long", "job.exec", r#"{"command": ["sleep", "30"]}"#);
    submit(&mut client, vec![command]).await.expect("submitted");
    until(&mut client, "long", |job| job.state() == v1::JobState::Running).await;
    let child = wait_for_child(server.pid()).await;
    server.crash().await;
    assert!(std::path::Path::new(&format!("/proc/{child}")).exists(), "it outlives the server");

    server.start_again().await;
    let mut client = server.client().await;
    until(&mut client, "long", |job| job.attempts == 1).await;
    let ended = Command::new("kill").args(["-KILL", &child]).status().await.expect("kill runs");
    assert!(ended.success(), "it was there all the while");
    let cancel = v1::CancelJobRequest { job_id: "long".to_owned(), ..v1::CancelJobRequest::default() };
    client.cancel_job(cancel).await.expect("cancelled");
    server.stop().await;
}
