//! `lockgate quotas`: how much each tenant may take, and how much there is.

use clap::Args;

use super::config::{self, QUOTAS};
use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;

/// Say how much each tenant may take, and how much there is for all
#[derive(Args, Debug)]
pub(crate) struct QuotasArgs {
    #[command(subcommand)]
    command: config::ConfigCommand,
}

impl QuotasArgs {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        self.command.run(&QUOTAS, connection, out).await
    }
}
