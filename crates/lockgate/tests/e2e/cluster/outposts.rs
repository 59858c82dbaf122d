//! Workers that speak nothing but NATS: the example in Python, as a user starts it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use lockgate_proto::v1;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::super::harness::{Client, PATIENCE, Server, get, job, signal, submit, until, until_idle};
use super::stage::{Ground, client};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

struct Worker {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts, and is attached.
    async fn start(ground: &Ground, id: &str, slots: u32) -> Self {
        let mut this = Self::launch(ground, id, slots);
        this.attached().await;
        this
    }

    fn launch(ground: &Ground, id: &str, slots: u32) -> Self {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let packages = target.join("servers/python");
        assert!(packages.is_dir(), "{} is missing; run `make servers`", packages.display());
        let mut child = Command::new("python3")
            .arg(root().join("examples/nats-worker/worker.py"))
            .args(["--nats", &ground.nats.url(), "--id", id, "--slots", &slots.to_string()])
            .env("PYTHONPATH", packages)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .expect("python3 starts");
        let said = BufReader::new(child.stdout.take().expect("stdout")).lines();
        Self { child, said }
    }

    /// Waits until it says that a process has welcomed it.
    async fn attached(&mut self) {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.said.next_line()).await.expect("in time");
            let line = line.expect("readable").expect("the worker lives");
            if line.starts_with("attached") {
                return;
            }
        }
    }

    async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }
}

fn is(job: &v1::Job, state: v1::JobState) -> bool {
    job.state == i32::from(state)
}

async fn ended(client: &mut Client, id: &str, state: v1::JobState) -> v1::Job {
    until(client, id, |job| is(job, state)).await
}

async fn one(client: &mut Client, new: v1::NewJob) -> String {
    submit(client, vec![new]).await.expect("taken").remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_in_python_runs_jobs_over_nats() {
    let ground = Ground::start();
    let gateway = ground.process("gateway", &["--no-worker"]).await;
    let mut scheduler = ground.process("scheduler,orchestrator", &["--nats-workers"]).await;
    let mut worker = Worker::start(&ground, "python-1", 4).await;
    let mut client = client(&gateway).await;

    let jobs = (0..100).map(|n| job(&format!("echo-{n}"), "py.echo", &format!("{{\"n\":{n}}}"))).collect();
    submit(&mut client, jobs).await.expect("taken");
    until_idle(&mut client).await;
    for n in [0, 42, 99] {
        let done = get(&mut client, &format!("echo-{n}")).await;
        let result: serde_json::Value = serde_json::from_slice(&done.result_json).expect("JSON");
        assert!(is(&done, v1::JobState::Succeeded) && done.attempts == 1 && result["n"] == n, "{done:?}");
    }

    let failing = one(&mut client, v1::NewJob { max_attempts: Some(1), ..job("", "py.fail", "\"x\"") }).await;
    let failed = ended(&mut client, &failing, v1::JobState::Failed).await;
    assert!(format!("{failed:?}").contains("told to fail: x"), "{failed:?}");

    // A start is told, a cancel arrives, and the place is free again: there are four of them.
    for round in 0..5 {
        let slow = one(&mut client, job(&format!("slow-{round}"), "py.sleep", "{\"seconds\":600}")).await;
        ended(&mut client, &slow, v1::JobState::Running).await;
        let cancelled = gateway.cli(&["cancel", &slow]).await;
        assert!(cancelled.status.success(), "{cancelled:?}");
        ended(&mut client, &slow, v1::JobState::Cancelled).await;
    }

    // A message of NATS takes a mebibyte at most, and so does a payload: with the rest it is too much.
    let large = format!("\"{}\"", "x".repeat(1024 * 1024 - 2));
    let large = one(&mut client, job("large", "py.echo", &large)).await;
    let failed = ended(&mut client, &large, v1::JobState::Failed).await;
    assert!(format!("{failed:?}").contains("a message to worker python-1 at most"), "the reason is told");

    // One that is told to leave finishes what it has.
    let last = one(&mut client, job("last", "py.sleep", "{\"seconds\":1}")).await;
    ended(&mut client, &last, v1::JobState::Running).await;
    signal(&worker.child, "TERM").await;
    let status = tokio::time::timeout(PATIENCE, worker.child.wait()).await.expect("it leaves in time").expect("a status");
    assert!(status.success(), "{status}");
    let last = get(&mut client, "last").await;
    assert!(is(&last, v1::JobState::Succeeded) && last.attempts == 1, "{last:?}");
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_over_nats_outlives_the_process_that_holds_it_and_is_lost_when_it_is_gone() {
    let ground = Ground::start();
    let gateway = ground.process("gateway", &["--no-worker"]).await;
    let door = ["--nats-workers", "--nats-lost-after", "15s"];
    let first = ground.process("scheduler,orchestrator", &door).await;
    let mut worker = Worker::start(&ground, "python-1", 4).await;
    let mut second = ground.process("scheduler,orchestrator", &door).await;
    let mut client = client(&gateway).await;

    let running = one(&mut client, job("running", "py.sleep", "{\"seconds\":12}")).await;
    ended(&mut client, &running, v1::JobState::Running).await;
    crash(first).await;
    worker.attached().await;
    let jobs = (0..20).map(|n| job(&format!("after-{n}"), "py.echo", "null")).collect();
    submit(&mut client, jobs).await.expect("taken");
    for n in 0..20 {
        let done = ended(&mut client, &format!("after-{n}"), v1::JobState::Succeeded).await;
        assert_eq!(done.attempts, 1);
    }
    let done = ended(&mut client, &running, v1::JobState::Succeeded).await;
    assert_eq!(done.attempts, 1, "it went on through the death of the process that held its worker");

    // A process that is told to end sends its workers elsewhere, at once.
    let mut third = ground.process("scheduler,orchestrator", &door).await;
    second.stop().await;
    worker.attached().await;

    let lost = one(&mut client, job("lost", "py.sleep", "{\"seconds\":5}")).await;
    ended(&mut client, &lost, v1::JobState::Running).await;
    worker.kill().await;
    let _heir = Worker::start(&ground, "python-2", 4).await;
    let done = ended(&mut client, &lost, v1::JobState::Succeeded).await;
    assert_eq!(done.attempts, 2, "{done:?}");
    assert!(third.number("lockgate_reaped_total").await >= 1.0, "counted where it was noticed");
    third.stop().await;
}

async fn crash(mut server: Server) {
    server.crash().await;
}
