//! What clippy and rustfmt cannot check: the rules of the house.

mod crates;
mod edges;
mod files;
mod functions;
mod habits;
mod links;
mod names;
mod owners;
mod pronouns;
mod readme;
mod sizes;
mod source;
mod words;

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stats {
    Show,
    Hide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Warn,
    Refuse,
}

/// Something to look at.
pub(crate) struct TidyFinding {
    pub(crate) severity: Severity,
    path: String,
    /// Counted from 0.
    line: Option<usize>,
    text: String,
}

impl TidyFinding {
    fn at(severity: Severity, path: &str, line: usize, text: String) -> Self {
        Self { severity, path: path.to_owned(), line: Some(line), text }
    }

    fn of_file(severity: Severity, path: &str, text: String) -> Self {
        Self { severity, path: path.to_owned(), line: None, text }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.severity == Severity::Refuse { "error" } else { "warning" };
        write!(f, "{word}: {}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{}", line + 1)?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Checks the whole repository and prints what it found. Whether nothing was refused.
pub(crate) fn run(root: &Path, stats: Stats) -> anyhow::Result<bool> {
    let texts = files::read(root)?;
    let sources = files::sources(&texts);
    let mut found = edges::check(&edges::packages(&cargo_metadata(root)?)?);
    for (path, text) in &texts {
        found.extend(words::check_text(path, text));
    }
    found.extend(links::check(&texts));
    let text = |path: &str| texts.get(path).map_or("", String::as_str);
    found.extend(readme::check(text(readme::README)));
    found.extend(crates::check(&crates::tree(root)?, text(crates::ALLOWED)));
    for source in &sources {
        found.extend(sizes::check(source));
        found.extend(words::check(source));
        found.extend(habits::sleeping_tests(source));
    }
    found.extend(habits::unwraps(&sources));
    found.extend(names::check(&sources, text(names::ALLOWED)));
    found.extend(owners::check(&sources));
    found.extend(pronouns::check(&sources));
    for finding in &found {
        eprintln!("{finding}");
    }
    if stats == Stats::Show {
        print!("{}", sizes::table(&sources));
        print!("{}", names::table(&sources));
        println!("\ncomment lines without a subject: {}", pronouns::count(&sources));
    }
    let refused = found.iter().filter(|finding| finding.severity == Severity::Refuse).count();
    println!("tidy: {} files, {} warnings, {refused} errors", texts.len(), found.len() - refused);
    Ok(refused == 0)
}

fn cargo_metadata(root: &Path) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}
