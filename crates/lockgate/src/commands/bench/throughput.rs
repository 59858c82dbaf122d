//! How many no-op jobs a second: drained from a backlog, and end to end while they are submitted.

use tokio::time::Instant;

use super::Scale;
use super::report::{BenchReport, median};
use super::server::{Bed, BenchServer};
use crate::error::CliError;

/// Enough places that the worker never waits for a commit.
const SLOTS: u32 = 4_000;

pub(super) async fn measure(bed: &Bed, scale: Scale, report: &mut BenchReport) -> Result<(), CliError> {
    report.note(&format!("throughput: {} no-op jobs through gRPC and a worker process", scale.jobs));
    let (mut drains, mut concurrents, mut submits) = (Vec::new(), Vec::new(), Vec::new());
    let mut costs = Vec::new();
    for _ in 0..scale.runs {
        let (submit, drain) = drain(bed, scale.jobs).await?;
        submits.push(submit);
        drains.push(drain);
        let run = concurrent_on(&BenchServer::start_on(bed).await?, scale.jobs).await?;
        concurrents.push(run.rate);
        costs.push(run);
    }
    let mut add = |what: &str, value: f64, unit| report.add(format!("{}.{what}", bed.name), value, unit);
    add("drain_jobs_per_s", median(drains), "jobs/s");
    add("concurrent_jobs_per_s", median(concurrents), "jobs/s");
    add("submit_jobs_per_s", median(submits), "jobs/s");
    let middle = |pick: fn(&BenchRun) -> f64| median(costs.iter().map(pick).collect());
    add("server_cpu_us_per_job", middle(|run| run.cpu_us), "us");
    add("bytes_written_per_job", middle(|run| run.bytes), "bytes");
    add("commits_per_job", middle(|run| run.commits), "commits (one fsync each)");
    add("rss_after_run", middle(|run| run.rss), "MB");
    Ok(())
}

/// Jobs a second: submitting without a worker, then draining.
async fn drain(bed: &Bed, jobs: usize) -> Result<(f64, f64), CliError> {
    let server = BenchServer::start_on(bed).await?;
    let client = server.client().await?;
    let before = client.queues().await?.ended;
    let began = Instant::now();
    let ids = client.submit(jobs).await?;
    let submitted = rate(jobs, began, Instant::now());
    let _worker = server.worker(SLOTS)?;
    let first = client.until(|queues| queues.held > 0 || queues.ended > before).await?;
    let last = client.until(|queues| queues.live == 0).await?;
    client.check_exact(&ids).await?;
    Ok((submitted, rate(jobs, first, last)))
}

pub(super) struct BenchRun {
    rate: f64,
    pub(super) cpu_us: f64,
    bytes: f64,
    commits: f64,
    rss: f64,
}

/// Jobs a second from the first submit to the last end, the worker waiting from the start.
pub(super) async fn concurrent_on(server: &BenchServer, jobs: usize) -> Result<BenchRun, CliError> {
    let client = server.client().await?;
    let _worker = server.worker(SLOTS)?;
    // The first job proves that the worker is there.
    let mut ids = client.submit(1).await?;
    client.until(|queues| queues.live == 0).await?;
    let (before, commits) = (server.usage(), server.counter("lockgate_store_commits_total").await?);
    let began = Instant::now();
    ids.extend(client.submit(jobs).await?);
    let last = client.until(|queues| queues.live == 0).await?;
    let used = server.usage().since(before);
    let commits = server.counter("lockgate_store_commits_total").await? - commits;
    client.check_exact(&ids).await?;
    let each = count(jobs);
    Ok(BenchRun {
        rate: rate(jobs, began, last),
        cpu_us: used.cpu_seconds * 1e6 / each,
        bytes: used.bytes_written / each,
        commits: commits / each,
        rss: used.rss_megabytes,
    })
}

fn rate(jobs: usize, from: Instant, to: Instant) -> f64 {
    count(jobs) / to.duration_since(from).as_secs_f64().max(1e-6)
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(jobs: usize) -> f64 {
    jobs as f64
}
