//! `lockgate quotas`: how much each tenant may take, and how much there is.

use clap::{Args, Subcommand};

use super::config::{self, QUOTAS};
use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::Session;

/// Say how much each tenant may take, and how much there is for all
#[derive(Args, Debug)]
pub(crate) struct Quotas {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a quotas file in force
    Apply(config::Apply),
    /// Check a quotas file without a server and tell every fault
    Lint(config::Lint),
    /// Print the JSON Schema of quotas files, for editors
    Schema(config::Schema),
    /// Print the quotas in force, or earlier ones
    Show(config::Show),
    /// List quotas that are or were in force, the latest first
    History(config::History),
    /// Put earlier quotas in force again
    Rollback(config::Rollback),
}

impl Quotas {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || Session::connect(connection, out).await;
        match self.command {
            Command::Lint(command) => command.run(&QUOTAS, out),
            Command::Schema(command) => command.run(&QUOTAS, out),
            Command::Apply(command) => command.run(&QUOTAS, &connect().await?).await,
            Command::Show(command) => command.run(&QUOTAS, &connect().await?).await,
            Command::History(command) => command.run(&QUOTAS, &connect().await?).await,
            Command::Rollback(command) => command.run(&QUOTAS, &connect().await?).await,
        }
    }
}
