//! `lockgate completions`: tab completion for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::{CliError, Exit};

/// Print tab completions for a shell
#[derive(Args, Debug)]
#[command(after_long_help = "Example: lockgate completions bash > ~/.local/share/bash-completion/completions/lockgate")]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "lockgate", &mut script);
        std::io::Write::write_all(&mut std::io::stdout(), &script)?;
        Ok(Exit::Success)
    }
}
