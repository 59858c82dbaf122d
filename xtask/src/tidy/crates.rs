//! How many crates the default binary is made of: each is compiled, licensed, audited and shipped, so more of them need a reason.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::{Severity, TidyFinding};

/// The first line that begins with a number says how many crates are allowed and why; lines below it are history.
pub(crate) const ALLOWED: &str = "xtask/crates.txt";
/// Counted for one platform, so that the number is equal on all machines.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// What `cargo tree` prints of everything that the binary is built from.
pub(crate) fn tree(root: &Path) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", "lockgate", "-e", "normal,build", "--prefix", "none", "--no-dedupe", "--target", PLATFORM])
        .current_dir(root)
        .output()
        .context("cargo tree")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

pub(crate) fn check(tree: &str, list: &str) -> Option<TidyFinding> {
    let (count, allowed) = (crates(tree).len(), allowed(list));
    let (severity, text) = match allowed {
        None => (Severity::Refuse, format!("no line says how many crates are allowed; there are {count}")),
        Some(max) if count > max => (
            Severity::Refuse,
            format!("the binary has {count} crates and {max} are allowed; do without, or add a line on top with the reason"),
        ),
        Some(max) if count < max => (Severity::Warn, format!("{max} crates are allowed and there are {count}: lower it")),
        Some(_) => return None,
    };
    Some(TidyFinding::of_file(severity, ALLOWED, text))
}

/// Name and version of each crate. What follows them says where it is and what kind it has.
fn crates(tree: &str) -> BTreeSet<(&str, &str)> {
    let named = tree.lines().filter_map(|line| line.split_once(' '));
    named.map(|(name, rest)| (name, rest.split(' ').next().unwrap_or(rest))).collect()
}

fn allowed(list: &str) -> Option<usize> {
    list.lines().find_map(|line| line.split(' ').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "a v0.1.0 (/somewhere/a)\nb v1.0.0 (proc-macro)\nb v1.0.0 (proc-macro) (*)\nb v2.0.0\n\n";

    fn severity(list: &str) -> Option<Severity> {
        check(TREE, list).map(|finding| finding.severity)
    }

    #[test]
    fn two_versions_of_a_crate_are_two_and_a_repeated_line_is_none() {
        assert_eq!(crates(TREE), BTreeSet::from([("a", "v0.1.0"), ("b", "v1.0.0"), ("b", "v2.0.0")]));
    }

    #[test]
    fn the_number_may_fall_and_not_rise() {
        assert_eq!(severity("# why\n3  as it is\n2  before\n"), None);
        assert_eq!(severity("2  fewer\n"), Some(Severity::Refuse));
        assert_eq!(severity("4  more\n"), Some(Severity::Warn));
        assert_eq!(severity("# no number\n"), Some(Severity::Refuse));
    }
}
