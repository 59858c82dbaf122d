//! What the long-running commands write about themselves, to standard error.

use std::io::IsTerminal;

use clap::Args;
use tracing_subscriber::EnvFilter;

use crate::error::CliError;
use crate::output::{Format, Output};

#[derive(Args, Clone, Debug)]
pub(crate) struct LogArgs {
    /// What to log: error, warn, info, debug or trace, also by module
    #[arg(long, env = "LOCKGATE_LOG", hide_env_values = true, default_value = "info", value_name = "FILTER")]
    log: String,
}

impl LogArgs {
    /// Lines for people, or JSON documents with `--json`.
    pub(crate) fn start(&self, out: Output) -> Result<(), CliError> {
        let filter =
            EnvFilter::try_new(&self.log).map_err(|error| CliError::Usage(format!("--log {:?}: {error}", self.log)))?;
        let colour = out.format == Format::People { colour: true } && std::io::stderr().is_terminal();
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour);
        // A line that could not be written, on a full disk for instance, must not end the thread that wrote it.
        let lines = lines.log_internal_errors(false);
        let started = if out.is_json() { lines.json().try_init() } else { lines.try_init() };
        started.map_err(|error| CliError::Usage(format!("logging: {error}")))
    }
}
