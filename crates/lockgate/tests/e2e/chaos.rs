//! The chaos command itself: it breaks things, and what it tells is what happened.

use serde_json::Value;

use super::cluster::Ground;
use super::harness::binary;

/// The rows of these faults. None of them broke a promise.
async fn struck(faults: &[&str], more: &[&str]) -> Vec<Value> {
    let mut chaos = binary();
    chaos.args(["--json", "chaos", "--quick"]).args(more);
    for fault in faults {
        chaos.arg("--fault").arg(fault);
    }
    let output = chaos.output().await.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("rows")
}

async fn struck_cluster(faults: &[&str]) -> Vec<Value> {
    let ground = Ground::start();
    let (database, redis, nats) = (ground.postgres.url(), ground.redis.url(), ground.nats.url());
    struck(faults, &["--cluster", "--database-url", &database, "--redis-url", &redis, "--nats-url", &nats]).await
}

#[tokio::test]
async fn a_kill_and_a_cut_are_recovered_from_and_nothing_is_lost_or_doubled() {
    let rows = struck(&["server-kill", "worker-cut"], &[]).await;
    assert_eq!(rows.iter().map(|row| &row["fault"]).collect::<Vec<_>>(), ["server-kill", "worker-cut"]);
    for row in &rows {
        assert_eq!((&row["lost"], &row["doubled"]), (&0.into(), &0.into()), "{row}");
        assert!(row["jobs"].as_u64().is_some_and(|jobs| jobs >= 200), "there was a load: {row}");
        // Between two calls a server may be killed and restarted before a client notices.
        assert!(row["recovered_ms"].is_u64(), "{row}");
    }
}

#[tokio::test]
async fn what_fails_hangs_and_is_slow_in_a_worker_is_run_again_until_it_has_ended_well() {
    let rows = struck(&["handlers-fail"], &[]).await;
    assert_eq!((&rows[0]["lost"], &rows[0]["doubled"]), (&0.into(), &0.into()), "{rows:?}");
    assert!(rows[0]["repeated"].as_u64().is_some_and(|jobs| jobs > 0), "handlers failed: {rows:?}");
}

#[tokio::test]
async fn a_database_without_room_refuses_submits_says_why_and_goes_on_once_it_has_some() {
    let rows = struck(&["disk-full"], &[]).await;
    assert_eq!((&rows[0]["lost"], &rows[0]["doubled"]), (&0.into(), &0.into()), "{rows:?}");
    assert!(rows[0]["detected_ms"].is_u64(), "a submit was refused for want of room: {rows:?}");
    let lasted = rows[0]["lasted_ms"].as_u64();
    assert!(rows[0]["recovered_ms"].as_u64() > lasted, "only room cures it: {rows:?}");
}

#[tokio::test]
async fn one_process_that_is_cut_off_from_one_server_costs_nothing_while_the_others_go_on() {
    let rows = struck_cluster(&["gateway-postgres-cut", "scheduler-redis-cut"]).await;
    for row in &rows {
        assert!(row["detected_ms"].is_u64() && row["recovered_ms"].is_u64(), "{row}");
        assert_eq!((&row["lost"], &row["doubled"]), (&0.into(), &0.into()), "{row}");
    }
}

#[tokio::test]
async fn when_the_scheduler_that_leads_is_killed_another_one_leads_and_what_waits_for_a_time_goes_on() {
    let rows = struck_cluster(&["scheduler-kill"]).await;
    assert!(rows[0]["detected_ms"].is_u64(), "who was struck led, and somebody else leads now: {rows:?}");
    assert!(rows[0]["recovered_ms"].is_u64(), "{rows:?}");
}

#[tokio::test]
async fn a_fault_that_does_not_exist_is_refused_before_anything_starts() {
    let output = binary().args(["chaos", "--fault", "moon-fall"]).output().await.expect("it runs");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("worker-half-open"), "{text}");
}
