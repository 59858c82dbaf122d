//! `lockgate man`: manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::error::{CliError, Exit};

/// Write a manual page for every command into a folder
#[derive(Args, Debug)]
#[command(after_long_help = "Example: lockgate man ~/.local/share/man/man1 && man lockgate-submit")]
pub(crate) struct Man {
    /// Folder to write to; made if it does not exist
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> Result<Exit, CliError> {
        let folder = self.folder;
        let write = || {
            std::fs::create_dir_all(&folder)?;
            clap_mangen::generate_to(Cli::command(), &folder)
        };
        write().map_err(|error| CliError::Usage(format!("cannot write to {}: {error}", folder.display())))?;
        Ok(Exit::Success)
    }
}
