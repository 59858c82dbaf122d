//! `lockgate dag`: workflows.

mod apply;
pub(super) mod draw;
mod graph;
mod orders;
mod runs;
mod start;
mod watch;

use clap::{Args, Subcommand};

pub(super) use runs::{fetch, tone};

use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::CliSession;

/// Define workflows, run them, and look after their runs
#[derive(Args, Debug)]
pub(crate) struct DagArgs {
    #[command(subcommand)]
    command: DagCommand,
}

#[derive(Debug, Subcommand)]
enum DagCommand {
    Apply(apply::ApplyDag),
    Lint(apply::LintDag),
    List(apply::ListDags),
    Show(apply::ShowDag),
    Graph(graph::Graph),
    Start(start::StartRun),
    Runs(runs::ListRuns),
    Get(runs::GetRun),
    Watch(watch::WatchRun),
    Cancel(orders::CancelRun),
    Pause(orders::PauseRun),
    Resume(orders::ResumeRun),
    Rerun(orders::Rerun),
    Resolve(orders::ResolveRun),
}

impl DagArgs {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || CliSession::connect(connection, out).await;
        match self.command {
            DagCommand::Lint(command) => command.run(out),
            DagCommand::Graph(command) => command.run(connection, out).await,
            DagCommand::Apply(command) => command.run(&connect().await?).await,
            DagCommand::List(command) => command.run(&connect().await?).await,
            DagCommand::Show(command) => command.run(&connect().await?).await,
            DagCommand::Start(command) => command.run(&connect().await?).await,
            DagCommand::Runs(command) => command.run(&connect().await?).await,
            DagCommand::Get(command) => command.run(&connect().await?).await,
            DagCommand::Watch(command) => command.run(&connect().await?).await,
            DagCommand::Cancel(command) => command.run(&connect().await?).await,
            DagCommand::Pause(command) => command.run(&connect().await?).await,
            DagCommand::Resume(command) => command.run(&connect().await?).await,
            DagCommand::Rerun(command) => command.run(&connect().await?).await,
            DagCommand::Resolve(command) => command.run(&connect().await?).await,
        }
    }
}
