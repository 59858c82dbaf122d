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

/// What a job needs is allocated by one thread and freed by another, over and over: the allocator of the system spends a
/// seventh of a busy server's time on that.
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

/// Help and version are answers; anything else is wrong usage. 2, which clap would return, is taken by bad jobs.
fn usage(error: &clap::Error) -> ExitCode {
    let exit = if error.use_stderr() { Exit::Error } else { Exit::Success };
    // Nothing can be said about an output stream that cannot be written to.
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
