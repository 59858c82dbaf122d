//! Workflows run make targets and nothing else, so that what fails there can be run on any machine.

use std::collections::BTreeSet;

use crate::root;
use crate::tools::check;

/// Their paths from the root.
fn workflows() -> Vec<String> {
    let folder = std::fs::read_dir(root().expect("a root").join(".github/workflows")).expect("the folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name().into_string().expect("text");
    folder.map(|entry| format!(".github/workflows/{}", name(entry))).collect()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().expect("a root").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn is_target(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

fn targets(makefile: &str) -> BTreeSet<&str> {
    let rules = makefile.lines().filter_map(|line| line.split_once(':')).filter(|(_, rest)| !rest.starts_with('='));
    rules.map(|(name, _)| name).filter(|name| is_target(name)).collect()
}

/// The targets that steps call, or the first step that calls something else.
fn called(workflow: &str) -> Result<Vec<&str>, &str> {
    let lines = workflow.lines().map(|line| line.trim_start().trim_start_matches("- "));
    let steps = lines.filter_map(|line| line.strip_prefix("run:")).map(str::trim);
    steps.map(|step| step.strip_prefix("make ").filter(|target| is_target(target)).ok_or(step)).collect()
}

#[test]
fn every_step_of_a_workflow_is_a_make_target_that_exists() {
    let makefile = text("Makefile");
    let targets = targets(&makefile);
    for path in workflows() {
        let workflow = text(&path);
        let called = called(&workflow).unwrap_or_else(|step| panic!("{path}: `{step}` is no make target"));
        assert!(!called.is_empty(), "{path} runs nothing");
        for target in called {
            assert!(targets.contains(target), "{path}: the Makefile has no target {target}");
        }
    }
}

#[test]
fn workflows_are_what_their_schema_says() {
    let paths = workflows();
    let paths = paths.iter().map(String::as_str);
    check("check-jsonschema", &["--builtin-schema", "vendor.github-workflows"].into_iter().chain(paths).collect::<Vec<_>>());
}

#[test]
fn a_step_that_is_no_target_is_found() {
    assert_eq!(called("steps:\n  - run: make test\n  - name: a\n    run: make dist\n"), Ok(vec!["test", "dist"]));
    for step in ["cargo test", "make test && rm", "|", "make", "make A=b test"] {
        assert_eq!(called(&format!("  - run: {step}\n")), Err(step));
    }
    assert_eq!(targets("A := b\ntest: nextest ## all\n\tcargo test\n.PHONY: c\n"), BTreeSet::from(["test"]));
}
