//! `lockgate bench`: measures this build on this machine, through the public API, beside the machine's own limits.

mod backlog;
mod crowded;
mod dags;
mod decisions;
mod governed;
mod latency;
mod limits;
mod online;
mod overload;
mod procfs;
mod report;
mod schedules;
pub(super) mod server;
mod shared;
mod throughput;
pub(super) mod traffic;

use std::path::PathBuf;

use clap::Args;
use tempfile::TempDir;

use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::servers::ServerArgs;
use report::BenchReport;
use server::Bed;

/// Measure this build on this machine with a server of its own in a temporary folder
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Take less than 40 seconds: shorter runs, no backlog of a million
    #[arg(long)]
    quick: bool,

    /// Times the throughput runs are repeated; the median is shown
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20), value_name = "COUNT")]
    runs: u32,

    /// Measure a server on the PostgreSQL, Redis and NATS that the environment names, besides the one on a folder of its own
    #[arg(long)]
    cluster: bool,

    /// Only the cluster
    #[arg(long, requires = "cluster")]
    no_embedded: bool,

    /// Also write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,

    #[command(flatten)]
    servers: ServerArgs,
}

/// How much is done in one bench.
#[derive(Clone, Copy, Debug)]
struct Scale {
    jobs: usize,
    runs: usize,
    latency_seconds: u64,
    /// Jobs waiting when the cost of a claim is measured.
    backlogs: &'static [usize],
    /// Jobs in history when it is measured again.
    history: usize,
    restart_jobs: usize,
    /// Runs with and without a policy, and jobs in each.
    governed_runs: usize,
    governed_jobs: usize,
    quick: bool,
}

impl BenchArgs {
    fn scale(&self) -> Scale {
        if self.quick {
            return Scale {
                jobs: 20_000,
                runs: 1,
                latency_seconds: 3,
                backlogs: &[10_000],
                history: 50_000,
                restart_jobs: 20_000,
                governed_runs: 1,
                governed_jobs: 10_000,
                quick: true,
            };
        }
        let runs = usize::try_from(self.runs).unwrap_or(1);
        Scale {
            jobs: 60_000,
            runs,
            latency_seconds: 10,
            backlogs: &[10_000, 1_000_000],
            history: 1_000_000,
            restart_jobs: 100_000,
            governed_runs: 7,
            governed_jobs: 30_000,
            quick: false,
        }
    }

    pub(crate) async fn run(self, out: Output) -> Result<Exit, CliError> {
        let scale = self.scale();
        let mut report = BenchReport::new(out);
        report.note(&format!(
            "{} build, {} cores",
            if cfg!(debug_assertions) { "development" } else { "release" },
            std::thread::available_parallelism().map_or(1, usize::from)
        ));
        let cluster = self.cluster_bed()?;
        if !self.no_embedded {
            embedded(scale, &mut report).await?;
        }
        if let Some(bed) = cluster {
            throughput::measure(&bed, scale, &mut report).await?;
            shared::measure(&bed, scale, &mut report).await?;
            latency::measure(&bed, scale, &mut report).await?;
            dags::measure(&bed, scale.quick, &mut report).await?;
            schedules::measure(&bed, scale.quick, &mut report).await?;
        }
        if let Some(file) = &self.rows {
            report.write(file)?;
        }
        report.finish()?;
        Ok(Exit::Success)
    }

    fn cluster_bed(&self) -> Result<Option<Bed>, CliError> {
        let servers = self.servers.shared()?.filter(|_| self.cluster);
        if self.cluster && servers.is_none() {
            let text = "--cluster needs DATABASE_URL, REDIS_URL and NATS_URL; `make bench-cluster` starts fresh servers";
            return Err(CliError::Usage(text.to_owned()));
        }
        Ok(servers.as_ref().map(Bed::cluster))
    }
}

async fn embedded(scale: Scale, report: &mut BenchReport) -> Result<(), CliError> {
    let (folder, bed) = (TempDir::with_prefix("lockgate-bench-")?, Bed::embedded());
    limits::measure(folder.path(), report).await?;
    decisions::measure(report)?;
    throughput::measure(&bed, scale, report).await?;
    governed::measure(scale, report).await?;
    latency::measure(&bed, scale, report).await?;
    online::measure(report).await?;
    overload::measure(&bed, scale.quick, report).await?;
    crowded::measure(&bed, scale.quick, report).await?;
    dags::measure(&bed, scale.quick, report).await?;
    schedules::measure(&bed, scale.quick, report).await?;
    backlog::measure(scale, report).await
}
