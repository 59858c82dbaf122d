//! Where the servers' programs are.

use std::path::{Path, PathBuf};

use anyhow::Context;

pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Names the folder to look into before any other.
    pub(crate) variable: &'static str,
    /// Folders outside of `PATH`, best first.
    pub(crate) usual: &'static [&'static str],
    pub(crate) get_it: &'static str,
}

impl Program {
    pub(crate) fn find(&self) -> anyhow::Result<PathBuf> {
        let named = std::env::var_os(self.variable).map(PathBuf::from);
        if let Some(folder) = named {
            let program = folder.join(self.name);
            return program
                .is_file()
                .then_some(program)
                .with_context(|| format!("{} is not in {}, which {} names", self.name, folder.display(), self.variable));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(installed()).chain(std::env::split_paths(&path));
        let mut folders = folders.chain(self.usual.iter().map(PathBuf::from));
        let found = folders.find_map(|folder| Some(folder.join(self.name)).filter(|program| program.is_file()));
        found.with_context(|| format!("{} is not installed; {}", self.name, self.get_it))
    }
}

/// Where `make servers` puts what Debian does not have.
fn installed() -> PathBuf {
    target().join("servers/bin")
}

/// The workspace's folder for everything that can be made again.
pub(crate) fn target() -> PathBuf {
    let workspace = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(workspace, PathBuf::from)
}
