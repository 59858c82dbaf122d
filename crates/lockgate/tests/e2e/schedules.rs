//! Schedules in a real process.

use serde_json::Value;

use super::harness::{PATIENCE, Server};

const FILE: &str = "version: 1
schedules:
  tick:
    every: 1s
    overlap: allow
    misfire: all
    job: { topic: job.echo, payload: { at: \"${nominal}\" } }
";

async fn slots(server: &Server) -> Vec<Value> {
    let output = server.cli(&["--json", "schedule", "slots", "tick", "--limit", "1000"]).await;
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    answer["slots"].as_array().expect("slots").clone()
}

async fn wait_for_started(server: &Server, count: usize) -> Vec<Value> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let started: Vec<Value> = slots(server).await.into_iter().filter(|slot| slot["outcome"] == "STARTED").collect();
        if started.len() >= count {
            return started;
        }
        assert!(tokio::time::Instant::now() < deadline, "too few: {started:?}");
    }
}

#[tokio::test]
async fn times_are_kept_once_each_through_crashes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("schedules.yaml");
    std::fs::write(&file, FILE).expect("written");
    let mut server = Server::start(&[]).await;
    let applied = server.cli(&["schedule", "apply", &file.display().to_string()]).await;
    assert!(String::from_utf8_lossy(&applied.stdout).contains("created"), "{applied:?}");
    for count in [2, 4, 6] {
        wait_for_started(&server, count).await;
        server.crash_and_restart().await;
    }
    let started = wait_for_started(&server, 7).await;
    // Every second has its slot, and every slot its own job.
    let mut nominals: Vec<jiff::Timestamp> =
        started.iter().map(|slot| slot["nominal"].as_str().expect("a time").parse().expect("RFC 3339")).collect();
    nominals.sort();
    assert!(nominals.windows(2).all(|two| two[1].as_second() == two[0].as_second() + 1), "{nominals:?}");
    let paused = server.cli(&["schedule", "pause", "tick"]).await;
    assert!(paused.status.success(), "{paused:?}");
    let started = slots(&server).await.len();
    let queues = server.client().await.list_queues(lockgate_proto::v1::ListQueuesRequest {}).await.expect("answered");
    let queues = queues.into_inner();
    assert_eq!(usize::try_from(queues.live + queues.ended), Ok(started), "as many jobs as slots");
    let slots = slots(&server).await;
    let last = slots.last().expect("some")["job_id"].as_str().expect("a job");
    server.wait_for_output(&["get", last], "SUCCEEDED").await;
    let shown = server.cli(&["schedule", "show", "tick"]).await;
    assert!(String::from_utf8_lossy(&shown.stdout).contains("every 1s"), "{shown:?}");
}

#[tokio::test]
async fn the_example_file_is_good() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/schedules.yaml");
    let output = super::harness::binary().args(["schedule", "lint"]).arg(path).output().await.expect("runs");
    assert!(output.status.success(), "{output:?}");
}
