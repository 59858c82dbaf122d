//! `lockgate auth`: who is let in.

mod credentials;
mod make;
mod whoami;

use clap::{Args, Subcommand};

use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::Session;

/// Say who is let in, and with what
#[derive(Args, Debug)]
pub(crate) struct Auth {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Whoami(whoami::Whoami),
    /// Make, list, replace and revoke API keys
    #[command(subcommand)]
    Key(Key),
    /// Let bearers of client certificates in, or keep them out again
    #[command(subcommand)]
    Certificate(Certificate),
}

#[derive(Debug, Subcommand)]
enum Key {
    Create(make::Create),
    List(credentials::List),
    Rotate(make::Rotate),
    Revoke(credentials::Revoke),
}

#[derive(Debug, Subcommand)]
enum Certificate {
    Bind(make::Bind),
    List(credentials::List),
    Revoke(credentials::Revoke),
}

impl Auth {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let session = Session::connect(connection, out).await?;
        match self.command {
            Command::Whoami(command) => command.run(&session).await,
            Command::Key(Key::Create(command)) => command.run(&session, connection).await,
            Command::Key(Key::List(command)) => command.run(&session, "key").await,
            Command::Key(Key::Rotate(command)) => command.run(&session).await,
            Command::Key(Key::Revoke(command)) | Command::Certificate(Certificate::Revoke(command)) => {
                command.run(&session).await
            }
            Command::Certificate(Certificate::Bind(command)) => command.run(&session, connection).await,
            Command::Certificate(Certificate::List(command)) => command.run(&session, "certificate").await,
        }
    }
}
