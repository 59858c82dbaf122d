//! The wall clock of real processes is set ahead and back. libfaketime tells them the time; the steady clock stays the machine's.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use lockgate_proto::v1::JobState;
use lockgate_testbed::{Durability, Postgres};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use super::cluster::{Ground, worker};
use super::harness::{Client, Environment, PATIENCE, Server, get, job, submit, until};

/// How long the clock is wrong.
const WRONG_FOR: Duration = Duration::from_secs(10);
const HALF_AN_HOUR_MS: u64 = 1_800_000;

/// A clock that the test sets, for any number of processes.
struct Wall {
    file: PathBuf,
    _folder: TempDir,
}

impl Wall {
    fn new(ahead: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        // PostgreSQL reads it as another user.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("readable by all");
        let wall = Self { file: folder.path().join("wall"), _folder: folder };
        wall.set(ahead);
        wall
    }

    /// How far it is ahead: `+0`, `+1h`. Put in place whole: a process may read it at any time.
    fn set(&self, ahead: &str) {
        let aside = self.file.with_extension("new");
        std::fs::write(&aside, ahead).expect("written");
        std::fs::rename(aside, &self.file).expect("in place");
    }

    /// A cluster whose database has this clock, and whose processes have the machine's.
    fn ground(&self) -> Ground {
        let environment = self.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ground::on(Postgres::start_in(environment, Durability::Unsynced, &[]).expect("PostgreSQL"))
    }

    fn environment(&self) -> Environment {
        vec![
            ("LD_PRELOAD", library().into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone().into()),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("FAKETIME_DISABLE_SHM", "1".into()),
        ]
    }
}

fn library() -> PathBuf {
    let folders = ["/usr/lib", "/usr/lib64"].into_iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let inner = folders.flatten().flatten().map(|entry| entry.path());
    let of = |folder: PathBuf| [folder.join("faketime/libfaketimeMT.so.1"), folder.join("libfaketimeMT.so.1")];
    inner.flat_map(of).find(|path| path.is_file()).expect("libfaketime, which tools/get-servers gets")
}

const SCHEDULE: &str = "version: 1
schedules:
  tick: { every: 1s, overlap: allow, job: { topic: job.noop } }
";
const DAG: &str = "version: 1
dag: two
nodes:
  a: { topic: job.noop }
  b: { needs: [a], topic: job.noop }
";

async fn apply(server: &Server, kind: &str, name: &str, text: &str) {
    let file = server.folder().join(name);
    std::fs::write(&file, text).expect("written");
    let applied = server.cli(&[kind, "apply", &file.display().to_string()]).await;
    assert!(applied.status.success(), "{applied:?}");
}

async fn asked(server: &Server, arguments: &[&str]) -> Value {
    let output = server.cli(&[&["--json"], arguments].concat()).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// How many times of the schedule were started.
async fn started(server: &Server) -> usize {
    let answer = asked(server, &["schedule", "slots", "tick", "--limit", "1000"]).await;
    answer["slots"].as_array().expect("slots").iter().filter(|slot| slot["outcome"] == "STARTED").count()
}

async fn wait_until_started(server: &Server, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while started(server).await < count {
        assert!(Instant::now() < deadline, "the schedule stands");
    }
}

/// Waits until the process says how far its clock is ahead.
async fn wait_for_jump(server: &Server, is_as_wanted: impl Fn(f64) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_as_wanted(server.number("lockgate_clock_jump_seconds").await) {
        assert!(Instant::now() < deadline, "the jump was not told");
    }
}

/// Jobs and a run from their submit to their end.
async fn work_goes_on(server: &Server, client: &mut Client, when: &str) {
    let began = Instant::now();
    let jobs: Vec<_> = (0..20).map(|no| job(&format!("{when}-{no}"), "job.noop", "{}")).collect();
    for id in submit(client, jobs).await.expect("taken") {
        until(client, &id, |job| job.state() == JobState::Succeeded).await;
    }
    let run = asked(server, &["dag", "start", "two"]).await;
    let run = run["run_id"].as_str().expect("an id").to_owned();
    server.wait_for_output(&["dag", "get", &run], "SUCCEEDED").await;
    println!("{when}: 20 jobs and a run ended after {:?}", began.elapsed());
}

async fn why(server: &Server, id: &str) -> String {
    let output = server.cli(&["why", id]).await;
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An hour ahead for ten seconds, and right again: nothing stands, nothing ends by it, and it is told.
async fn an_hour_ahead_for_ten_seconds(server: &Server, wall: &Wall) {
    let mut client = server.client().await;
    apply(server, "schedule", "schedules.yaml", SCHEDULE).await;
    apply(server, "dag", "two.yaml", DAG).await;
    let mut in_time = job("in-time", "job.nobody", "{}");
    in_time.deadline_ms = Some(HALF_AN_HOUR_MS);
    submit(&mut client, vec![job("first", "job.noop", "{}")]).await.expect("taken");
    in_time.not_before_ms = Some(get(&mut client, "first").await.submitted_at_ms + 1_200_000);
    submit(&mut client, vec![in_time]).await.expect("taken");
    wait_until_started(server, 2).await;

    wall.set("+1h");
    wait_for_jump(server, |ahead| ahead > 3_500.0).await;
    let (jumped, ticked) = (Instant::now(), started(server).await);
    server.wait_for_output(&["health"], "clock_jumped").await;
    work_goes_on(server, &mut client, "wrong").await;
    wait_until_started(server, ticked + 2).await;
    while jumped.elapsed() < WRONG_FOR {
        assert!(server.number("lockgate_clock_jump_seconds").await > 3_500.0, "it is told as long as it lasts");
    }
    let in_time = get(&mut client, "in-time").await;
    assert_eq!(in_time.state(), JobState::Scheduled, "its deadline is half an hour away");
    wall.set("+0");
    wait_for_jump(server, |ahead| ahead.abs() < 1.0).await;

    let ticked = started(server).await;
    work_goes_on(server, &mut client, "right").await;
    wait_until_started(server, ticked + 3).await;
    let in_time = get(&mut client, "in-time").await;
    assert_eq!(in_time.state(), JobState::Scheduled);
    assert!(why(server, "in-time").await.contains("must not start before"), "it waits for the time it was given");
    let health = asked(server, &["health"]).await;
    assert!(!health.to_string().contains("clock_jumped"), "{health}");
    assert!(server.number("lockgate_clock_jumps_total").await >= 1.0);
}

#[tokio::test]
async fn a_server_whose_clock_is_an_hour_ahead_for_ten_seconds_parks_nothing() {
    let wall = Wall::new("+0");
    let server = Server::start_with(wall.environment(), &[]).await;
    an_hour_ahead_for_ten_seconds(&server, &wall).await;
}

#[tokio::test]
async fn a_cluster_whose_clocks_are_an_hour_ahead_for_ten_seconds_parks_nothing() {
    let (wall, ground) = (Wall::new("+0"), Ground::start());
    let gateway = ground.process_in(wall.environment(), "gateway,worker", &[]).await;
    let _scheduler = ground.process_in(wall.environment(), "scheduler,orchestrator", &[]).await;
    an_hour_ahead_for_ten_seconds(&gateway, &wall).await;
}

/// A clock that was wrong from the start, and believed: what it stamped does not stand for an hour when it is right.
#[tokio::test]
async fn a_restart_with_the_right_clock_brings_back_what_a_wrong_one_stamped() {
    let wall = Wall::new("+1h");
    let mut server = Server::start_with(wall.environment(), &["--no-worker", "--clock-settle", "2s"]).await;
    let mut client = server.client().await;
    apply(&server, "schedule", "schedules.yaml", SCHEDULE).await;
    let jobs: Vec<_> = (0..20).map(|no| job(&format!("parked-{no}"), "job.noop", "{}")).collect();
    let parked = submit(&mut client, jobs).await.expect("taken");
    wait_until_started(&server, 2).await;
    server.crash().await;
    wall.set("+0");
    server.start_again().await;
    let began = Instant::now();
    while server.number("lockgate_clock_restamped_total").await < 21.0 {
        assert!(began.elapsed() < PATIENCE, "nothing was brought back");
    }
    println!("what was stamped an hour ahead was brought back {:?} after the restart", began.elapsed());
    let ticked = started(&server).await;
    wait_until_started(&server, ticked + 2).await;
    let _worker = server.worker("w", 4, &[]);
    let mut client = server.client().await;
    for id in parked {
        until(&mut client, &id, |job| job.state() == JobState::Succeeded).await;
    }
}

const PATIENT_DAG: &str = "version: 1
dag: patient
timeout: 30m
nodes:
  a: { topic: job.nobody }
";

/// The leases of gateways and of loops, in seconds from now by the right clock.
async fn furthest_lease(ground: &Ground) -> i64 {
    let question = "SELECT ceil((max(expires_at) - extract(epoch FROM clock_timestamp()) * 1000) / 1000)::bigint \
        FROM (SELECT expires_at FROM edges WHERE closed_at IS NULL UNION ALL SELECT expires_at FROM leases) AS every";
    ground.sql(question).await.parse().expect("a number")
}

async fn wait_for_leases(ground: &Ground) {
    let deadline = Instant::now() + PATIENCE;
    while furthest_lease(ground).await > 60 {
        assert!(Instant::now() < deadline, "a lease lasts for {} s", furthest_lease(ground).await);
    }
}

/// Until the gateway's lease is one of the clock that is ahead.
async fn wait_until_renewed(ground: &Ground) {
    let question = "SELECT count(*) FROM edges WHERE expires_at > extract(epoch FROM clock_timestamp()) * 1000";
    let deadline = Instant::now() + PATIENCE;
    while ground.sql(question).await != "1" {
        assert!(Instant::now() < deadline, "the lease of the gateway is not renewed");
    }
}

/// The processes have the right time, and PostgreSQL has not: every process says so, and nothing ends, is lost or stands by it.
#[tokio::test]
async fn a_database_whose_clock_is_an_hour_ahead_for_ten_seconds_parks_nothing() {
    let wall = Wall::new("+0");
    let ground = wall.ground();
    let gateway = ground.process("gateway", &[]).await;
    let scheduler = ground.process("scheduler,orchestrator", &[]).await;
    let _worker = worker("w", 8, &[&gateway]);
    apply(&gateway, "dag", "patient.yaml", PATIENT_DAG).await;
    let patient = asked(&gateway, &["dag", "start", "patient"]).await;
    let patient = patient["run_id"].as_str().expect("an id").to_owned();
    let mut client = gateway.client().await;
    let held = job("held", "job.sleep", r#"{"ms":20000}"#);
    submit(&mut client, vec![held]).await.expect("taken");
    until(&mut client, "held", |job| job.state() == JobState::Running).await;

    an_hour_ahead_for_ten_seconds(&gateway, &wall).await;

    assert!(scheduler.number("lockgate_clock_jumps_total").await >= 1.0, "every process looks at the database's clock");
    let held = until(&mut client, "held", |job| job.state() == JobState::Succeeded).await;
    assert_eq!(held.attempts, 1, "its worker was heard all the time");
    gateway.wait_for_output(&["dag", "get", &patient], "RUNNING").await;
    wait_for_leases(&ground).await;
}

/// What a process wrote while PostgreSQL was ahead must not outlive the process by an hour.
#[tokio::test]
async fn processes_that_die_while_the_databases_clock_is_ahead_are_missed_soon_after() {
    let wall = Wall::new("+0");
    let ground = wall.ground();
    let mut dying = ground.process("all", &["--no-worker"]).await;
    let mut lost_worker = worker("lost", 1, &[&dying]);
    let mut client = dying.client().await;
    submit(&mut client, vec![job("adrift", "job.sleep", r#"{"ms":600}"#)]).await.expect("taken");
    until(&mut client, "adrift", |job| job.state() == JobState::Succeeded).await;
    apply(&dying, "schedule", "schedules.yaml", SCHEDULE).await;
    wait_until_started(&dying, 2).await;
    wall.set("+1h");
    wait_for_jump(&dying, |ahead| ahead > 3_500.0).await;
    wait_until_renewed(&ground).await;
    submit(&mut client, vec![job("held", "job.sleep", r#"{"ms":600000}"#)]).await.expect("taken");
    until(&mut client, "held", |job| job.state() == JobState::Running).await;
    dying.crash().await;
    lost_worker.kill().await.expect("killed");
    wall.set("+0");
    let began = Instant::now();
    let next = ground.process("all", &["--no-worker"]).await;
    let mut client = next.client().await;
    until(&mut client, "held", |job| job.attempts == 1 && job.state() == JobState::Scheduled).await;
    println!("the attempt of the dead gateway was lost {:?} after the clock was right", began.elapsed());
    let ticked = started(&next).await;
    wait_until_started(&next, ticked + 2).await;
    println!("another process leads the schedules {:?} after the clock was right", began.elapsed());
}
