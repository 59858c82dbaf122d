//! Runs that are rolled back while workers finish what was cancelled: the order of the undos, in real processes.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::{JobState, NodeState, RunState, UndoState};
use tokio::time::Instant;
use tonic::transport::Channel;

use super::cluster::{Ground, worker};
use super::harness::{PATIENCE, Server, all_jobs};

/// `b` is cancelled because `f` fails, and often done by then.
const LATE: &str = "
version: 1
dag: late
nodes:
  a: {topic: job.noop, on_fail: compensate, compensation: {topic: job.sleep, payload: {ms: 50}}}
  b: {needs: [a], topic: job.sleep, payload: {ms: 3}, on_fail: compensate, compensation: {topic: job.sleep, payload: {ms: 50}}}
  f: {needs: [a], topic: job.always_fail, max_attempts: 1, on_fail: compensate}
";
/// Runs under way at once.
const AT_ONCE: usize = 20;

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var_os(name).and_then(|n| n.to_str()?.parse().ok()).unwrap_or(otherwise)
}

/// A reproducible order of numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A DAG of short jobs, of which some fail and the others can be undone.
    fn saga(&mut self, name: &str) -> String {
        let mut text = format!("version: 1\ndag: {name}\nnodes:\n");
        let count = 4 + self.below(6);
        for n in 0..count {
            let needs: Vec<String> = (0..n).filter(|_| self.below(3) == 0).map(|parent| format!("n{parent}")).collect();
            let needs = if needs.is_empty() { String::new() } else { format!("needs: [{}], ", needs.join(", ")) };
            if n > 1 && (n + 1 == count || self.below(5) == 0) {
                text += &format!("  n{n}: {{{needs}topic: job.always_fail, max_attempts: 1, on_fail: compensate}}\n");
                continue;
            }
            let (works, undoes) = (self.below(9), 10 + self.below(20));
            text += &format!(
                "  n{n}: {{{needs}topic: job.sleep, payload: {{ms: {works}}}, on_fail: compensate, \
                 compensation: {{topic: job.sleep, payload: {{ms: {undoes}}}}}}}\n"
            );
        }
        text
    }
}

/// What was seen of many runs.
#[derive(Debug, Default)]
struct Seen {
    runs: usize,
    /// Nodes whose job was cancelled and whose worker was done all the same.
    done_late: usize,
    undone: usize,
    wrong: Vec<String>,
}

async fn orchestrator(server: &Server) -> OrchestratorClient<Channel> {
    OrchestratorClient::connect(server.api.clone()).await.expect("connected")
}

async fn put(server: &Server, text: String) -> String {
    let request = v1::PutDagRequest { file: "test.yaml".to_owned(), text };
    orchestrator(server).await.put_dag(request).await.expect("stored").into_inner().name
}

/// Starts a run of each, a few at a time, and waits for their ends.
async fn run_all(server: &Server, dags: &[String]) -> Vec<v1::DagRun> {
    let (mut client, mut ended) = (orchestrator(server).await, Vec::new());
    for some in dags.chunks(AT_ONCE) {
        let mut started = Vec::new();
        for dag in some {
            let request = v1::StartDagRequest { dag: dag.clone(), ..v1::StartDagRequest::default() };
            started.push(client.start_dag(request).await.expect("started").into_inner().run_id);
        }
        for run_id in started {
            ended.push(wait_for_end(&mut client, &run_id).await);
        }
    }
    ended
}

async fn wait_for_end(client: &mut OrchestratorClient<Channel>, run_id: &str) -> v1::DagRun {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(std::time::Duration::from_millis(20));
    loop {
        let request = v1::GetDagRunRequest { run_id: run_id.to_owned() };
        let run = client.get_dag_run(request).await.expect("there").into_inner();
        if run.ended_at_ms.is_some() {
            return run;
        }
        assert!(Instant::now() < deadline, "it did not end: {run:?}");
        pause.tick().await;
    }
}

/// R-5, by what jobs say of themselves: an undo begins only after the undos of all that needed its node have ended.
async fn judge(server: &Server, runs: Vec<v1::DagRun>) -> Seen {
    let jobs = all_jobs(&mut server.client().await).await;
    let jobs: BTreeMap<&str, &v1::Job> = jobs.iter().map(|job| (job.job_id.as_str(), job)).collect();
    let mut seen = Seen { runs: runs.len(), ..Seen::default() };
    for run in &runs {
        if run.state() != RunState::Compensated {
            seen.wrong.push(format!("{}: {:?}", run.run_id, run.state()));
        }
        let undos: BTreeMap<&str, &v1::Job> = run
            .nodes
            .iter()
            .filter(|node| node.undo() == UndoState::Done)
            .map(|node| (node.name.as_str(), jobs[node.undo_job_id.as_str()]))
            .collect();
        seen.undone += undos.len();
        for node in &run.nodes {
            seen.done_late += usize::from(node.done_late);
            let cancelled = jobs.get(node.job_id.as_str()).is_some_and(|job| job.state() == JobState::Cancelled);
            if cancelled && node.state() == NodeState::Succeeded {
                seen.wrong.push(format!("{} {}: SUCCEEDED, and its job is CANCELLED", run.run_id, node.name));
            }
            let Some(later) = undos.get(node.name.as_str()) else { continue };
            for need in &node.needs {
                let overtook = |earlier: &&&v1::Job| Some(earlier.submitted_at_ms) < later.ended_at_ms;
                if undos.get(need.as_str()).filter(overtook).is_some() {
                    seen.wrong.push(format!("{}: the undo of {need} before that of {}", run.run_id, node.name));
                }
            }
        }
    }
    seen
}

async fn in_order(server: &Server, what: &str, dags: &[String]) {
    let began = Instant::now();
    let seen = judge(server, run_all(server, dags).await).await;
    println!(
        "{what}: {} runs, {} undos, {} nodes done late, {} out of order, {:?}",
        seen.runs,
        seen.undone,
        seen.done_late,
        seen.wrong.len(),
        began.elapsed()
    );
    assert!(seen.wrong.is_empty(), "{what}: {} of {} runs: {:?}", seen.wrong.len(), seen.runs, seen.wrong);
}

/// `LOCKGATE_SOAK_SAGAS` runs, 60 without it; a sixth as many DAGs made at random.
#[tokio::test]
async fn what_a_cancelled_node_needed_is_undone_after_it_however_late_its_worker_is_done() {
    let runs = number("LOCKGATE_SOAK_SAGAS", 60);
    let seed = number("LOCKGATE_SOAK_SEED", usize::try_from(RandomState::new().hash_one(0) >> 33).expect("31 bits"));
    println!("LOCKGATE_SOAK_SEED={seed}");
    let server = Server::start(&[]).await;
    let late = put(&server, LATE.to_owned()).await;
    in_order(&server, "late", &vec![late; runs]).await;
    let mut dice = Dice(seed as u64);
    let mut dags = Vec::new();
    for n in 0..runs / 6 {
        dags.push(put(&server, dice.saga(&format!("random-{n}"))).await);
    }
    in_order(&server, "random", &dags).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_too_what_a_cancelled_node_needed_is_undone_after_it() {
    let runs = number("LOCKGATE_SOAK_SAGAS", 240) / 6;
    let ground = Ground::start();
    let one = ground.process("gateway,scheduler,orchestrator", &[]).await;
    let other = ground.process("gateway,scheduler,orchestrator", &[]).await;
    let _workers = [worker("here", 8, &[&one]), worker("there", 8, &[&other])];
    let late = put(&one, LATE.to_owned()).await;
    in_order(&one, "cluster", &vec![late; runs]).await;
}
