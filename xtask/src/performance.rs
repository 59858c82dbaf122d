//! The tables of docs/performance.md: both kinds of installation are measured by a release build, and the figures replace those of the
//! run before.

use std::path::Path;

use serde_json::Value;

use crate::cluster::{Build, build};
use crate::pages;
use crate::servers::{self, runtime};

const PAGE: &str = "docs/performance.md";

/// Whether both benches ran. Only then is the page written.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let binary = runtime()?.block_on(build(root, Build::Release))?.display().to_string();
    let folder = tempfile::tempdir()?;
    let rows = |name: &str| folder.path().join(name).display().to_string();
    let (alone, shared) = (rows("embedded.json"), rows("cluster.json"));
    let ran = servers::without(&[binary.as_str(), "bench", "--rows", &alone])?
        && servers::around(&[binary.as_str(), "bench", "--cluster", "--no-embedded", "--rows", &shared])?;
    if !ran {
        println!("a bench failed: {PAGE} stays as it is");
        return Ok(false);
    }
    let tables = [("performance embedded", table(&alone)?), ("performance cluster", table(&shared)?)];
    pages::rewrite(&root.join(PAGE), &tables)?;
    println!("{PAGE} has the figures of this run");
    Ok(true)
}

fn table(path: &str) -> anyhow::Result<String> {
    Ok(written(&serde_json::from_str::<Vec<Value>>(&std::fs::read_to_string(path)?)?))
}

fn written(figures: &[Value]) -> String {
    let mut text = format!("One run of `make performance`: a release build on {} cores.\n\n", pages::cores());
    text += "| figure | value | unit |\n|---|--:|---|\n";
    for figure in figures {
        let text_of = |name: &str| figure[name].as_str().unwrap_or_default();
        text +=
            &format!("| {} | {} | {} |\n", text_of("name"), figure["value"].as_f64().unwrap_or_default(), text_of("unit"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_a_row_with_its_unit() {
        let figures = [serde_json::json!({"name": "drain", "value": 52300.0, "unit": "jobs/s"})];
        assert!(written(&figures).ends_with("|---|--:|---|\n| drain | 52300 | jobs/s |\n"), "{}", written(&figures));
    }
}
