//! From submit to the handler's first line, at a light and a steady load, on a fixed timetable.

use std::sync::Arc;
use std::time::Duration;

use lockgate_proto::v1;
use lockgate_worker::Worker;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Scale;
use super::report::{BenchReport, percentile};
use super::server::{Bed, BenchServer};
use super::traffic::TrafficClient;
use crate::error::CliError;

const TOPIC: &str = "bench.latency";

pub(super) async fn measure(bed: &Bed, scale: Scale, report: &mut BenchReport) -> Result<(), CliError> {
    for (rate, prefix) in [(100, "start"), (1_000, "start_at_1000")] {
        report.note(&format!("latency: {rate} jobs/s for {} s", scale.latency_seconds));
        let samples = at_rate(&BenchServer::start_on(bed).await?, rate, scale.latency_seconds).await?;
        for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            report.add(format!("{}.{prefix}_{name}_ms", bed.name), percentile(&samples, share), "ms");
        }
    }
    Ok(())
}

/// Latencies in milliseconds, sorted.
async fn at_rate(server: &BenchServer, rate: u64, seconds: u64) -> Result<Vec<f64>, CliError> {
    let client = server.client().await?;
    let began = Instant::now();
    let samples: Arc<Mutex<Vec<f64>>> = Arc::default();
    let taken = samples.clone();
    let worker = Worker::connect(server.api.as_str()).slots(64).handle(TOPIC, move |_, payload| {
        let now = began.elapsed();
        let sent = payload.json::<f64>();
        let taken = taken.clone();
        async move {
            taken.lock().push(now.as_secs_f64() * 1e3 - sent?);
            Ok(())
        }
    });
    let (stop, stopping) = oneshot::channel::<()>();
    let working = tokio::spawn(worker.run_until(async move {
        let _ = stopping.await;
    }));
    let mut ids = vec![submit(&client, began).await?];
    client.until(|queues| queues.live == 0).await?;
    samples.lock().clear();

    let mut calls = JoinSet::new();
    let start = Instant::now();
    let count = rate * seconds;
    for n in 0..count {
        tokio::time::sleep_until(start + Duration::from_secs_f64(n as f64 / rate as f64)).await;
        let client = client.clone();
        calls.spawn(async move { submit(&client, began).await });
    }
    while let Some(sent) = calls.join_next().await {
        ids.push(sent.map_err(|error| CliError::Server(error.to_string()))??);
    }
    client.until(|queues| queues.live == 0).await?;
    client.check_exact(&ids).await?;
    // Dropping the switch stops the worker.
    drop(stop);
    working.await.map_err(|error| CliError::Server(error.to_string()))?.map_err(|e| CliError::Server(e.to_string()))?;
    let mut samples = std::mem::take(&mut *samples.lock());
    if samples.len() as u64 != count {
        return Err(CliError::Server(format!("{count} jobs were acknowledged and {} ran", samples.len())));
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples)
}

/// The acknowledged id.
async fn submit(client: &TrafficClient, began: Instant) -> Result<String, CliError> {
    let sent_ms = began.elapsed().as_secs_f64() * 1e3;
    let job = v1::NewJob {
        topic: TOPIC.to_owned(),
        payload_json: format!("{sent_ms}").into_bytes().into(),
        ..v1::NewJob::default()
    };
    let answer = client.stub().submit_job(client.request(v1::SubmitJobRequest { job: Some(job) })).await;
    answer.map(|answer| answer.into_inner().job_id).map_err(|status| CliError::Server(status.to_string()))
}
