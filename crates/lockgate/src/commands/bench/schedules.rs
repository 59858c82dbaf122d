//! Many schedules due in one second, and the effect on other calls.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use lockgate_ports::Clock;
use lockgate_proto::v1;
use lockgate_proto::v1::schedules_client::SchedulesClient;
use tokio::time::Instant;

use super::report::{BenchReport, percentile};
use super::server::{Bed, BenchServer};
use super::traffic::TrafficClient;
use crate::clock::SystemClock;
use crate::error::CliError;

/// Schedules of one file.
const TOGETHER: usize = 5_000;
/// The interval of submits beside it.
const PROBE_EVERY: Duration = Duration::from_millis(10);
/// A target that is not started by then is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn measure(bed: &Bed, quick: bool, report: &mut BenchReport) -> Result<(), CliError> {
    let (count, lead) = if quick { (6_000, 10) } else { (60_000, 60) };
    report.note(&format!("schedules: {count} due in the same second"));
    let server = BenchServer::start_on(bed).await?;
    let client = server.client().await?;
    let mut stub = SchedulesClient::connect(server.api.clone()).await.map_err(|e| CliError::Server(e.to_string()))?;
    let due = Timestamp::from_millisecond(SystemClock.now().as_millis()).unwrap_or_default() + Duration::from_secs(lead);
    for first in (0..count).step_by(TOGETHER) {
        let text = file(first..count.min(first + TOGETHER), due);
        let request = client.request(v1::PutSchedulesRequest { file: "bench.yaml".to_owned(), text });
        stub.put_schedules(request).await.map_err(|status| CliError::from_status(&status, &server.api))?;
    }
    let before = live(&client).await?;
    let wait = due.as_millisecond() - SystemClock.now().as_millis();
    let Ok(wait) = u64::try_from(wait) else {
        return Err(CliError::Server(format!("{count} schedules were not applied within {lead} s")));
    };
    tokio::time::sleep(Duration::from_millis(wait)).await;
    let (took, probes) = watch(&client, before + count as u64).await?;
    let name = |figure: &str| format!("{}.schedules_{figure}", bed.name);
    report.add(name("last_start_s"), took, "s (from the common second to the last start)");
    for (share, text) in [(0.5, "p50"), (0.99, "p99")] {
        report.add(name(&format!("submit_beside_{text}_ms")), percentile(&probes, share), "ms");
    }
    Ok(())
}

/// Submits beside it until so many jobs are there besides its own. Seconds, and how long the submits took, sorted.
async fn watch(client: &TrafficClient, count: u64) -> Result<(f64, Vec<f64>), CliError> {
    let began = Instant::now();
    let mut probes = Vec::new();
    let mut ticks = tokio::time::interval(PROBE_EVERY);
    loop {
        ticks.tick().await;
        let sent = Instant::now();
        let job = Some(v1::NewJob { topic: "bench.beside".to_owned(), ..v1::NewJob::default() });
        let request = client.request(v1::SubmitJobRequest { job });
        client.stub().submit_job(request).await.map_err(|status| CliError::Server(status.message().to_owned()))?;
        probes.push(sent.elapsed().as_secs_f64() * 1e3);
        let live = live(client).await?;
        if live >= count + probes.len() as u64 {
            probes.sort_by(f64::total_cmp);
            return Ok((began.elapsed().as_secs_f64(), probes));
        }
        if began.elapsed() > PATIENCE {
            return Err(CliError::Server(format!("only {live} jobs were started")));
        }
    }
}

/// Jobs of all tenants that have not ended.
async fn live(client: &TrafficClient) -> Result<u64, CliError> {
    let queues = client.stub().list_queues(client.request(v1::ListQueuesRequest {})).await;
    Ok(queues.map_err(|status| CliError::Server(status.message().to_owned()))?.into_inner().live)
}

fn file(numbers: std::ops::Range<usize>, due: Timestamp) -> String {
    let mut text = "version: 1\nschedules:\n".to_owned();
    for n in numbers {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  s{n}: {{ every: 1d, start_at: \"{due}\", overlap: allow, job: {{ topic: bench.cron }} }}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_are_schedules() {
        let text = file(3..5, Timestamp::UNIX_EPOCH);
        let names: Vec<_> =
            lockgate_core::schedule::load("bench.yaml", &text).expect("a file").into_iter().map(|(n, _)| n).collect();
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["s3", "s4"]);
    }
}
