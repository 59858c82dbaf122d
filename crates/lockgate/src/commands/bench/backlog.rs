//! What a long queue costs: rows and CPU per claim, memory, and the time to the first claim after a crash.

use std::time::Duration;

use super::Scale;
use super::report::Report;
use super::server::Server;
use super::traffic::Client;
use crate::error::CliError;

/// Jobs taken from the backlog while the cost is measured.
const CLAIMS: u64 = 5_000;
const SLOTS: u32 = 500;
/// Long enough for two rounds of the gauges.
const WATCHED: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longer queues are not drained to the end: that is measured elsewhere and would take minutes.
const DRAIN_MAX: usize = 100_000;

pub(super) async fn measure(scale: Scale, report: &mut Report) -> Result<(), CliError> {
    for &jobs in scale.backlogs {
        report.note(&format!("backlog: {jobs} jobs queued"));
        claims(jobs, report).await?;
    }
    report.note(&format!("restart: kill -9 with {} jobs queued", scale.restart_jobs));
    restart(scale.restart_jobs, report).await
}

async fn claims(jobs: usize, report: &mut Report) -> Result<(), CliError> {
    let server = Server::start().await?;
    let client = server.client().await?;
    let ids = client.submit(jobs).await?;
    let name = |what: &str| format!("embedded.{what}_at_{jobs}_queued");
    report.add(name("rss"), server.usage().rss_megabytes, "MB");
    report.add(name("watching_cpu_ms_per_second"), watching(&server).await?, "ms");
    let rows = "lockgate_ready_rows_read_total";
    let (before, read, claimed) =
        (server.usage(), server.counter(rows).await?, server.counter("lockgate_dequeued_total").await?);
    let worker = server.worker(SLOTS)?;
    client.until(|queues| queues.ended >= CLAIMS).await?;
    let used = server.usage().since(before);
    let claims = (server.counter("lockgate_dequeued_total").await? - claimed).max(1.0);
    report.add(name("rows_read_per_claim"), (server.counter(rows).await? - read) / claims, "rows");
    report.add(name("cpu_us_per_claim"), used.cpu_seconds * 1e6 / claims, "us");
    report.add(name("rss_while_draining"), used.rss_megabytes, "MB");
    if jobs > DRAIN_MAX {
        drop(worker);
        return check_counts(&client, jobs).await;
    }
    client.until(|queues| queues.live == 0).await?;
    client.check_exact(&ids).await
}

/// CPU that it takes to set the gauges and to show them to somebody who looks ten times a second.
async fn watching(server: &Server) -> Result<f64, CliError> {
    // What the submits left to be done is not what is measured.
    tokio::time::sleep(WATCHED / 2).await;
    let (before, began) = (server.usage(), tokio::time::Instant::now());
    let mut looks = tokio::time::interval(LOOK_EVERY);
    while began.elapsed() < WATCHED {
        looks.tick().await;
        server.counter("lockgate_ready_rows_read_total").await?;
    }
    Ok(server.usage().since(before).cpu_seconds * 1e3 / began.elapsed().as_secs_f64())
}

/// The quick check: every acknowledged job is still there, waiting or ended.
async fn check_counts(client: &Client, submitted: usize) -> Result<(), CliError> {
    let queues = client.queues().await?;
    if queues.live + queues.ended == submitted as u64 {
        return Ok(());
    }
    let (live, ended) = (queues.live, queues.ended);
    Err(CliError::Server(format!("{submitted} jobs were acknowledged; {live} are live and {ended} have ended")))
}

async fn restart(jobs: usize, report: &mut Report) -> Result<(), CliError> {
    let mut server = Server::start().await?;
    let before = server.client().await?;
    let ids = before.submit(jobs).await?;
    let began = tokio::time::Instant::now();
    server.crash_and_restart().await?;
    let _worker = server.worker(SLOTS)?;
    let client = before.again(&server.api).await?;
    let first = client.until(|queues| queues.held > 0 || queues.ended > 0).await?;
    report.add(format!("embedded.restart_to_first_claim_at_{jobs}_queued"), first.duration_since(began).as_secs_f64(), "s");
    // No worker was there before the crash, so even here one attempt is enough for each job.
    client.until(|queues| queues.live == 0).await?;
    client.check_exact(&ids).await
}
