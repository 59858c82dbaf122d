//! Logging of the long-running commands, to standard error.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::error::CliError;
use crate::output::{Format, Output};

#[derive(Args, Clone, Debug)]
pub(crate) struct LogArgs {
    /// What to log: error, warn, info, debug or trace, also by module
    #[arg(long, env = "LOCKGATE_LOG", hide_env_values = true, default_value = "info", value_name = "FILTER")]
    log: String,

    /// Form of log lines; JSON with --json, for people otherwise
    #[arg(long, env = "LOCKGATE_LOG_FORMAT", hide_env_values = true, value_enum, value_name = "FORM")]
    log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// Lines for people
    Human,
    /// One JSON document a line, its fields beside time, level and message
    Json,
}

impl LogArgs {
    pub(crate) fn start(&self, out: Output) -> Result<(), CliError> {
        let filter =
            EnvFilter::try_new(&self.log).map_err(|error| CliError::Usage(format!("--log {:?}: {error}", self.log)))?;
        let colour = out.format == Format::People { colour: true } && std::io::stderr().is_terminal();
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour);
        // A line that could not be written, on a full disk for instance, must not end the thread that wrote it.
        let lines = lines.log_internal_errors(false);
        let otherwise = if out.is_json() { LogFormat::Json } else { LogFormat::Human };
        let started = match self.log_format.unwrap_or(otherwise) {
            // Flattened, so that a query uses `job_id` and not `fields.job_id`.
            LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init(),
            LogFormat::Human => lines.try_init(),
        };
        started.map_err(|error| CliError::Usage(format!("logging: {error}")))
    }
}
