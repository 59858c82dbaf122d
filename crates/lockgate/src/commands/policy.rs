//! `lockgate policy`: write, try, activate and take back policies.

mod activate;
mod compare;
mod explain;
mod files;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lockgate_core::policy::{self, PolicyError};
use lockgate_proto::v1;
use serde::Serialize;

use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::Session;

/// Check, try, activate and take back policies
#[derive(Args, Debug)]
pub(crate) struct Policy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(files::Check),
    Test(files::Test),
    Schema(files::Schema),
    Apply(activate::Apply),
    Show(activate::Show),
    List(activate::List),
    Rollback(activate::Rollback),
    Explain(explain::Explain),
    Simulate(compare::Simulate),
    Diff(compare::Diff),
}

impl Policy {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || Session::connect(connection, out).await;
        match self.command {
            Command::Check(command) => command.run(out),
            Command::Test(command) => command.run(out),
            Command::Schema(command) => command.run(out),
            Command::Explain(command) => command.run(connection, out).await,
            Command::Apply(command) => command.run(&connect().await?).await,
            Command::Show(command) => command.run(&connect().await?).await,
            Command::List(command) => command.run(&connect().await?).await,
            Command::Rollback(command) => command.run(&connect().await?).await,
            Command::Simulate(command) => command.run(&mut connect().await?).await,
            Command::Diff(command) => command.run(&mut connect().await?).await,
        }
    }
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|error| CliError::Usage(format!("{} cannot be read: {error}", path.display())))
}

/// What is wrong with a file, for programs.
#[derive(Debug, Serialize)]
struct Faults {
    ok: bool,
    errors: Vec<Fault>,
}

#[derive(Debug, Serialize)]
struct Fault {
    file: String,
    line: usize,
    column: usize,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

impl From<&PolicyError> for Fault {
    fn from(error: &PolicyError) -> Self {
        Self {
            file: error.file.to_string(),
            line: error.line,
            column: error.column,
            message: error.message.clone(),
            suggestion: error.suggestion.clone(),
        }
    }
}

/// Tells every fault of a file. People read them beside the output; programs get a document.
fn tell(errors: &[PolicyError], out: Output) -> Result<Exit, CliError> {
    if out.is_json() {
        out.json(&Faults { ok: false, errors: errors.iter().map(Fault::from).collect() })?;
    } else {
        errors.iter().for_each(|error| eprintln!("{error}"));
        let file = errors.first().map(|error| error.file.to_string()).unwrap_or_default();
        out.remark(&match errors.len() {
            1 => format!("1 fault in {file}; `lockgate policy schema` describes the language to editors"),
            faults => format!("{faults} faults in {file}; `lockgate policy schema` describes the language to editors"),
        });
    }
    Ok(Exit::Error)
}

/// A policy by the file that holds it or by the snapshot the server keeps.
#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Snapshot(String),
}

impl std::str::FromStr for Source {
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

impl Source {
    /// None when the file has faults, which have been told then.
    async fn text(&self, session: &Session) -> Result<Option<Text>, CliError> {
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
