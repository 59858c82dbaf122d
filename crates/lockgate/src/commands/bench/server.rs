//! A server and worker processes of the bench's own, started from this binary and killed when dropped.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::procfs::ProcessUsage;
use super::traffic::TrafficClient;
use crate::error::CliError;
use crate::servers::ServerAddresses;

/// The backends of the bench's servers.
pub(super) struct Bed {
    /// First word of its figures.
    pub(super) name: &'static str,
    pub(super) args: Vec<String>,
}

impl Bed {
    pub(super) fn embedded() -> Self {
        Self { name: "embedded", args: Vec::new() }
    }

    /// One process with all roles, on shared backends.
    pub(super) fn cluster(servers: &ServerAddresses) -> Self {
        Self { name: "cluster", args: servers.words() }
    }
}

pub(super) struct BenchServer {
    child: Child,
    pub(super) api: String,
    metrics: String,
    folder: TempDir,
}

/// A worker process; killed when dropped.
pub(super) struct WorkerProcess {
    _child: Child,
}

/// Where a server listens.
#[derive(Deserialize)]
pub(in crate::commands) struct BenchAddresses {
    pub(in crate::commands) api: String,
    metrics: String,
}

/// A server that does not answer by then is broken.
const START: Duration = Duration::from_secs(30);

impl BenchServer {
    pub(super) async fn start() -> Result<Self, CliError> {
        Self::start_with(&[]).await
    }

    pub(super) async fn start_on(bed: &Bed) -> Result<Self, CliError> {
        Self::start_with(&bed.args.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    pub(super) async fn start_with(args: &[&str]) -> Result<Self, CliError> {
        let folder = TempDir::with_prefix("lockgate-bench-")?;
        let (child, started) = launch(this_binary()?, folder.path(), args).await?;
        Ok(Self { child, api: started.api, metrics: started.metrics, folder })
    }

    /// kill -9, and a new process on the same folder.
    pub(super) async fn crash_and_restart(&mut self) -> Result<(), CliError> {
        self.child.kill().await?;
        let (child, started) = launch(this_binary()?, self.folder.path(), &[]).await?;
        (self.child, self.api, self.metrics) = (child, started.api, started.metrics);
        Ok(())
    }

    pub(super) async fn client(&self) -> Result<TrafficClient, CliError> {
        TrafficClient::connect(&self.api).await
    }

    pub(super) fn worker(&self, slots: u32) -> Result<WorkerProcess, CliError> {
        let child = this_binary()?
            .args(["worker", "--log", "error", "--server", &self.api, "--slots", &slots.to_string()])
            .kill_on_drop(true)
            .spawn()?;
        Ok(WorkerProcess { _child: child })
    }

    pub(super) fn usage(&self) -> ProcessUsage {
        self.child.id().map(ProcessUsage::of).unwrap_or_default()
    }

    /// One counter of the server's metrics, all labels together.
    pub(super) async fn counter(&self, name: &str) -> Result<f64, CliError> {
        let text = super::traffic::get(&self.metrics).await?;
        sum_of(name, &text).ok_or_else(|| CliError::Server(format!("the server has no metric {name}")))
    }
}

/// None if no line has the name, because a misspelt metric must not look like one with the value zero.
fn sum_of(name: &str, text: &str) -> Option<f64> {
    let of = |line: &str| {
        let (head, value) = line.rsplit_once(' ')?;
        (head.split('{').next()? == name).then(|| value.parse::<f64>().ok())?
    };
    text.lines().filter_map(of).reduce(|sum, value| sum + value)
}

pub(in crate::commands) fn this_binary() -> Result<Command, CliError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// Starts a server without a worker, and waits until it is up. `command` runs this binary.
pub(in crate::commands) async fn launch(
    mut command: Command,
    folder: &Path,
    args: &[&str],
) -> Result<(Child, BenchAddresses), CliError> {
    // Only the arguments may select the backends.
    for variable in ["DATABASE_URL", "REDIS_URL", "NATS_URL", "LOCKGATE_DISK_LIMIT"] {
        command.env_remove(variable);
    }
    let mut child = command
        .args([
            "--json",
            "serve",
            "--no-config",
            "--no-worker",
            "--log",
            "error",
            "--listen",
            "127.0.0.1:0",
            "--metrics",
            "127.0.0.1:0",
        ])
        .arg("--data")
        .arg(folder)
        .args(args)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let Some(stdout) = child.stdout.take() else { return Err(CliError::Server("no output from the server".into())) };
    let mut lines = BufReader::new(stdout).lines();
    let first = tokio::time::timeout(START, lines.next_line()).await;
    let line = first.map_err(|_| CliError::Server("the server did not start in time".into()))??;
    let started = line.as_deref().map(serde_json::from_str).transpose();
    match started {
        Ok(Some(started)) => Ok((child, started)),
        _ => Err(CliError::Server(format!("the server said {line:?} instead of where it listens"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_sums_up_its_labels_and_an_unknown_one_is_not_zero() {
        let text = "# TYPE jobs counter\njobs_total{lane=\"a\"} 2\njobs_total{lane=\"b\"} 3\nidle_total 0\n";
        assert_eq!(sum_of("jobs_total", text), Some(5.0));
        assert_eq!(sum_of("idle_total", text), Some(0.0));
        assert_eq!(sum_of("jobs", text), None);
    }
}
