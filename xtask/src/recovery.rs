//! The recovery tables of README.md and docs/resilience.md: both kinds of installation are broken on purpose, and what came of it is
//! written between the marks of those pages.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::cluster::{Build, build};
use crate::servers::{self, runtime};

const README: &str = "README.md";
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
        println!("a promise was broken: {README} and {PAGE} stay as they are");
        return Ok(false);
    }
    let (alone, shared) = (read(&alone)?, read(&shared)?);
    rewrite(&root.join(PAGE), &[("recovery embedded", full(&alone)), ("recovery cluster", full(&shared))])?;
    rewrite(&root.join(README), &[("recovery", compact(&alone, &shared))])?;
    println!("{README} and {PAGE} have the tables of this run");
    Ok(true)
}

fn read(path: &str) -> anyhow::Result<Vec<Value>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

fn rewrite(path: &Path, tables: &[(&str, String)]) -> anyhow::Result<()> {
    let mut page = std::fs::read_to_string(path)?;
    for (mark, table) in tables {
        page = replaced(&page, mark, table).with_context(|| path.display().to_string())?;
    }
    Ok(std::fs::write(path, page)?)
}

/// The page with another table between its marks.
fn replaced(page: &str, mark: &str, table: &str) -> anyhow::Result<String> {
    let (begin, end) = (format!("<!-- {mark}: generated -->\n"), format!("<!-- {mark}: end -->"));
    let parts = page.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let Some((before, after)) = parts else { bail!("there is no place for the table {mark:?}") };
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("One run of `make recovery`: a development build on {cores} cores.\n\n")
}

/// Everything that was measured.
fn full(rows: &[Value]) -> String {
    let mut text = machine();
    text += "| fault | lasted | detected after | recovered after | jobs | lost | doubled | run again |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|--:|\n";
    for row in rows {
        let times = ["detected_ms", "recovered_ms"].map(|name| time(row, name));
        let counts = ["jobs", "lost", "doubled", "repeated"].map(|name| count(&[row], name));
        text += &line(row, &[[lasted(row)].as_slice(), &times, &counts].concat());
    }
    text
}

/// Both kinds side by side.
fn compact(alone: &[Value], shared: &[Value]) -> String {
    let mut text = machine();
    text += "| fault | embedded: detected | recovered | cluster: detected | recovered | lost | doubled |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|\n";
    let only_shared = shared.iter().filter(|row| named(alone, row).is_none());
    for row in alone.iter().chain(only_shared) {
        let both = [named(alone, row), named(shared, row)];
        let times =
            both.map(|row| ["detected_ms", "recovered_ms"].map(|name| row.map_or_else(String::new, |row| time(row, name))));
        let there: Vec<&Value> = both.into_iter().flatten().collect();
        let counts = ["lost", "doubled"].map(|name| count(&there, name));
        text += &line(row, &[times.concat(), counts.to_vec()].concat());
    }
    text
}

/// The row of the same fault.
fn named<'a>(rows: &'a [Value], row: &Value) -> Option<&'a Value> {
    rows.iter().find(|other| other["fault"] == row["fault"])
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

/// Of all that were done. What was not done has lost nothing and shown nothing.
fn count(rows: &[&Value], name: &str) -> String {
    let counts: Vec<u64> = rows.iter().filter(|row| !is_skipped(row)).filter_map(|row| row[name].as_u64()).collect();
    if counts.is_empty() { "-".to_owned() } else { counts.iter().sum::<u64>().to_string() }
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
    fn a_table_takes_the_place_of_the_one_before() {
        let page = "before\n<!-- a: generated -->\nold\n<!-- a: end -->\nafter\n";
        let new = replaced(page, "a", "new\n").expect("marks");
        assert_eq!(new, "before\n<!-- a: generated -->\nnew\n<!-- a: end -->\nafter\n");
        assert!(replaced(page, "b", "new\n").is_err());
    }

    #[test]
    fn rows_have_what_was_measured_and_say_what_was_not_done() {
        let mut shift = row("clock-shift");
        shift["skipped"] = json!("why");
        let table = full(&[row("worker-cut"), shift]);
        assert!(table.contains("| `worker-cut` | 3.00 s | - | 1.23 s | 900 | 0 | 0 | 2 |\n"), "{table}");
        assert!(table.contains("| `clock-shift` | not done | - | - | - | - | - | - |\n"), "{table}");
    }

    #[test]
    fn both_kinds_stand_side_by_side() {
        let table = compact(&[row("worker-cut"), row("server-kill")], &[row("worker-cut"), row("nats-cut")]);
        assert!(table.contains("| `worker-cut` | - | 1.23 s | - | 1.23 s | 0 | 0 |\n"), "{table}");
        assert!(table.contains("| `server-kill` | - | 1.23 s |  |  | 0 | 0 |\n"), "{table}");
        assert!(table.contains("| `nats-cut` |  |  | - | 1.23 s | 0 | 0 |\n"), "{table}");
    }
}
