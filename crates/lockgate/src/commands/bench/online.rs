//! From a worker that comes online to the start of a job that waited for it.

use std::sync::Arc;

use lockgate_proto::v1;
use lockgate_worker::Worker;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::report::{BenchReport, percentile};
use super::server::BenchServer;
use super::traffic::TrafficClient;
use crate::error::CliError;

const ROUNDS: usize = 50;
const TOPIC: &str = "bench.online";

pub(super) async fn measure(report: &mut BenchReport) -> Result<(), CliError> {
    report.note(&format!("a worker comes online to a waiting job, {ROUNDS} times"));
    let server = BenchServer::start().await?;
    let client = server.client().await?;
    let mut samples = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        samples.push(once(&server, &client).await?);
    }
    samples.sort_by(f64::total_cmp);
    report.add("embedded.online_to_start_p50_ms", percentile(&samples, 0.5), "ms (with connecting)");
    report.add("embedded.online_to_start_p99_ms", percentile(&samples, 0.99), "ms (with connecting)");
    Ok(())
}

/// Milliseconds from the call that starts the worker to its handler's first line.
async fn once(server: &BenchServer, client: &TrafficClient) -> Result<f64, CliError> {
    let job = v1::NewJob { topic: TOPIC.to_owned(), ..v1::NewJob::default() };
    let answer = client.stub().submit_job(client.request(v1::SubmitJobRequest { job: Some(job) })).await;
    answer.map_err(|status| CliError::from_status(&status, &server.api))?;
    let (started, starting) = oneshot::channel();
    let started = Arc::new(Mutex::new(Some(started)));
    let worker = Worker::connect(server.api.as_str()).slots(1).handle(TOPIC, move |_, _| {
        let now = Instant::now();
        // The start of the only run; a second run would be a defect that other checks find.
        if let Some(started) = started.lock().take() {
            let _ = started.send(now);
        }
        async { Ok(()) }
    });
    let (stop, stopping) = oneshot::channel::<()>();
    let began = Instant::now();
    let working = tokio::spawn(worker.run_until(async move {
        let _ = stopping.await;
    }));
    let at = starting.await.map_err(|_| CliError::Server("the worker left before the job started".into()))?;
    client.until(|queues| queues.live == 0).await?;
    let _ = stop.send(());
    working
        .await
        .map_err(|error| CliError::Server(error.to_string()))?
        .map_err(|error| CliError::Server(error.to_string()))?;
    Ok(at.duration_since(began).as_secs_f64() * 1e3)
}
