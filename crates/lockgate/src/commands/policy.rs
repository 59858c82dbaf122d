//! `lockgate policy`: write, try, activate and take back policies.

mod activate;
mod compare;
mod explain;
mod files;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lockgate_core::config::ConfigError;
use lockgate_core::policy;
use lockgate_proto::v1;

use super::config;
use super::config::files::read;
use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::CliSession;

/// Check, try, activate and take back policies
#[derive(Args, Debug)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    Check(files::CheckPolicy),
    Test(files::TestPolicy),
    Schema(files::SchemaPolicy),
    Apply(activate::ApplyPolicy),
    Show(activate::ShowPolicy),
    List(activate::ListPolicys),
    Rollback(activate::RollbackPolicy),
    Explain(explain::Explain),
    Simulate(compare::Simulate),
    Diff(compare::Diff),
}

impl PolicyArgs {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || CliSession::connect(connection, out).await;
        match self.command {
            PolicyCommand::Check(command) => command.run(out),
            PolicyCommand::Test(command) => command.run(out),
            PolicyCommand::Schema(command) => command.run(out),
            PolicyCommand::Explain(command) => command.run(connection, out).await,
            PolicyCommand::Apply(command) => command.run(&connect().await?).await,
            PolicyCommand::Show(command) => command.run(&connect().await?).await,
            PolicyCommand::List(command) => command.run(&connect().await?).await,
            PolicyCommand::Rollback(command) => command.run(&connect().await?).await,
            PolicyCommand::Simulate(command) => command.run(&mut connect().await?).await,
            PolicyCommand::Diff(command) => command.run(&mut connect().await?).await,
        }
    }
}

/// The page that describes policies, for the author of a faulty one.
const FURTHER: &str = "`lockgate policy schema` describes the language to editors";

fn tell(errors: &[ConfigError], out: Output) -> Result<Exit, CliError> {
    config::files::tell(errors, Some(FURTHER), out)
}

/// A policy by the file that holds it or by the snapshot the server keeps.
#[derive(Clone, Debug)]
enum PolicySource {
    File(PathBuf),
    Snapshot(String),
}

impl std::str::FromStr for PolicySource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text.starts_with("sha256:") { Self::Snapshot(text.to_owned()) } else { Self::File(text.into()) })
    }
}

/// A policy that loads.
struct Text {
    /// What errors call it.
    name: String,
    text: String,
}

impl PolicySource {
    /// None when the file has faults, which have been told then.
    async fn text(&self, session: &CliSession) -> Result<Option<Text>, CliError> {
        match self {
            Self::Snapshot(snapshot) => {
                let request = v1::GetPolicyRequest { snapshot: snapshot.clone() };
                let response = session.admin().get_policy(request).await;
                Ok(Some(Text { name: snapshot.clone(), text: session.answer(response)?.text }))
            }
            Self::File(path) => {
                let (name, text) = (path.display().to_string(), read(path)?);
                match policy::Policy::load(&name, &text) {
                    Ok(_) => Ok(Some(Text { name, text })),
                    Err(errors) => tell(&errors, session.out).map(|_| None),
                }
            }
        }
    }
}
