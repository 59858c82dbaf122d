//! Chores of this repository.

mod servers;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

const USAGE: &str = "usage: cargo xtask COMMAND

  tidy [--stats]      check what clippy cannot: crate edges, sizes, names, client crates, tests that sleep;
                      with --stats also print how long files and functions are
  dev                 a cluster on this machine with PostgreSQL, Redis and NATS of its own, until Ctrl-C
  servers COMMAND...  run a command with fresh servers, their addresses in DATABASE_URL, REDIS_URL and NATS_URL";

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
        ["dev"] => servers::dev(&root()?),
        ["servers", ref command @ ..] => servers::around(command),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(true)
        }
        _ => bail!("unknown command {args:?}\n{USAGE}"),
    }
}

fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).context("xtask has no parent folder")
}
