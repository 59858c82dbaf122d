//! `lockgate timeouts`: how long attempts may take, by topic.

use clap::{Args, Subcommand};

use super::config::{self, TIMEOUTS};
use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::Session;

/// Say how long attempts may take, by topic
#[derive(Args, Debug)]
pub(crate) struct Timeouts {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a timeouts file in force
    Apply(config::Apply),
    /// Check a timeouts file without a server and tell every fault
    Lint(config::Lint),
    /// Print the JSON Schema of timeouts files, for editors
    Schema(config::Schema),
    /// Print the timeouts in force, or earlier ones
    Show(config::Show),
    /// List timeouts that are or were in force, the latest first
    History(config::History),
    /// Put earlier timeouts in force again
    Rollback(config::Rollback),
}

impl Timeouts {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || Session::connect(connection, out).await;
        match self.command {
            Command::Lint(command) => command.run(&TIMEOUTS, out),
            Command::Schema(command) => command.run(&TIMEOUTS, out),
            Command::Apply(command) => command.run(&TIMEOUTS, &connect().await?).await,
            Command::Show(command) => command.run(&TIMEOUTS, &connect().await?).await,
            Command::History(command) => command.run(&TIMEOUTS, &connect().await?).await,
            Command::Rollback(command) => command.run(&TIMEOUTS, &connect().await?).await,
        }
    }
}
