//! Pools, timeouts and workers at the command line.

use serde_json::{Value, json};

use crate::support::{Files, Server, offline};

const POOLS: &str = "\
topics:
  job.echo: [fast, default]
  job.*: default
pools:
  fast: {dispatch: direct, max_concurrent: 4}
  default: {description: everything else}
";

#[test]
fn pools_are_listed_as_the_rest_contract_has_them() {
    let (files, server) = (Files::new(), Server::start());
    assert_eq!(server.run(&["pools", "apply", &files.write("pools.yaml", POOLS)]).code(), Some(0));
    server.wait_for_output(&["pools", "list"], "0/16");
    assert_eq!(server.run(&["pools", "list", "--json"]).json(), server.get("/v1/pools"));
    let listed = server.run(&["pools", "list"]).stdout();
    let words: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["POOL", "STATE", "DISPATCH", "WORKERS", "BUSY", "WAITING", "TOPICS"]);
    assert_eq!(words[1], ["default", "open", "queue", "1", "0/16", "0", "job.echo", "job.*"], "{listed}");
    assert_eq!(words[2], ["fast", "open", "direct", "0", "0/0", "0", "job.echo"], "{listed}");
}

#[test]
fn a_paused_pool_holds_its_jobs_until_it_is_resumed() {
    let server = Server::start();
    let paused = server.run(&["pools", "pause", "default"]);
    assert_eq!(paused.code(), Some(0), "{}", paused.stderr());
    assert!(paused.stdout().starts_with("default  paused"), "{}", paused.stdout());
    server.run(&["submit", "job.noop", "--job-id", "held"]);
    let why = server.run(&["why", "held"]).stdout();
    assert!(why.contains("pool default (queue): pool_paused"), "{why}");
    assert_eq!(server.run(&["why", "held", "--json"]).json(), server.get("/v1/jobs/held/why"));
    let resumed = server.run(&["pools", "resume", "default", "--json"]).json();
    assert_eq!(resumed["pool"]["state"], "open");
    assert_eq!(server.run(&["watch", "held"]).code(), Some(0));
    let unknown = server.run(&["pools", "pause", "defualt"]);
    assert_eq!(unknown.code(), Some(4));
    assert!(unknown.stderr().contains("known: default"), "{}", unknown.stderr());
}

#[test]
fn draining_a_pool_waits_until_nothing_runs_there() {
    let server = Server::start();
    let state = |id: &str| server.run(&["get", id, "--json"]).json()["state"].clone();
    server.run(&["submit", "job.sleep", "--job-id", "long", "--payload", r#"{"ms":1500}"#]);
    server.wait_for_output(&["pools", "list"], "1/16");
    let told = server.run(&["pools", "drain", "default", "--no-wait", "--json"]).json();
    assert_eq!((&told["pool"]["state"], &told["pool"]["busy"]), (&json!("draining"), &json!(1)));
    let drained = server.run(&["pools", "drain", "default"]);
    assert_eq!(drained.code(), Some(0), "{}", drained.stderr());
    assert_eq!(drained.stdout().trim(), "default  draining  0 running, 0 waiting");
    assert_eq!(state("long"), "SUCCEEDED");
    server.run(&["submit", "job.noop", "--job-id", "next"]);
    assert_eq!(server.run(&["why", "next", "--json"]).json()["reason"], "pool_draining");
    server.run(&["pools", "resume", "default"]);
    assert_eq!(server.run(&["watch", "next"]).code(), Some(0));
}

#[test]
fn files_are_linted_without_a_server() {
    let files = Files::new();
    let good = offline(&["pools", "lint", &files.write("good.yaml", POOLS)]);
    assert_eq!(good.code(), Some(0), "{}", good.stderr());
    assert!(good.stdout().contains("ok  pools:"), "{}", good.stdout());
    let bad = files.write("bad.yaml", "topics: {job.x: a, job.y: b}\npools:\n  a: {dispach: direct}\n  c: {}\n");
    let answer = offline(&["pools", "lint", &bad]);
    assert_eq!(answer.code(), Some(1));
    for fault in ["bad.yaml:1: ", "bad.yaml:3: ", "did you mean \"dispatch\"?", "bad.yaml:4: ", "3 faults in"] {
        assert!(answer.stderr().contains(fault), "{fault}: {}", answer.stderr());
    }
    let slow = files.write("slow.yaml", "defaults: {running: forever}\n");
    let answer = offline(&["timeouts", "lint", &slow, "--json"]);
    assert_eq!(answer.code(), Some(1));
    let told: Value = serde_json::from_str(&answer.stdout()).expect("JSON");
    assert_eq!((&told["ok"], &told["errors"][0]["line"]), (&json!(false), &json!(1)));
}

#[test]
fn pools_and_timeouts_are_applied_shown_listed_and_rolled_back() {
    let (files, server) = (Files::new(), Server::start());
    let texts = [
        ("pools", POOLS, "topics: {job.*: default}\npools: {default: {}}\n"),
        ("timeouts", "defaults: {running: 5s}\n", "defaults: {running: 6s}\n"),
    ];
    for (kind, first, second) in texts {
        let none = server.run(&[kind, "show"]);
        assert!(none.stderr().contains("were ever applied"), "{}", none.stderr());
        let one = server.run(&[kind, "apply", &files.write("one.yaml", first), "--json"]).json();
        assert_eq!(one["version"], 1);
        let two = files.write("two.yaml", second);
        assert_eq!(server.run(&[kind, "apply", &two, "--expect", "7"]).code(), Some(5));
        assert_eq!(server.run(&[kind, "apply", &two, "--expect", "1"]).code(), Some(0));
        assert_eq!(server.run(&[kind, "show"]).stdout(), second, "the text alone, to be saved and edited");
        let path = format!("/v1/config/{kind}");
        assert_eq!(server.run(&[kind, "show", "--json"]).json(), server.get(&path));
        assert_eq!(server.run(&[kind, "history", "--json"]).json(), server.get(&format!("{path}/snapshots")));
        let id = one["snapshot"].as_str().expect("an id");
        assert_eq!(server.run(&[kind, "rollback", id, "--json"]).json()["version"], 3);
        assert_eq!(server.run(&[kind, "show"]).stdout(), first);
        let faulty = server.run(&[kind, "apply", &files.write("faulty.yaml", "nothing: 1\n")]);
        assert_eq!(faulty.code(), Some(1));
        assert!(faulty.stderr().contains("faulty.yaml:1: "), "{}", faulty.stderr());
        assert_eq!(server.run(&[kind, "show"]).stdout(), first, "what is in force stays");
    }
}

#[test]
fn workers_are_listed_by_either_command() {
    let server = Server::start();
    server.wait_for_output(&["workers"], "built-in");
    let heading = |words: &[&str]| server.run(words).stdout().lines().next().expect("a heading").to_owned();
    assert_eq!(heading(&["workers"]), heading(&["workers", "list"]));
    let unknown = server.run(&["workers", "drain", "nobody"]);
    assert_eq!(unknown.code(), Some(4));
    assert!(unknown.stderr().contains("there is no worker \"nobody\" attached"), "{}", unknown.stderr());
}

#[test]
fn the_server_goes_on_without_its_built_in_worker_when_that_is_drained() {
    let server = Server::start();
    server.wait_for_output(&["workers"], "built-in");
    let told = server.run(&["workers", "drain", "built-in", "--json"]).json();
    assert_eq!(told, json!({ "worker_id": "built-in", "sessions": 1 }));
    server.run(&["submit", "job.noop", "--job-id", "late"]);
    let mut worker = server.spawn(&["worker", "--name", "other", "--region", "eu", "--prefetch", "2", "--log", "warn"]);
    let watched = server.run(&["watch", "late"]);
    let workers = server.run(&["workers", "--json"]).json();
    worker.kill().expect("killed");
    worker.wait().expect("ended");
    assert_eq!(watched.code(), Some(0), "{}", watched.stderr());
    assert!(watched.stdout().contains("on other"), "{}", watched.stdout());
    let workers = workers["workers"].as_array().expect("a list");
    let other = workers.iter().find(|worker| worker["worker_id"] == "other").expect("listed");
    assert_eq!(other["labels"], json!({ "region": "eu" }));
}
