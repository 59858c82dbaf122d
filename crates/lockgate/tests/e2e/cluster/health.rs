//! How a process of a cluster says that its Store hangs or refuses.

use std::process::Stdio;
use std::time::Duration;

use lockgate_testbed::Postgres;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::super::harness::{PATIENCE, Server};
use super::stage::Ground;

#[tokio::test]
async fn a_database_that_hangs_and_one_that_is_gone_are_two_answers() {
    let mut ground = Ground::start();
    let gateway = ground.process("gateway", &["--no-worker"]).await;
    let _scheduler = ground.process("scheduler,orchestrator", &[]).await;
    gateway.wait_until_found(None).await;

    ground.postgres.pause();
    let noticed = gateway.wait_until_found(Some("store_hanging")).await;
    println!("a database that hangs was noticed after {noticed:?}");
    ground.postgres.resume();
    gateway.wait_until_found(None).await;

    ground.postgres.kill();
    gateway.wait_until_found(Some("store_refusing")).await;
    ground.postgres.restart().expect("restarted");
    gateway.wait_until_found(None).await;
}

/// A session of psql that stays open.
struct Session(Child);

impl Session {
    /// Runs this, and waits until it was done.
    async fn open(postgres: &Postgres, sql: &str) -> Self {
        let psql = Command::new("psql")
            .args(["-XAtq", &postgres.url()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut session = Self(psql.expect("psql runs"));
        session.say(&format!("SET application_name = 'report'; {sql}; SELECT 'done';")).await;
        let mut lines = BufReader::new(session.0.stdout.take().expect("stdout")).lines();
        while lines.next_line().await.expect("readable").expect("it goes on") != "done" {}
        session
    }

    async fn say(&mut self, sql: &str) {
        self.0.stdin.as_mut().expect("stdin").write_all(format!("{sql}\n").as_bytes()).await.expect("said");
    }

    async fn close(mut self) {
        self.say("ROLLBACK;").await;
        drop(self.0.stdin.take());
        self.0.wait().await.expect("ended");
    }
}

/// Clients whose submits wait for the lock get no answer in time, so calls are better sent elsewhere.
#[tokio::test]
async fn a_locked_table_of_jobs_makes_a_process_unready_until_the_lock_is_gone() {
    let ground = Ground::start();
    let gateway = ground.process("gateway", &["--no-worker"]).await;
    let _scheduler = ground.process("scheduler,orchestrator", &[]).await;
    gateway.wait_until_found(None).await;
    let report = Session::open(&ground.postgres, "BEGIN; LOCK TABLE jobs_hot IN ACCESS EXCLUSIVE MODE").await;
    let noticed = gateway.wait_until_found(Some("store_refusing")).await;
    println!("a locked table was noticed after {noticed:?}");
    let (health, _) = gateway.health().await;
    assert!(health["findings"][0]["detail"].as_str().is_some_and(|detail| detail.contains("\"report\"")), "{health}");
    report.close().await;
    gateway.wait_until_found(None).await;
}

async fn wait_until_measured(gateway: &Server) {
    let deadline = Instant::now() + PATIENCE;
    while gateway.number("lockgate_store_horizon_held_seconds").await < 1.0 {
        assert!(Instant::now() < deadline, "it was never measured");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_transaction_that_pins_the_horizon_is_measured_and_named_by_doctor() {
    let ground = Ground::start();
    let gateway = ground.process("gateway", &["--no-worker"]).await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobs_hot";
    let report = Session::open(&ground.postgres, begin).await;
    wait_until_measured(&gateway).await;
    let (database, redis, nats) = (ground.postgres.url(), ground.redis.url(), ground.nats.url());
    let doctor = ["doctor", "--database-url", &database, "--redis-url", &redis, "--nats-url", &nats];
    gateway.wait_for_output(&doctor, "\"report\", idle in transaction").await;
    report.close().await;
}
