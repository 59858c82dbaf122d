//! `lockgate timeouts`: how long attempts may take, by topic.

use clap::Args;

use super::config::{self, TIMEOUTS};
use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;

/// Say how long attempts may take, by topic
#[derive(Args, Debug)]
pub(crate) struct TimeoutsArgs {
    #[command(subcommand)]
    command: config::ConfigCommand,
}

impl TimeoutsArgs {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        self.command.run(&TIMEOUTS, connection, out).await
    }
}
