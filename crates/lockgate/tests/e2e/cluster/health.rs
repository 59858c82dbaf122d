//! How a process of a cluster says that its Store hangs or refuses.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::super::harness::{PATIENCE, Server};
use super::stage::Ground;

impl Server {
    /// What `lockgate health` prints, and its exit code.
    async fn health(&self) -> (Value, Option<i32>) {
        let output = self.cli(&["--json", "health"]).await;
        (serde_json::from_slice(&output.stdout).unwrap_or_default(), output.status.code())
    }

    /// Waits until the most serious finding has this code, or there is none. How long it took.
    async fn until_found(&self, code: Option<&str>) -> Duration {
        let began = Instant::now();
        loop {
            let (health, exit) = self.health().await;
            if health["status"].is_string() && health["findings"][0]["code"].as_str() == code {
                assert_eq!(exit, Some(if health["status"] == "not_ready" { 5 } else { 0 }), "{health}");
                return began.elapsed();
            }
            assert!(began.elapsed() < PATIENCE, "never {code:?}: {health}");
        }
    }
}

#[tokio::test]
async fn a_database_that_hangs_and_one_that_is_gone_are_two_answers() {
    let mut ground = Ground::start();
    let gateway = ground.process("gateway", &["--no-worker"]).await;
    let _scheduler = ground.process("scheduler,orchestrator", &[]).await;
    gateway.until_found(None).await;

    ground.postgres.pause();
    let noticed = gateway.until_found(Some("store_hanging")).await;
    println!("a database that hangs was noticed after {noticed:?}");
    ground.postgres.resume();
    gateway.until_found(None).await;

    ground.postgres.kill();
    gateway.until_found(Some("store_refusing")).await;
    ground.postgres.restart().expect("restarted");
    gateway.until_found(None).await;
}
