//! Workflows in real processes: the examples, and runs whose server dies under them.

use std::path::{Path, PathBuf};

use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::{NodeState, RunState, UndoState};
use serde_json::Value;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::harness::{PATIENCE, Server, all_jobs};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dags").join(name)
}

async fn said(server: &Server, arguments: &[&str]) -> String {
    let output = server.cli(arguments).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

async fn orchestrator(server: &Server) -> OrchestratorClient<Channel> {
    OrchestratorClient::connect(server.api.clone()).await.expect("connected")
}

async fn apply(server: &Server, text: &str) -> String {
    let request = v1::PutDagRequest { file: "test.yaml".to_owned(), text: text.to_owned() };
    orchestrator(server).await.put_dag(request).await.expect("stored").into_inner().name
}

async fn start(server: &Server, dag: &str) -> String {
    let request = v1::StartDagRequest { dag: dag.to_owned(), ..v1::StartDagRequest::default() };
    orchestrator(server).await.start_dag(request).await.expect("started").into_inner().run_id
}

async fn look(server: &Server, run_id: &str) -> v1::DagRun {
    let request = v1::GetDagRunRequest { run_id: run_id.to_owned() };
    orchestrator(server).await.get_dag_run(request).await.expect("there").into_inner()
}

async fn until(server: &Server, run_id: &str, wanted: impl Fn(&v1::DagRun) -> bool) -> v1::DagRun {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let run = look(server, run_id).await;
        if wanted(&run) {
            return run;
        }
        assert!(Instant::now() < deadline, "it did not happen: {run:?}");
    }
}

fn output(json: &str) -> Value {
    serde_json::from_str::<Value>(json).expect("JSON")["output"].clone()
}

#[tokio::test]
async fn the_examples_run_as_their_readers_expect() {
    let server = Server::start(&[]).await;
    for name in ["transcode.yaml", "travel-booking.yaml", "etl.yaml"] {
        let path = example(name);
        let file = path.to_str().expect("UTF-8");
        assert!(said(&server, &["dag", "lint", file]).await.contains("ok"));
        said(&server, &["dag", "apply", file]).await;
        assert!(said(&server, &["dag", "graph", file]).await.starts_with("flowchart"), "{name}");
    }
    let watched = said(&server, &["dag", "start", "transcode", "--param", "source=s3://in/a.mov", "--watch"]).await;
    assert!(watched.contains("SUCCEEDED") && watched.contains("transcode-1080p"), "{watched}");

    let list = said(&server, &["--json", "dag", "runs", "--dag", "transcode"]).await;
    let runs: Value = serde_json::from_str(&list).expect("JSON");
    let run = runs["runs"][0]["run_id"].as_str().expect("a run").to_owned();
    let got = said(&server, &["--json", "dag", "get", &run]).await;
    assert_eq!(output(&got)["package"], "s3://in/a.mov.zip", "{got}");
    assert!(said(&server, &["dag", "graph", &run, "--format", "svg"]).await.starts_with("<svg"));

    let etl = said(&server, &["dag", "start", "etl", "--watch"]).await;
    assert!(etl.contains("4/4 items"), "{etl}");

    let trip = said(&server, &["dag", "start", "travel-booking", "--watch"]).await;
    assert!(trip.contains("SUCCEEDED"), "{trip}");
    let failed = server.cli(&["dag", "start", "travel-booking", "--param", "car_failures=1", "--watch"]).await;
    let text = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert_eq!(failed.status.code(), Some(2), "{failed:?}");
    assert!(text.contains("COMPENSATED"), "{text}");
}

/// Ten layers of ten; every node needs two of the layer before.
fn layers() -> String {
    let mut text = String::from("version: 1\ndag: layers\nnodes:\n");
    for layer in 0..10 {
        for n in 0..10 {
            let needs = match layer {
                0 => String::new(),
                _ => format!("needs: [n{}-{n}, n{}-{}], ", layer - 1, layer - 1, (n + 1) % 10),
            };
            text.push_str(&format!("  n{layer}-{n}: {{ {needs}topic: job.echo, payload: {n} }}\n"));
        }
    }
    text
}

#[tokio::test]
async fn a_server_that_is_killed_again_and_again_finishes_its_runs_and_starts_no_node_twice() {
    let mut server = Server::start(&[]).await;
    let dag = apply(&server, &layers()).await;
    let run = start(&server, &dag).await;
    for done in [5, 25, 50, 75, 95] {
        until(&server, &run, |run| run.done >= done).await;
        server.crash_and_restart().await;
    }
    let run = until(&server, &run, |run| run.ended_at_ms.is_some()).await;
    assert_eq!((run.state(), run.done, run.total), (RunState::Succeeded, 100, 100));
    let jobs = all_jobs(&mut server.client().await).await;
    assert_eq!(jobs.len(), 100, "one job a node");
}

#[tokio::test]
async fn a_saga_whose_server_is_killed_undoes_exactly_what_was_done() {
    let mut server = Server::start(&[]).await;
    let mut text = String::from("version: 1\ndag: saga\nnodes:\n");
    for n in 0..20 {
        let needs = if n == 0 { String::new() } else { format!("needs: n{}, ", n - 1) };
        text.push_str(&format!(
            "  n{n}: {{ {needs}topic: job.echo, payload: {n}, compensation: {{ topic: job.echo, payload: {n} }} }}\n"
        ));
    }
    text.push_str("  bad: { needs: n19, topic: job.always_fail, max_attempts: 1, on_fail: compensate }\n");
    let dag = apply(&server, &text).await;
    let run = start(&server, &dag).await;
    until(&server, &run, |run| run.done >= 10).await;
    server.crash_and_restart().await;
    let undone = |run: &v1::DagRun| run.nodes.iter().filter(|node| node.undo() == UndoState::Done).count();
    for some in [3, 12] {
        until(&server, &run, |run| undone(run) >= some).await;
        server.crash_and_restart().await;
    }
    let run = until(&server, &run, |run| run.ended_at_ms.is_some()).await;
    assert_eq!(run.state(), RunState::Compensated);
    for node in &run.nodes {
        let done = node.state() == NodeState::Succeeded;
        assert_eq!(node.undo() == UndoState::Done, done, "{node:?}");
    }
    let jobs = all_jobs(&mut server.client().await).await;
    let undos = jobs.iter().filter(|job| job.labels.contains_key("saga_compensation")).count();
    assert_eq!((undos, jobs.len()), (20, 41), "each undo is one job");
}

#[tokio::test]
async fn bad_definitions_are_told_with_their_places_and_nothing_is_stored() {
    let server = Server::start(&["--no-worker"]).await;
    let file = server.folder().join("bad.yaml");
    std::fs::write(
        &file,
        "version: 1\ndag: bad\nnodes:\n  a: { needs: b, topic: job.noop }\n  b: { needs: a, topik: job.noop }\n",
    )
    .expect("written");
    let output = server.cli(&["dag", "apply", file.to_str().expect("UTF-8")]).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("bad.yaml:5") && told.contains("topik"), "{told}");
    assert!(!said(&server, &["dag", "list"]).await.contains("bad"));
}

#[tokio::test]
async fn lint_and_apply_warn_of_a_join_that_a_failure_overrules() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirrors.yaml");
    let text = "version: 1
dag: mirrors
nodes:
  a: {topic: job.always_fail, max_attempts: 1}
  b: {topic: job.noop, on_fail: continue}
  use: {needs: [a, b], join: any_success, topic: job.noop}
";
    std::fs::write(&path, text).expect("written");
    let file = path.to_str().expect("UTF-8");
    let server = Server::start(&[]).await;
    let warning = "use (any_success) needs a; say on_fail: continue there to let the join decide";
    assert!(said(&server, &["dag", "lint", file]).await.contains(warning));
    let applied = server.cli(&["dag", "apply", file]).await;
    assert!(applied.status.success() && String::from_utf8_lossy(&applied.stderr).contains(warning), "{applied:?}");

    // What it warns of, and that its advice helps.
    let failed = server.cli(&["dag", "start", "mirrors", "--watch"]).await;
    assert!(String::from_utf8_lossy(&failed.stdout).contains("FAILED"), "{failed:?}");
    std::fs::write(&path, text.replace("max_attempts: 1}", "max_attempts: 1, on_fail: continue}")).expect("written");
    assert!(!said(&server, &["dag", "lint", file]).await.contains("any_success"));
    said(&server, &["dag", "apply", file]).await;
    let done = server.cli(&["dag", "start", "mirrors", "--watch"]).await;
    assert!(String::from_utf8_lossy(&done.stdout).contains("SUCCEEDED"), "{done:?}");
}
