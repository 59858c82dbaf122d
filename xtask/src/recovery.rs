//! The recovery tables of docs/resilience.md: both kinds of installation are broken on purpose, and the measured times replace those of
//! the run before.

use std::path::Path;

use serde_json::Value;

use crate::cluster::{Build, build};
use crate::pages;
use crate::servers::{self, runtime};

const PAGE: &str = "docs/resilience.md";

/// Whether every promise was kept. Only then is anything written.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let binary = runtime()?.block_on(build(root, Build::Development))?.display().to_string();
    let folder = tempfile::tempdir()?;
    let rows = |name: &str| folder.path().join(name).display().to_string();
    let (alone, shared) = (rows("embedded.json"), rows("cluster.json"));
    println!("embedded:");
    let mut kept = servers::without(&[binary.as_str(), "chaos", "--rows", &alone])?;
    println!("cluster:");
    kept &= servers::around(&[binary.as_str(), "chaos", "--cluster", "--rows", &shared])?;
    if !kept {
        println!("a promise was broken: {PAGE} stays as it is");
        return Ok(false);
    }
    let (alone, shared) = (read(&alone)?, read(&shared)?);
    pages::rewrite(&root.join(PAGE), &[("recovery embedded", full(&alone)), ("recovery cluster", full(&shared))])?;
    println!("{PAGE} has the tables of this run");
    Ok(true)
}

fn read(path: &str) -> anyhow::Result<Vec<Value>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

fn machine() -> String {
    format!("One run of `make recovery`: a development build on {} cores.\n\n", pages::cores())
}

/// Everything that was measured.
fn full(rows: &[Value]) -> String {
    let mut text = machine();
    text += "| fault | lasted | detected after | recovered after | jobs | lost | doubled | run again |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|--:|\n";
    for row in rows {
        let times = ["detected_ms", "recovered_ms"].map(|name| time(row, name));
        let counts = ["jobs", "lost", "doubled", "repeated"].map(|name| count(row, name));
        text += &line(row, &[[lasted(row)].as_slice(), &times, &counts].concat());
    }
    text
}

fn line(row: &Value, fields: &[String]) -> String {
    format!("| `{}` | {} |\n", row["fault"].as_str().unwrap_or_default(), fields.join(" | "))
}

fn lasted(row: &Value) -> String {
    match row["lasted_ms"].as_u64() {
        _ if is_skipped(row) => "not done".to_owned(),
        None | Some(0) => "-".to_owned(),
        Some(_) => span(&row["lasted_ms"]),
    }
}

fn time(row: &Value, name: &str) -> String {
    if is_skipped(row) { "-".to_owned() } else { span(&row[name]) }
}

/// A fault that was not done has lost nothing and shown nothing.
fn count(row: &Value, name: &str) -> String {
    row[name].as_u64().filter(|_| !is_skipped(row)).map_or_else(|| "-".to_owned(), |count| count.to_string())
}

fn is_skipped(row: &Value) -> bool {
    !row["skipped"].is_null()
}

/// As the command says it.
fn span(millis: &Value) -> String {
    millis.as_u64().map_or_else(|| "-".to_owned(), |ms| format!("{}.{:02} s", ms / 1_000, ms % 1_000 / 10))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(fault: &str) -> Value {
        json!({"fault": fault, "lasted_ms": 3_000, "recovered_ms": 1_239, "jobs": 900, "lost": 0, "doubled": 0, "repeated": 2})
    }

    #[test]
    fn rows_have_what_was_measured_and_say_what_was_not_done() {
        let mut shift = row("clock-shift");
        shift["skipped"] = json!("why");
        let table = full(&[row("worker-cut"), shift]);
        assert!(table.contains("| `worker-cut` | 3.00 s | - | 1.23 s | 900 | 0 | 0 | 2 |\n"), "{table}");
        assert!(table.contains("| `clock-shift` | not done | - | - | - | - | - | - |\n"), "{table}");
    }
}
