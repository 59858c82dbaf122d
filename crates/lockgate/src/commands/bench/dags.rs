//! Workflows: chains, fans, layers, and many at once.

use std::fmt::Write as _;
use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_worker::Worker;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::report::{BenchReport, percentile};
use super::server::{Bed, BenchServer};
use super::traffic::TrafficClient;
use crate::error::CliError;

const TOPIC: &str = "bench.node";
const CHAIN: usize = 50;
const FAN: usize = 1_000;
/// Nodes of a layer; each needs one node of the layer before, and the first of a layer all of it.
const LAYER: usize = 100;
const SMALL_RUNS: usize = 50;
/// A run that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(2);
/// Starts in flight while many runs are started at once.
const STARTING: usize = 16;

pub(super) async fn measure(bed: &Bed, quick: bool, report: &mut BenchReport) -> Result<(), CliError> {
    let (layers, at_once) = if quick { (20, 200) } else { (100, 1_000) };
    report.note(&format!("workflows: a chain of {CHAIN}, a fan of {FAN}, {} nodes in layers", layers * LAYER));
    let server = BenchServer::start_on(bed).await?;
    let line = DagBench::open(&server).await?;
    let worker = Worker::connect(server.api.as_str()).slots(64).handle(TOPIC, |_, _| async { Ok(()) });
    let (stop, stopping) = oneshot::channel::<()>();
    let working = tokio::spawn(worker.run_until(async move {
        let _ = stopping.await;
    }));
    let name = |figure: &str| format!("{}.dag_{figure}", bed.name);

    line.put(&chain("chain", CHAIN)).await?;
    line.run("chain").await?;
    let (took, hops) = line.hops(CHAIN).await?;
    report.add(name("chain_50_ms"), took, "ms");
    for (share, text) in [(0.5, "p50"), (0.99, "p99")] {
        report.add(name(&format!("hop_{text}_ms")), percentile(&hops, share), "ms (upstream end to downstream start)");
    }
    line.put(&fan("fan", FAN)).await?;
    report.add(name("fan_1000_ms"), line.run("fan").await?.0, "ms (1, 1,000, 1)");

    let small = line.cost(&server, &layered("small", 1), SMALL_RUNS, LAYER).await?;
    report.add(name("node_cpu_us_at_100"), small, "µs of server CPU per node, runs of 100 nodes");
    let large = line.cost(&server, &layered("large", layers), 1, layers * LAYER).await?;
    let text =
        if quick { "µs of server CPU per node, a run of 2,000" } else { "µs of server CPU per node, a run of 10,000" };
    report.add(name("node_cpu_us_large"), large, text);

    line.put(&chain("three", 3)).await?;
    let rate = line.many("three", at_once).await?;
    report.add(name("runs_per_second"), rate, "runs/s (3 nodes each, all started at once)");
    drop(stop);
    working.await.map_err(|error| CliError::Server(error.to_string()))?.map_err(|e| CliError::Server(e.to_string()))
}

struct DagBench<'a> {
    server: &'a BenchServer,
    client: TrafficClient,
    stub: OrchestratorClient<Channel>,
}

impl<'a> DagBench<'a> {
    async fn open(server: &'a BenchServer) -> Result<Self, CliError> {
        let stub = OrchestratorClient::connect(server.api.clone()).await.map_err(|e| CliError::Server(e.to_string()))?;
        Ok(Self { server, client: server.client().await?, stub: stub.max_decoding_message_size(64 << 20) })
    }

    fn failed(&self, status: &tonic::Status) -> CliError {
        CliError::from_status(status, &self.server.api)
    }

    async fn put(&self, text: &str) -> Result<(), CliError> {
        let request = self.client.request(v1::PutDagRequest { file: "bench.yaml".to_owned(), text: text.to_owned() });
        self.stub.clone().put_dag(request).await.map_err(|status| self.failed(&status))?;
        Ok(())
    }

    async fn start(&self, dag: &str) -> Result<String, CliError> {
        let request = v1::StartDagRequest { dag: dag.to_owned(), ..v1::StartDagRequest::default() };
        let answer = self.stub.clone().start_dag(self.client.request(request)).await;
        Ok(answer.map_err(|status| self.failed(&status))?.into_inner().run_id)
    }

    /// Runs a DAG to its end, which must be good. Milliseconds, and the run.
    async fn run(&self, dag: &str) -> Result<(f64, v1::DagRun), CliError> {
        let began = Instant::now();
        let run_id = self.start(dag).await?;
        let request = v1::WatchDagRunRequest { run_id: run_id.clone(), after: 0 };
        let answer = self.stub.clone().watch_dag_run(self.client.request(request)).await;
        let mut stream = answer.map_err(|status| self.failed(&status))?.into_inner();
        while stream.message().await.map_err(|status| self.failed(&status))?.is_some() {}
        let took = began.elapsed().as_secs_f64() * 1e3;
        let request = self.client.request(v1::GetDagRunRequest { run_id });
        let run = self.stub.clone().get_dag_run(request).await.map_err(|status| self.failed(&status))?.into_inner();
        if run.state() != v1::RunState::Succeeded {
            return Err(CliError::Server(format!("a run ended as {}", run.state().as_str_name())));
        }
        Ok((took, run))
    }

    /// A chain once more, and from the end of each node to the start of the next, sorted.
    async fn hops(&self, nodes: usize) -> Result<(f64, Vec<f64>), CliError> {
        let (took, run) = self.run("chain").await?;
        let mut times = Vec::with_capacity(nodes);
        for node in run.nodes {
            let request = self.client.request(v1::GetJobRequest { job_id: node.job_id });
            let job = self.client.stub().get_job(request).await.map_err(|status| self.failed(&status))?.into_inner();
            let started = job.history.last().and_then(|attempt| attempt.started_at_ms.or(attempt.dispatched_at_ms));
            times.push((started.unwrap_or_default(), job.ended_at_ms.unwrap_or_default()));
        }
        let mut hops: Vec<f64> = times.windows(2).map(|pair| (pair[1].0 - pair[0].1) as f64).collect();
        hops.sort_by(f64::total_cmp);
        Ok((took, hops))
    }

    /// Microseconds of the server's CPU for each node.
    async fn cost(&self, server: &BenchServer, text: &str, runs: usize, nodes: usize) -> Result<f64, CliError> {
        self.put(text).await?;
        let dag = text.lines().find_map(|line| line.strip_prefix("dag: ")).unwrap_or_default();
        let before = server.usage();
        for _ in 0..runs {
            self.run(dag).await?;
        }
        Ok(server.usage().since(before).cpu_seconds * 1e6 / (runs * nodes) as f64)
    }

    /// Starts all of them and waits for the last. Runs per second.
    async fn many(&self, dag: &str, count: usize) -> Result<f64, CliError> {
        let began = Instant::now();
        let mut calls = JoinSet::new();
        for n in 0..count {
            if n >= STARTING {
                joined(calls.join_next().await)?;
            }
            let (mut stub, request) =
                (self.stub.clone(), v1::StartDagRequest { dag: dag.to_owned(), ..v1::StartDagRequest::default() });
            let request = self.client.request(request);
            calls.spawn(async move { stub.start_dag(request).await.map(|_| ()) });
        }
        while let Some(call) = calls.join_next().await {
            joined(Some(call))?;
        }
        let request = v1::ListDagRunsRequest {
            dag: dag.to_owned(),
            state: v1::RunState::Running.into(),
            limit: 1,
            ..v1::ListDagRunsRequest::default()
        };
        loop {
            let answer = self.stub.clone().list_dag_runs(self.client.request(request.clone())).await;
            if answer.map_err(|status| self.failed(&status))?.into_inner().runs.is_empty() {
                return Ok(count as f64 / began.elapsed().as_secs_f64());
            }
            if began.elapsed() > PATIENCE {
                return Err(CliError::Server("runs are stuck".to_owned()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn joined(call: Option<Result<Result<(), tonic::Status>, tokio::task::JoinError>>) -> Result<(), CliError> {
    match call {
        Some(Ok(Ok(()))) | None => Ok(()),
        Some(Ok(Err(status))) => Err(CliError::Server(status.message().to_owned())),
        Some(Err(error)) => Err(CliError::Server(error.to_string())),
    }
}

fn dag(name: &str, nodes: impl Iterator<Item = (String, Vec<String>)>) -> String {
    let mut text = format!("version: 1\ndag: {name}\nnodes:\n");
    for (node, needs) in nodes {
        let needs = if needs.is_empty() { String::new() } else { format!("needs: [{}], ", needs.join(", ")) };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  {node}: {{ {needs}topic: {TOPIC} }}");
    }
    text
}

fn chain(name: &str, length: usize) -> String {
    let needs = |n: usize| if n == 0 { Vec::new() } else { vec![format!("n{}", n - 1)] };
    dag(name, (0..length).map(|n| (format!("n{n}"), needs(n))))
}

fn fan(name: &str, width: usize) -> String {
    let middle = |n: usize| (format!("m{n}"), vec!["first".to_owned()]);
    let all = (0..width).map(|n| format!("m{n}")).collect();
    let first = std::iter::once(("first".to_owned(), Vec::new()));
    dag(name, first.chain((0..width).map(middle)).chain([("last".to_owned(), all)]))
}

fn layered(name: &str, layers: usize) -> String {
    let node = |layer: usize, n: usize| format!("n{layer}-{n}");
    let needs = |layer: usize, n: usize| match (layer, n) {
        (0, _) => Vec::new(),
        (_, 0) => (0..LAYER).map(|n| node(layer - 1, n)).collect(),
        _ => vec![node(layer - 1, n)],
    };
    dag(name, (0..layers).flat_map(|layer| (0..LAYER).map(move |n| (layer, n))).map(|(l, n)| (node(l, n), needs(l, n))))
}

#[cfg(test)]
mod tests {
    use lockgate_core::dag::Dag;

    use super::*;

    #[test]
    fn what_is_measured_are_dags_of_the_sizes_that_are_named() {
        for (text, nodes) in [(chain("a", CHAIN), 50), (fan("b", FAN), 1_002), (layered("c", 2), 200)] {
            assert_eq!(Dag::load("bench.yaml", &text).expect("a DAG").nodes.len(), nodes);
        }
    }
}
