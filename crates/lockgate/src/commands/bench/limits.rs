//! The machine's own limits, measured in the same run, without which the other figures mean little.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::report::{BenchReport, median, percentile};
use super::server::BenchServer;
use crate::error::CliError;

/// Bytes that one job's life writes, roughly.
const RECORD_BYTES: usize = 256;

pub(super) async fn measure(folder: &Path, report: &mut BenchReport) -> Result<(), CliError> {
    report.note("limits of this machine");
    for (batch, name) in [(1, "limits.fsync_appends_per_s"), (1_000, "limits.fsync_records_per_s_in_batches_of_1000")] {
        let path = folder.join("appends");
        let seconds = tokio::task::spawn_blocking(move || appends(&path, batch))
            .await
            .map_err(|error| CliError::Server(error.to_string()))??;
        if batch == 1 {
            report.add("limits.fsync_p50_ms", median(seconds.clone()) * 1e3, "ms");
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let rate = (seconds.len() * batch) as f64 / seconds.iter().sum::<f64>();
        report.add(name, rate, "records/s");
    }
    add_paced("fsync", paced_appends(&folder.join("paced")).await?, report);
    let server = BenchServer::start().await?;
    report.add("limits.grpc_unary_calls_per_s", unary(&server).await?, "calls/s");
    add_paced("grpc_unary", paced_unary(&server).await?, report);
    Ok(())
}

/// An idle machine lowers its clock and answers a write or a call more slowly than a busy one, and at a light load it is
/// always idle. Between a submit and the start of its job are two such syncs, one such call and one more message.
fn add_paced(what: &str, mut seconds: Vec<f64>, report: &mut BenchReport) {
    seconds.sort_by(f64::total_cmp);
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        report.add(format!("limits.{what}_at_100_per_s_{name}_ms"), percentile(&seconds, share) * 1e3, "ms");
    }
}

const PACE: Duration = Duration::from_millis(10);
const PACED: usize = 200;

/// Seconds that each small write took until it was on the disk, at the pace of a light load.
async fn paced_appends(path: &Path) -> Result<Vec<f64>, CliError> {
    let mut file = File::create(path)?;
    let mut pace = tokio::time::interval(PACE);
    let mut seconds = Vec::with_capacity(PACED);
    for _ in 0..PACED {
        pace.tick().await;
        let one = Instant::now();
        file.write_all(&[7u8; RECORD_BYTES])?;
        file.sync_data()?;
        seconds.push(one.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

/// Seconds that each smallest call took, at the same pace.
async fn paced_unary(server: &BenchServer) -> Result<Vec<f64>, CliError> {
    let client = server.client().await?;
    let mut pace = tokio::time::interval(PACE);
    let mut seconds = Vec::with_capacity(PACED);
    for _ in 0..PACED {
        pace.tick().await;
        let one = Instant::now();
        let answer = client.stub().list_workers(lockgate_proto::v1::ListWorkersRequest {}).await;
        answer.map_err(|status| CliError::Server(status.to_string()))?;
        seconds.push(one.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

/// Seconds that each write of `batch` records took until it was on the disk.
fn appends(path: &Path, batch: usize) -> Result<Vec<f64>, CliError> {
    let mut file = File::create(path)?;
    let block = vec![7u8; RECORD_BYTES * batch];
    let mut seconds = Vec::new();
    let began = Instant::now();
    while began.elapsed().as_millis() < 700 {
        let one = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        seconds.push(one.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

/// The smallest call there is, 64 in flight.
async fn unary(server: &BenchServer) -> Result<f64, CliError> {
    let client = server.client().await?;
    let mut calls = JoinSet::new();
    let began = Instant::now();
    let mut done = 0u32;
    while began.elapsed().as_millis() < 1_500 {
        while calls.len() < 64 {
            let mut stub = client.stub();
            calls.spawn(async move { stub.list_workers(lockgate_proto::v1::ListWorkersRequest {}).await.is_ok() });
        }
        if let Some(Ok(true)) = calls.join_next().await {
            done += 1;
        }
    }
    Ok(f64::from(done) / began.elapsed().as_secs_f64())
}
