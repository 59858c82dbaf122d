//! Workflows of plain jobs in real processes, whose server dies under them.

use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::{RunState, UndoState};
use tokio::time::Instant;

use super::harness::{PATIENCE, Server, all_jobs};

const JOBS: usize = 12;

async fn done(server: &Server, n: usize) {
    let (id, payload) = (format!("step-{n}"), n.to_string());
    let undo = format!(r#"{{"topic":"job.echo","payload":{n}}}"#);
    let job = ["submit", "job.echo", "--payload", &payload, "--job-id", &id, "--workflow-id", "trip", "--wait"];
    let output = server.cli(&[&job[..], &["--compensation", &undo]].concat()).await;
    assert!(output.status.success(), "{output:?}");
}

async fn saga(server: &Server) -> v1::DagRun {
    let mut client = OrchestratorClient::connect(server.api.clone()).await.expect("connected");
    let request = v1::ListDagRunsRequest { dag: "trip".into(), sagas: true, limit: 1, ..Default::default() };
    let listed = client.list_dag_runs(request).await.expect("listed").into_inner();
    let run_id = listed.runs.first().map(|run| run.run_id.clone()).unwrap_or_default();
    client.get_dag_run(v1::GetDagRunRequest { run_id }).await.expect("there").into_inner()
}

async fn until(server: &Server, wanted: impl Fn(&v1::DagRun) -> bool) -> v1::DagRun {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let run = saga(server).await;
        if wanted(&run) {
            return run;
        }
        assert!(Instant::now() < deadline, "it did not happen: {run:?}");
    }
}

#[tokio::test]
async fn a_workflow_of_plain_jobs_whose_server_is_killed_is_undone_exactly_and_in_reverse() {
    let mut server = Server::start(&[]).await;
    for n in 0..JOBS {
        if n == JOBS / 2 {
            server.crash_and_restart().await;
        }
        done(&server, n).await;
    }
    // A payload that its handler does not understand: no retry can mend that.
    let bad = server.cli(&["submit", "job.sleep", "--payload", "\"?\"", "--workflow-id", "trip", "--wait"]).await;
    assert_eq!(bad.status.code(), Some(2), "{bad:?}");
    let undone = |run: &v1::DagRun| run.nodes.iter().filter(|node| node.undo() == UndoState::Done).count();
    for some in [2, 7] {
        until(&server, |run| undone(run) >= some).await;
        server.crash_and_restart().await;
    }
    let run = until(&server, |run| run.ended_at_ms.is_some()).await;
    assert_eq!((run.state(), undone(&run), run.total), (RunState::Compensated, JOBS, JOBS as u32 + 1));
    let jobs = all_jobs(&mut server.client().await).await;
    // Listed newest first, which is the order in which their work was done.
    let undos = jobs.iter().filter(|job| job.labels.contains_key("saga_compensation")).map(|job| &job.job_id);
    let expected = run.nodes.iter().filter(|node| !node.undo_job_id.is_empty()).map(|node| &node.undo_job_id);
    assert_eq!(undos.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "in reverse, and each once");
    let shown = server.cli(&["saga", "show", "trip"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("COMPENSATED") && shown.contains("step-11"), "{shown}");
    let refused = server.cli(&["submit", "job.echo", "--workflow-id", "trip"]).await;
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
}
