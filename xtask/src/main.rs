//! Chores of this repository.

#[cfg(test)]
mod catalogue;
#[cfg(test)]
mod charts;
mod cluster;
#[cfg(test)]
mod containers;
mod dashboards;
mod observe;
mod pages;
mod performance;
mod recovery;
#[cfg(test)]
mod rules;
mod servers;
mod tidy;
mod tools;
#[cfg(test)]
mod workflows;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

const USAGE: &str = "usage: cargo xtask COMMAND

  tidy [--stats]      check what clippy cannot: crate edges, number of crates, sizes, names, links, tests that sleep;
                      with --stats also print how long files and functions are
  dashboards          write the Grafana dashboards of deploy/grafana
  sim [--seeds N]     simulated stories of crashes and faults, optimised; `lockgate-sim --help` lists the options
  dev                 a cluster on this machine with PostgreSQL, Redis and NATS of its own, until Ctrl-C
  observe             a cluster under load and in trouble, scraped by Prometheus: every query of a dashboard must have data
  performance         measure both kinds of installation, and write the tables of docs/performance.md
  recovery            break both kinds of installation on purpose, and write the tables of docs/resilience.md
  servers COMMAND...  run a command with fresh servers, their addresses in DATABASE_URL, REDIS_URL and NATS_URL
  shared COMMAND...   run a command that tests, with one PostgreSQL for all tests instead of one for each";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was in order.
fn run() -> anyhow::Result<bool> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["tidy"] => tidy::run(&root()?, tidy::Stats::Hide),
        ["tidy", "--stats"] => tidy::run(&root()?, tidy::Stats::Show),
        ["dashboards"] => dashboards::write(&root()?),
        ["sim", ref options @ ..] => simulate(options),
        ["dev"] => cluster::dev(&root()?),
        ["observe"] => observe::run(&root()?),
        ["performance"] => performance::run(&root()?),
        ["recovery"] => recovery::run(&root()?),
        ["servers", ref command @ ..] => servers::around(command),
        ["shared", ref command @ ..] => servers::shared(command),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(true)
        }
        _ => bail!("unknown command {args:?}\n{USAGE}"),
    }
}

/// Whether every story kept every promise.
fn simulate(options: &[&str]) -> anyhow::Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut simulator = Command::new(cargo);
    simulator.args(["run", "--release", "-p", "lockgate-sim", "--"]).args(options);
    Ok(simulator.status().context("cargo could not be started")?.success())
}

fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).context("xtask has no parent folder")
}
