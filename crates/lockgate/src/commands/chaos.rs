//! `lockgate chaos`: an installation of its own, broken on purpose under load, and what that did to the promises.

mod drill;
mod fault;
mod ledger;
mod load;
mod observer;
mod process;
mod proxy;
mod stage;
mod ways;
mod work;

use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{CliError, Exit};
use crate::output::{Field, Output, Tone};
use crate::servers::{ServerArgs, Servers};
use drill::{Row, drill};
use fault::Fault;
use stage::Stage;

/// Break an installation of its own on purpose, under load, and show how it recovers and that no job is lost or doubled
#[derive(Args, Debug)]
#[command(after_long_help = "A fault is named by what it strikes and how: server-kill, worker-stop, client-half-open, \
    postgres-cut and so on. A blow to one of several is for the scheduler that leads, or for the worker that holds most. \
    What was acknowledged, and did not end well, is lost; what ended twice is doubled. \
    With either, or without recovery, the exit code is 5.")]
pub(crate) struct Chaos {
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

impl Chaos {
    pub(crate) async fn run(self, out: Output) -> Result<Exit, CliError> {
        let servers = self.shared()?;
        let faults = chosen(Fault::all(self.cluster), &self.faults)?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let rows = tokio::select! {
            rows = strike_all(servers.as_ref(), &faults, self.quick, out) => rows?,
            // Processes are killed when they are dropped: one that is stopped would hear nothing else.
            _ = interrupt.recv() => return Err(CliError::Usage("interrupted; the installation is gone".to_owned())),
            _ = terminate.recv() => return Err(CliError::Usage("ended; the installation is gone".to_owned())),
        };
        if let Some(file) = self.rows {
            let text = serde_json::to_string_pretty(&rows).map_err(|error| CliError::Server(error.to_string()))?;
            std::fs::write(file, text)?;
        }
        show(&rows, out)?;
        Ok(if rows.iter().all(Row::is_good) { Exit::Success } else { Exit::Conflict })
    }

    fn shared(&self) -> Result<Option<Servers>, CliError> {
        let servers = self.servers.shared()?.filter(|_| self.cluster);
        if self.cluster && servers.is_none() {
            let text = "--cluster needs DATABASE_URL, REDIS_URL and NATS_URL; `make chaos-cluster` starts fresh servers";
            return Err(CliError::Usage(text.to_owned()));
        }
        Ok(servers)
    }
}

fn chosen(all: Vec<Fault>, names: &[String]) -> Result<Vec<Fault>, CliError> {
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

async fn strike_all(servers: Option<&Servers>, faults: &[Fault], quick: bool, out: Output) -> Result<Vec<Row>, CliError> {
    let mut stage = Stage::start(servers, quick).await?;
    let mut rows = Vec::with_capacity(faults.len());
    for (n, fault) in faults.iter().enumerate() {
        let row = match fault.impossible() {
            Some(why) => Row::skipped(*fault, why),
            None => match drill(&mut stage, *fault, quick).await {
                Ok(row) => row,
                // What it left behind must not spoil the rows after it.
                Err(error) => {
                    stage = Stage::start(servers, quick).await?;
                    Row::broken(*fault, error.to_string())
                }
            },
        };
        out.remark(&format!("{} of {}: {}", n + 1, faults.len(), line(&row)));
        rows.push(row);
    }
    Ok(rows)
}

fn line(row: &Row) -> String {
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

fn show(rows: &[Row], out: Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&rows);
    }
    let count = |count: usize| Field::number(&count).toned(if count == 0 { Tone::Good } else { Tone::Bad });
    let row = |row: &Row| {
        let times = match (row.skipped, &row.broken) {
            (Some(_), _) => ["not done".to_owned(), "-".to_owned(), "-".to_owned()],
            (None, Some(_)) => ["broke off".to_owned(), "-".to_owned(), "never".to_owned()],
            (None, None) => [span(Some(row.lasted_ms), "-"), span(row.detected_ms, "-"), span(row.recovered_ms, "never")],
        };
        let mut fields = vec![Field::text(&row.fault)];
        fields.extend(times.iter().map(Field::number));
        fields.extend([Field::number(&row.jobs), count(row.lost), count(row.doubled), Field::number(&row.repeated)]);
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
        let names = |cluster: bool| Fault::all(cluster).iter().map(|fault| fault.name()).collect::<BTreeSet<_>>();
        assert_eq!(named("docs/resilience.md", "recovery embedded"), names(false));
        assert_eq!(named("docs/resilience.md", "recovery cluster"), names(true));
    }

    #[test]
    fn faults_are_chosen_by_name_and_unknown_ones_are_refused() {
        assert_eq!(chosen(Fault::all(false), &[]).expect("all").len(), Fault::all(false).len());
        let one = chosen(Fault::all(false), &["worker-kill".to_owned()]).expect("known");
        assert_eq!(one.len(), 1);
        let error = chosen(Fault::all(false), &["postgres-cut".to_owned()]).expect_err("unknown");
        assert!(error.to_string().contains("server-kill, server-stop, worker-kill"), "{error}");
    }

    #[test]
    fn a_fault_that_lost_something_or_was_not_recovered_from_is_bad() {
        let good = || Row {
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
        assert!(!Row { lost: 1, ..good() }.is_good());
        assert!(!Row { doubled: 1, ..good() }.is_good());
        assert!(!Row { recovered_ms: None, ..good() }.is_good());
        assert!(!Row::broken(Fault::all(false)[0], "no worker".to_owned()).is_good());
        let skipped = Row::skipped(Fault::all(false)[0], "not here");
        assert!(skipped.is_good());
        assert_eq!((span(Some(1_239), "-"), span(None, "never")), ("1.23 s".to_owned(), "never".to_owned()));
    }
}
