//! The binary: server, worker and command line in one.

mod args;
mod cli;
mod clock;
mod commands;
mod deadline;
mod descriptors;
mod effects;
mod entropy;
mod error;
mod faults;
mod follow;
mod live;
mod logging;
mod output;
mod servers;
mod session;
mod size;
mod slots;
mod spans;

use std::process::ExitCode;

use mimalloc::MiMalloc;

use crate::cli::Cli;
use crate::error::{CliError, Exit};
use crate::output::{Output, Tone};

/// A job's memory is allocated by one thread and freed by another, over and over: the system's allocator spends a seventh of
/// a busy server's time on that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let out = cli.output();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(CliError::from).and_then(|runtime| runtime.block_on(cli.run()));
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            complain(&error, out);
            error.exit().into()
        }
    }
}

/// Help and version succeed; anything else is wrong usage. clap's exit code 2 means a job that ended badly here.
fn usage(error: &clap::Error) -> ExitCode {
    let exit = if error.use_stderr() { Exit::Error } else { Exit::Success };
    // If the output stream cannot be written to, there is no place to report that.
    let _ = error.print();
    exit.into()
}

fn complain(error: &CliError, out: Output) {
    match error {
        CliError::OutputClosed => {}
        _ if out.is_json() => eprintln!("{}", error.json()),
        _ => {
            eprintln!("{} {error}", out.paint("error:", Tone::Bad));
            if let Some(hint) = error.hint() {
                eprintln!("{} {hint}", out.paint("hint:", Tone::Faint));
            }
        }
    }
}
