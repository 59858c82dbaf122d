//! The cost of a long queue and a long history: rows and CPU per claim, memory, and the time to the first claim after a
//! crash.

use std::time::Duration;

use super::Scale;
use super::report::BenchReport;
use super::server::{BenchServer, WorkerProcess};
use super::traffic::TrafficClient;
use crate::error::CliError;

/// Jobs taken from the backlog while the cost is measured.
const CLAIMS: u64 = 5_000;
const SLOTS: u32 = 500;
/// Long enough for two rounds of the gauges.
const WATCHED: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Jobs that wait when the cost of a claim with a long history is measured.
const BEHIND_HISTORY: usize = 10_000;
/// Longer queues are not drained to the end: that is measured elsewhere and would take minutes.
const DRAIN_MAX: usize = 100_000;

pub(super) async fn measure(scale: Scale, report: &mut BenchReport) -> Result<(), CliError> {
    for &jobs in scale.backlogs {
        report.note(&format!("backlog: {jobs} jobs queued"));
        claims(jobs, report).await?;
    }
    report.note(&format!("history: {} jobs ended", scale.history));
    for ended in [0, scale.history] {
        after_history(ended, report).await?;
    }
    report.note(&format!("restart: kill -9 with {} jobs queued", scale.restart_jobs));
    restart(scale.restart_jobs, report).await
}

async fn claims(jobs: usize, report: &mut BenchReport) -> Result<(), CliError> {
    let server = BenchServer::start().await?;
    let client = server.client().await?;
    let ids = client.submit(jobs).await?;
    let name = |what: &str| format!("embedded.{what}_at_{jobs}_queued");
    report.add(name("rss"), server.usage().rss_megabytes, "MB");
    report.add(name("watching_cpu_ms_per_second"), watching(&server).await?, "ms");
    let (worker, cost) = Cost::of_claims(&server, &client).await?;
    report.add(name("rows_read_per_claim"), cost.rows, "rows");
    report.add(name("cpu_us_per_claim"), cost.cpu_us, "us");
    report.add(name("rss_while_draining"), cost.rss_megabytes, "MB");
    if jobs > DRAIN_MAX {
        drop(worker);
        return check_counts(&client, jobs).await;
    }
    client.until(|queues| queues.live == 0).await?;
    client.check_exact(&ids).await
}

/// The CPU time of setting the gauges, and of serving them to a client that scrapes ten times a second.
async fn watching(server: &BenchServer) -> Result<f64, CliError> {
    // Work that the submits left behind must not be measured.
    tokio::time::sleep(WATCHED / 2).await;
    let (before, began) = (server.usage(), tokio::time::Instant::now());
    let mut looks = tokio::time::interval(LOOK_EVERY);
    while began.elapsed() < WATCHED {
        looks.tick().await;
        server.counter("lockgate_ready_rows_read_total").await?;
    }
    Ok(server.usage().since(before).cpu_seconds * 1e3 / began.elapsed().as_secs_f64())
}

/// The cost of a claim with `ended` jobs in history, which should be that without any.
async fn after_history(ended: usize, report: &mut BenchReport) -> Result<(), CliError> {
    let server = BenchServer::start().await?;
    let client = server.client().await?;
    if ended > 0 {
        let _worker = server.worker(SLOTS)?;
        client.submit(ended).await?;
        client.until(|queues| queues.live == 0).await?;
    }
    client.submit(BEHIND_HISTORY).await?;
    let (_worker, cost) = Cost::of_claims(&server, &client).await?;
    report.add(format!("embedded.claim_rows_after_{ended}_ended"), cost.rows, "rows");
    report.add(format!("embedded.claim_cpu_us_after_{ended}_ended"), cost.cpu_us, "us");
    client.until(|queues| queues.live == 0).await?;
    check_counts(&client, ended + BEHIND_HISTORY).await
}

/// The server's resources per claim, from the lane to the end of the job.
struct Cost {
    rows: f64,
    cpu_us: f64,
    rss_megabytes: f64,
}

impl Cost {
    /// Starts a worker and measures until it has ended `CLAIMS` waiting jobs.
    async fn of_claims(server: &BenchServer, client: &TrafficClient) -> Result<(WorkerProcess, Self), CliError> {
        let rows = "lockgate_ready_rows_read_total";
        let ended = client.queues().await?.ended;
        let (before, read, claimed) =
            (server.usage(), server.counter(rows).await?, server.counter("lockgate_dequeued_total").await?);
        let worker = server.worker(SLOTS)?;
        client.until(|queues| queues.ended >= ended + CLAIMS).await?;
        let used = server.usage().since(before);
        let claims = (server.counter("lockgate_dequeued_total").await? - claimed).max(1.0);
        let rows = (server.counter(rows).await? - read) / claims;
        Ok((worker, Self { rows, cpu_us: used.cpu_seconds * 1e6 / claims, rss_megabytes: used.rss_megabytes }))
    }
}

/// The quick check: every acknowledged job is still there, waiting or ended.
async fn check_counts(client: &TrafficClient, submitted: usize) -> Result<(), CliError> {
    let queues = client.queues().await?;
    if queues.live + queues.ended == submitted as u64 {
        return Ok(());
    }
    let (live, ended) = (queues.live, queues.ended);
    Err(CliError::Server(format!("{submitted} jobs were acknowledged; {live} are live and {ended} have ended")))
}

async fn restart(jobs: usize, report: &mut BenchReport) -> Result<(), CliError> {
    let mut server = BenchServer::start().await?;
    let before = server.client().await?;
    let ids = before.submit(jobs).await?;
    let began = tokio::time::Instant::now();
    server.crash_and_restart().await?;
    let _worker = server.worker(SLOTS)?;
    let client = before.again(&server.api).await?;
    let first = client.until(|queues| queues.held > 0 || queues.ended > 0).await?;
    report.add(format!("embedded.restart_to_first_claim_at_{jobs}_queued"), first.duration_since(began).as_secs_f64(), "s");
    // There was no worker before the crash, so each job needs only one attempt.
    client.until(|queues| queues.live == 0).await?;
    client.check_exact(&ids).await
}
