//! The cost of a job for the servers of a cluster: statements, rows, round trips.

use super::Scale;
use super::report::BenchReport;
use super::server::{Bed, BenchServer};
use super::throughput::concurrent_on;
use crate::error::CliError;

/// Counters of the server process, and what each is a part of.
const COSTS: [(&str, &str, &str); 6] = [
    ("sql_rows_written_per_job", "lockgate_store_rows_written_total", "rows"),
    ("sql_statements_per_job", "lockgate_store_statements_total", "statements"),
    ("sql_round_trips_per_job", "lockgate_store_round_trips_total", "round trips"),
    ("redis_round_trips_per_job", "lockgate_lanes_round_trips_total", "round trips"),
    ("nats_messages_per_job", "lockgate_bus_published_total", "messages"),
    ("nats_drops_per_job", "lockgate_bus_dropped_total", "messages"),
];

pub(super) async fn measure(bed: &Bed, scale: Scale, report: &mut BenchReport) -> Result<(), CliError> {
    report.note("cost: what the servers were asked, by one process in bulk");
    let server = BenchServer::start_on(bed).await?;
    let mut before = Vec::with_capacity(COSTS.len());
    for (_, counter, _) in COSTS {
        before.push(server.counter(counter).await?);
    }
    concurrent_on(&server, scale.jobs).await?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let jobs = scale.jobs as f64;
    for ((name, counter, unit), before) in COSTS.into_iter().zip(before) {
        let used = server.counter(counter).await? - before;
        report.add(format!("{}.{name}", bed.name), used / jobs, unit);
    }
    Ok(())
}
