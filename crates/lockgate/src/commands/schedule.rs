//! `lockgate schedule`: what starts by itself.

mod apply;
mod list;
mod next;
mod orders;

use clap::{Args, Subcommand};

use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::Session;

/// Start jobs and workflows by the clock
#[derive(Args, Debug)]
pub(crate) struct Schedule {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Apply(apply::Apply),
    Lint(apply::Lint),
    Next(next::Next),
    List(list::List),
    Show(list::Show),
    Slots(list::Slots),
    Pause(orders::Pause),
    Resume(orders::Resume),
    Trigger(orders::Trigger),
    Remove(orders::Remove),
    Backfill(orders::Backfill),
    CancelBackfill(orders::CancelBackfill),
}

impl Schedule {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || Session::connect(connection, out).await;
        match self.command {
            Command::Lint(command) => command.run(out),
            Command::Next(command) => command.run(out),
            Command::Apply(command) => command.run(&connect().await?).await,
            Command::List(command) => command.run(&connect().await?).await,
            Command::Show(command) => command.run(&connect().await?).await,
            Command::Slots(command) => command.run(&connect().await?).await,
            Command::Pause(command) => command.run(&connect().await?).await,
            Command::Resume(command) => command.run(&connect().await?).await,
            Command::Trigger(command) => command.run(&connect().await?).await,
            Command::Remove(command) => command.run(&connect().await?).await,
            Command::Backfill(command) => command.run(&connect().await?).await,
            Command::CancelBackfill(command) => command.run(&connect().await?).await,
        }
    }
}
