//! `lockgate schedule`: what starts by itself.

mod apply;
mod list;
mod next;
mod orders;

use clap::{Args, Subcommand};

use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::CliSession;

/// Start jobs and workflows by the clock
#[derive(Args, Debug)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    command: ScheduleCommand,
}

#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    Apply(apply::ApplySchedule),
    Lint(apply::LintSchedule),
    Next(next::NextTimes),
    List(list::ListSchedules),
    Show(list::ShowSchedule),
    Slots(list::ListScheduleSlots),
    Pause(orders::PauseSchedule),
    Resume(orders::ResumeSchedule),
    Trigger(orders::Trigger),
    Remove(orders::Remove),
    Backfill(orders::BackfillSchedule),
    CancelBackfill(orders::CancelBackfill),
}

impl ScheduleArgs {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || CliSession::connect(connection, out).await;
        match self.command {
            ScheduleCommand::Lint(command) => command.run(out),
            ScheduleCommand::Next(command) => command.run(out),
            ScheduleCommand::Apply(command) => command.run(&connect().await?).await,
            ScheduleCommand::List(command) => command.run(&connect().await?).await,
            ScheduleCommand::Show(command) => command.run(&connect().await?).await,
            ScheduleCommand::Slots(command) => command.run(&connect().await?).await,
            ScheduleCommand::Pause(command) => command.run(&connect().await?).await,
            ScheduleCommand::Resume(command) => command.run(&connect().await?).await,
            ScheduleCommand::Trigger(command) => command.run(&connect().await?).await,
            ScheduleCommand::Remove(command) => command.run(&connect().await?).await,
            ScheduleCommand::Backfill(command) => command.run(&connect().await?).await,
            ScheduleCommand::CancelBackfill(command) => command.run(&connect().await?).await,
        }
    }
}
