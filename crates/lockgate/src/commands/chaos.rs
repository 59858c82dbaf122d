//! `lockgate chaos`: injects faults into an installation of its own under load, and checks Lockgate's guarantees.

mod drill;
mod fault;
mod load;
mod observer;
mod process;
mod proxy;
mod stage;
mod tally;
mod ways;
mod work;

use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::servers::{ServerAddresses, ServerArgs};
use drill::{RecoveryRow, drill};
use fault::PlannedFault;
use stage::Installation;

/// Break an installation of its own on purpose, under load, and show how it recovers and that no job is lost or doubled
#[derive(Args, Debug)]
#[command(after_long_help = "A fault is named by what it strikes and how: server-kill, worker-stop, client-half-open, \
    postgres-cut and so on. A blow to one of several is for the scheduler that leads, or for the worker that holds most. \
    What was acknowledged, and did not end well, is lost; what ended twice is doubled. \
    With either, or without recovery, the exit code is 5.")]
pub(crate) struct ChaosArgs {
    /// Shorter silences and stops
    #[arg(long)]
    quick: bool,

    /// Only this fault; can be given many times
    #[arg(long = "fault", value_name = "NAME")]
    faults: Vec<String>,

    /// Several processes on the PostgreSQL, Redis and NATS that the environment names, instead of one on a folder of its own
    #[arg(long)]
    cluster: bool,

    /// Also write the rows to this file, as JSON
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,

    #[command(flatten)]
    servers: ServerArgs,
}

impl ChaosArgs {
    pub(crate) async fn run(self, out: Output) -> Result<Exit, CliError> {
        let servers = self.shared()?;
        let faults = chosen(PlannedFault::all(self.cluster), &self.faults)?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let rows = tokio::select! {
            rows = strike_all(servers.as_ref(), &faults, self.quick, out) => rows?,
            // Dropping the processes kills them, since a process stopped by SIGSTOP does not react to SIGTERM.
            _ = interrupt.recv() => return Err(CliError::Usage("interrupted; the installation is gone".to_owned())),
            _ = terminate.recv() => return Err(CliError::Usage("ended; the installation is gone".to_owned())),
        };
        if let Some(file) = self.rows {
            let text = serde_json::to_string_pretty(&rows).map_err(|error| CliError::Server(error.to_string()))?;
            std::fs::write(file, text)?;
        }
        show(&rows, out)?;
        Ok(if rows.iter().all(RecoveryRow::is_good) { Exit::Success } else { Exit::Conflict })
    }

    fn shared(&self) -> Result<Option<ServerAddresses>, CliError> {
        let servers = self.servers.shared()?.filter(|_| self.cluster);
        if self.cluster && servers.is_none() {
            let text = "--cluster needs DATABASE_URL, REDIS_URL and NATS_URL; `make chaos-cluster` starts fresh servers";
            return Err(CliError::Usage(text.to_owned()));
        }
        Ok(servers)
    }
}

fn chosen(all: Vec<PlannedFault>, names: &[String]) -> Result<Vec<PlannedFault>, CliError> {
    if names.is_empty() {
        return Ok(all);
    }
    let known = || all.iter().map(|fault| fault.name()).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        let found = all.iter().copied().find(|fault| fault.name() == *name);
        found.ok_or_else(|| CliError::Usage(format!("there is no fault {name:?} here; there are {}", known())))
    };
    names.iter().map(find).collect()
}

async fn strike_all(
    servers: Option<&ServerAddresses>,
    faults: &[PlannedFault],
    quick: bool,
    out: Output,
) -> Result<Vec<RecoveryRow>, CliError> {
    let mut stage = Installation::start(servers, quick).await?;
    let mut rows = Vec::with_capacity(faults.len());
    for (n, fault) in faults.iter().enumerate() {
        let row = match fault.impossible() {
            Some(why) => RecoveryRow::skipped(*fault, why),
            None => match drill(&mut stage, *fault, quick).await {
                Ok(row) => row,
                // The remains of a failed drill must not affect the next ones.
                Err(error) => {
                    stage = Installation::start(servers, quick).await?;
                    RecoveryRow::broken(*fault, error.to_string())
                }
            },
        };
        out.remark(&format!("{} of {}: {}", n + 1, faults.len(), line(&row)));
        rows.push(row);
    }
    Ok(rows)
}

fn line(row: &RecoveryRow) -> String {
    match (row.skipped, &row.broken) {
        (Some(why), _) => format!("{}: not done: {why}", row.fault),
        (None, Some(why)) => format!("{}: broke off: {why}", row.fault),
        (None, None) => format!(
            "{}: detected after {}, recovered after {}; {} jobs, {} lost, {} doubled, {} run again",
            row.fault,
            span(row.detected_ms, "-"),
            span(row.recovered_ms, "never"),
            row.jobs,
            row.lost,
            row.doubled,
            row.repeated
        ),
    }
}

/// Two digits are as many as a shared machine can tell apart.
fn span(millis: Option<u64>, absent: &str) -> String {
    millis.map_or_else(|| absent.to_owned(), |ms| format!("{}.{:02} s", ms / 1_000, ms % 1_000 / 10))
}

fn show(rows: &[RecoveryRow], out: Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&rows);
    }
    let count = |count: usize| TableCell::number(&count).toned(if count == 0 { Tone::Good } else { Tone::Bad });
    let row = |row: &RecoveryRow| {
        let times = match (row.skipped, &row.broken) {
            (Some(_), _) => ["not done".to_owned(), "-".to_owned(), "-".to_owned()],
            (None, Some(_)) => ["broke off".to_owned(), "-".to_owned(), "never".to_owned()],
            (None, None) => [span(Some(row.lasted_ms), "-"), span(row.detected_ms, "-"), span(row.recovered_ms, "never")],
        };
        let mut fields = vec![TableCell::text(&row.fault)];
        fields.extend(times.iter().map(TableCell::number));
        fields.extend([TableCell::number(&row.jobs), count(row.lost), count(row.doubled), TableCell::number(&row.repeated)]);
        fields
    };
    let names = ["fault", "lasted", "detected after", "recovered after", "jobs", "lost", "doubled", "run again"];
    out.line(&out.table(&names, &rows.iter().map(row).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The faults that a table of a page has, between the marks that `make recovery` writes it between.
    fn named(page: &str, mark: &str) -> BTreeSet<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        let text = std::fs::read_to_string(path).expect("the page");
        let (_, from) = text.split_once(&format!("<!-- {mark}: generated -->")).expect("the beginning of the table");
        let (table, _) = from.split_once(&format!("<!-- {mark}: end -->")).expect("the end of the table");
        let name = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
        table.lines().filter_map(name).collect()
    }

    #[test]
    fn the_recovery_tables_have_every_fault_and_no_other() {
        let names = |cluster: bool| PlannedFault::all(cluster).iter().map(|fault| fault.name()).collect::<BTreeSet<_>>();
        assert_eq!(named("docs/resilience.md", "recovery embedded"), names(false));
        assert_eq!(named("docs/resilience.md", "recovery cluster"), names(true));
    }

    #[test]
    fn faults_are_chosen_by_name_and_unknown_ones_are_refused() {
        assert_eq!(chosen(PlannedFault::all(false), &[]).expect("all").len(), PlannedFault::all(false).len());
        let one = chosen(PlannedFault::all(false), &["worker-kill".to_owned()]).expect("known");
        assert_eq!(one.len(), 1);
        let error = chosen(PlannedFault::all(false), &["postgres-cut".to_owned()]).expect_err("unknown");
        assert!(error.to_string().contains("server-kill, server-stop, worker-kill"), "{error}");
    }

    #[test]
    fn a_fault_that_lost_something_or_was_not_recovered_from_is_bad() {
        let good = || RecoveryRow {
            fault: "server-kill".to_owned(),
            lasted_ms: 0,
            detected_ms: None,
            recovered_ms: Some(1_234),
            jobs: 10,
            lost: 0,
            doubled: 0,
            repeated: 3,
            skipped: None,
            broken: None,
        };
        assert!(good().is_good());
        assert!(!RecoveryRow { lost: 1, ..good() }.is_good());
        assert!(!RecoveryRow { doubled: 1, ..good() }.is_good());
        assert!(!RecoveryRow { recovered_ms: None, ..good() }.is_good());
        assert!(!RecoveryRow::broken(PlannedFault::all(false)[0], "no worker".to_owned()).is_good());
        let skipped = RecoveryRow::skipped(PlannedFault::all(false)[0], "not here");
        assert!(skipped.is_good());
        assert_eq!((span(Some(1_239), "-"), span(None, "never")), ("1.23 s".to_owned(), "never".to_owned()));
    }
}
