//! What is written about jobs: their own lines, followed over restarts, and the server's, with the same fields everywhere.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::harness::{PATIENCE, Server, binary, job, signal, submit, until_idle};

const SCRIPT: &str = "echo one; until [ -e \"$GO\" ]; do sleep 0.05; done; echo two >&2; echo three";

#[tokio::test]
async fn the_log_of_a_job_is_followed_over_a_crash_of_the_server() {
    let mut server = Server::start(&["--no-worker"]).await;
    let _worker = server.worker("shell", 1, &["--allow-exec"]);
    let go = server.folder().join("go");
    let payload = serde_json::json!({ "command": ["sh", "-c", SCRIPT], "env": { "GO": go } }).to_string();
    submit(&mut server.client().await, vec![job("told", "job.exec", &payload)]).await.expect("taken");
    let mut follower = binary()
        .args(["--server", &server.api, "--json", "logs", "told", "--follow"])
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it follows");
    let mut lines = BufReader::new(follower.stdout.take().expect("piped")).lines();
    let mut next = async || {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("readable");
        line.map(|line| serde_json::from_str::<Value>(&line).expect("JSON")["line"].clone())
    };
    assert_eq!(next().await, Some("one".into()));
    server.crash_and_restart().await;
    std::fs::write(&go, "").expect("written");
    let rest = BTreeSet::from([next().await, next().await].map(|line| line.map(|line| line.to_string())));
    assert_eq!(rest, ["\"three\"", "\"two\""].map(|line| Some(line.to_owned())).into(), "each once");
    assert_eq!(next().await, None, "it ends with the job");
    assert!(follower.wait().await.expect("a status").success());
}

#[tokio::test]
async fn every_line_about_a_job_has_the_same_fields() {
    let folder = TempDir::new().expect("a folder");
    let log = folder.path().join("log");
    let mut child = binary()
        .args(["--json", "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .args(["--log", "info,lockgate::jobs=debug,lockgate::runs=debug", "--log-format", "json"])
        .stderr(std::fs::File::create(&log).expect("a file"))
        .spawn()
        .expect("the server starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let banner = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("readable");
    let banner: Value = serde_json::from_str(&banner.expect("a line")).expect("JSON");
    let api = banner["api"].as_str().expect("an address").to_owned();
    let mut client = super::harness::Client::connect(api.clone()).await.expect("connected");
    submit(&mut client, vec![job("bad", "job.always_fail", "null"), job("good", "job.echo", "1")]).await.expect("taken");
    until_idle(&mut client).await;
    let dag = folder.path().join("dag.yaml");
    std::fs::write(&dag, "version: 1\ndag: one\nnodes:\n  x: { topic: job.echo, payload: 1 }\n").expect("written");
    for arguments in [&["dag", "apply", dag.to_str().expect("UTF-8")][..], &["dag", "start", "one", "--watch"]] {
        let done = binary().args(["--server", &api]).args(arguments).output().await.expect("the command runs");
        assert!(done.status.success(), "{done:?}");
    }
    signal(&child, "TERM").await;
    assert!(child.wait().await.expect("a status").success());

    let text = std::fs::read_to_string(&log).expect("written");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |target: &str| lines.iter().filter(|line| line["target"] == target).cloned().collect::<Vec<_>>();
    let jobs = of("lockgate::jobs");
    for line in &jobs {
        for field in ["job_id", "attempt_id", "tenant", "trace_id", "state_to"] {
            assert!(line[field].is_string(), "{field} is missing in {line}");
        }
    }
    let ended = jobs.iter().find(|line| line["job_id"] == "bad" && line["state_to"] == "FAILED").expect("told");
    assert_eq!((&ended["reason"], &ended["worker_id"]), (&"failed".into(), &"built-in".into()));
    assert_eq!((&ended["attempt_id"], &ended["message"]), (&"bad#3".into(), &"a job moved".into()));
    assert!(ended["state_from"].is_string());
    let node = jobs.iter().find(|line| line["run_id"].is_string()).expect("a job of a run");
    assert_eq!(node["node"], 0);
    let runs = of("lockgate::runs");
    assert!(runs.iter().any(|line| line["run_id"] == node["run_id"] && line["state_to"] == "SUCCEEDED"), "{runs:?}");
}
