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
use crate::session::Session;

/// Define workflows, run them, and look after their runs
#[derive(Args, Debug)]
pub(crate) struct Dag {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Apply(apply::Apply),
    Lint(apply::Lint),
    List(apply::List),
    Show(apply::Show),
    Graph(graph::Graph),
    Start(start::Start),
    Runs(runs::Runs),
    Get(runs::Get),
    Watch(watch::Watch),
    Cancel(orders::Cancel),
    Pause(orders::Pause),
    Resume(orders::Resume),
    Rerun(orders::Rerun),
    Resolve(orders::Resolve),
}

impl Dag {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || Session::connect(connection, out).await;
        match self.command {
            Command::Lint(command) => command.run(out),
            Command::Graph(command) => command.run(connection, out).await,
            Command::Apply(command) => command.run(&connect().await?).await,
            Command::List(command) => command.run(&connect().await?).await,
            Command::Show(command) => command.run(&connect().await?).await,
            Command::Start(command) => command.run(&connect().await?).await,
            Command::Runs(command) => command.run(&connect().await?).await,
            Command::Get(command) => command.run(&connect().await?).await,
            Command::Watch(command) => command.run(&connect().await?).await,
            Command::Cancel(command) => command.run(&connect().await?).await,
            Command::Pause(command) => command.run(&connect().await?).await,
            Command::Resume(command) => command.run(&connect().await?).await,
            Command::Rerun(command) => command.run(&connect().await?).await,
            Command::Resolve(command) => command.run(&connect().await?).await,
        }
    }
}
