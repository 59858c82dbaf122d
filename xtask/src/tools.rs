//! Programs that check what deploy/ has: those that `make servers` got, or those of the machine.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::root;

pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    let root = root().expect("a root");
    let servers = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("servers");
    let own = servers.join("bin").join(program);
    let mut command = Command::new(if own.is_file() { own } else { PathBuf::from(program) });
    // Programs written in Python look for what they need beside themselves.
    command.args(arguments).current_dir(root).env("PYTHONPATH", servers.join("checks"));
    command.output().unwrap_or_else(|error| panic!("{program} does not run ({error}); `make servers` gets it"))
}

/// What it says, if it has nothing to object to.
pub(crate) fn check(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let said = String::from_utf8_lossy(&[output.stdout.clone(), output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}
