//! Programs that check what deploy/ has: those that `make servers` got, or those of the machine.

use std::path::{Path, PathBuf};

/// Where a program is.
pub(crate) fn program(root: &Path, name: &str) -> PathBuf {
    let own = servers(root).join("bin").join(name);
    if own.is_file() { own } else { PathBuf::from(name) }
}

fn servers(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("servers")
}

#[cfg(test)]
pub(crate) use checks::{check, run};

#[cfg(test)]
mod checks {
    use std::process::{Command, Output};

    use super::{program, servers};
    use crate::root;

    pub(crate) fn run(name: &str, arguments: &[&str]) -> Output {
        let root = root().expect("a root");
        let mut command = Command::new(program(&root, name));
        // Programs written in Python look for what they need beside themselves.
        command.args(arguments).current_dir(&root).env("PYTHONPATH", servers(&root).join("checks"));
        command.output().unwrap_or_else(|error| panic!("{name} does not run ({error}); `make servers` gets it"))
    }

    /// What it says, if it has nothing to object to.
    pub(crate) fn check(name: &str, arguments: &[&str]) -> String {
        let output = run(name, arguments);
        let said = String::from_utf8_lossy(&[output.stdout.clone(), output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{name} {arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }
}
