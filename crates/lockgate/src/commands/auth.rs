//! `lockgate auth`: who is let in.

mod credentials;
mod make;
mod whoami;

use clap::{Args, Subcommand};

use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::CliSession;

/// Say who is let in, and with what
#[derive(Args, Debug)]
pub(crate) struct Auth {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    Whoami(whoami::Whoami),
    /// Make, list, replace and revoke API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Let bearers of client certificates in, or keep them out again
    #[command(subcommand)]
    Certificate(Certificate),
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    Create(make::Create),
    List(credentials::ListCredentials),
    Rotate(make::Rotate),
    Revoke(credentials::Revoke),
}

#[derive(Debug, Subcommand)]
enum Certificate {
    Bind(make::Bind),
    List(credentials::ListCredentials),
    Revoke(credentials::Revoke),
}

impl Auth {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let session = CliSession::connect(connection, out).await?;
        match self.command {
            AuthCommand::Whoami(command) => command.run(&session).await,
            AuthCommand::Key(KeyCommand::Create(command)) => command.run(&session, connection).await,
            AuthCommand::Key(KeyCommand::List(command)) => command.run(&session, "key").await,
            AuthCommand::Key(KeyCommand::Rotate(command)) => command.run(&session).await,
            AuthCommand::Key(KeyCommand::Revoke(command)) | AuthCommand::Certificate(Certificate::Revoke(command)) => {
                command.run(&session).await
            }
            AuthCommand::Certificate(Certificate::Bind(command)) => command.run(&session, connection).await,
            AuthCommand::Certificate(Certificate::List(command)) => command.run(&session, "certificate").await,
        }
    }
}
