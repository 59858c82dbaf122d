//! Rules of Prometheus and the pages that alerts lead to: they are files, so what holds them together is tested here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::catalogue::Catalogue;
use crate::root;
use crate::tools::check;

const RULES: [&str; 2] = ["deploy/prometheus/recording.yaml", "deploy/prometheus/alerts.yaml"];
const TESTS: &str = "deploy/prometheus/tests/rules.yaml";

fn here(path: &str) -> PathBuf {
    root().expect("a root").join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(here(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn after<'t>(text: &'t str, start: &'t str) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(move |line| line.trim().strip_prefix(start))
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    check("promtool", &["check", "rules", RULES[0], RULES[1]]);
    check("promtool", &["test", "rules", TESTS]);
}

#[test]
fn every_metric_that_a_rule_asks_for_is_in_the_reference() {
    let catalogue = Catalogue::read(&root().expect("a root")).expect("the reference");
    for path in RULES {
        assert_eq!(catalogue.unknown(&text(path)), [""; 0], "{path}");
    }
}

#[test]
fn every_name_that_other_systems_use_leads_to_one_of_ours() {
    let catalogue = Catalogue::read(&root().expect("a root")).expect("the reference");
    let page = text("docs/metrics.md");
    let (_, table) = page.split_once("## Names that other systems use").expect("the table");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| elsewhere")).collect();
    assert!(rows.len() > 30, "the table could not be read");
    for row in rows {
        let ours = row.split('|').nth(2).unwrap_or_default();
        let known =
            |name: &str| catalogue.unknown(name).is_empty() || catalogue.unknown(&format!("{name}_count")).is_empty();
        let named = ours.split('`').nth(1).filter(|name| name.starts_with("lockgate_"));
        match named {
            Some(name) => assert!(known(name), "{row}"),
            None => assert!(ours.contains("not applicable: "), "{row}"),
        }
    }
}

#[test]
fn every_alert_has_a_test_and_a_page_and_every_page_an_alert() {
    let alerts = text(RULES[1]);
    let names: BTreeSet<&str> = after(&alerts, "- alert: ").collect();
    let pages: BTreeSet<&str> =
        after(&alerts, "runbook: docs/runbooks/").filter_map(|page| page.strip_suffix(".md")).collect();
    assert_eq!(names, pages, "an alert leads to the page of its name");
    let tests = text(TESTS);
    assert_eq!(names, after(&tests, "alertname: ").collect(), "each alert is seen to fire");
    let folder = std::fs::read_dir(here("docs/runbooks")).expect("the folder");
    let files: BTreeSet<String> =
        folder.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(files, names.iter().map(|name| format!("{name}.md")).collect());
    for name in names {
        let page = text(&format!("docs/runbooks/{name}.md"));
        for part in [&format!("# {name}\n"), "\n## See it\n", "\n## Do\n", "\n## It is over when\n"] {
            assert!(page.contains(part), "{name}.md has no {part:?}");
        }
    }
}

const STORY: &str = "xtask/src/observe/story.rs";

/// The text of a function of a file.
fn function<'t>(source: &'t str, name: &str) -> Option<&'t str> {
    source.split_once(&format!("fn {name}("))?.1.split("\n    }\n").next()
}

#[test]
fn every_runbook_names_what_tried_it_and_that_exists() {
    let (alerts, faults) = (text(RULES[1]), text("docs/resilience.md"));
    for name in after(&alerts, "- alert: ") {
        let page = text(&format!("docs/runbooks/{name}.md"));
        let lines = page.lines().filter(|line| line.starts_with("Tried by: ")).count();
        assert_eq!(lines, 1, "{name}.md has one line that says what tried it");
        let (_, tried) = page.split_once("\nTried by: ").expect("counted");
        let spans: Vec<&str> = tried.split('`').skip(1).step_by(2).collect();
        let mut proofs = spans.iter().filter_map(|span| span.split_once("::")).peekable();
        assert!(proofs.peek().is_some(), "{name}.md names no story and no test");
        let mut fired = spans.contains(&TESTS);
        for (path, test) in proofs {
            let source = text(path);
            let body = function(&source, test).unwrap_or_else(|| panic!("{name}.md: there is no {path}::{test}"));
            if path == STORY {
                assert!(body.contains(&format!("\"{name}\"")), "{path}::{test} does not bring about {name}");
                fired = true;
            }
        }
        assert!(fired, "{name}.md: neither a story nor a rule test makes it fire");
        for fault in spans.iter().filter_map(|span| span.split_once("--fault ")) {
            assert!(faults.contains(&format!("| `{}` |", fault.1)), "{name}.md: there is no fault {}", fault.1);
        }
    }
}

/// Words of a command that name a subcommand, as far as there is a help text of that name.
fn known_command(line: &str) -> bool {
    let words: Vec<&str> =
        line.split_whitespace().take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    let help = |words: &[&str]| here(&format!("crates/lockgate/tests/help/{}.txt", words.join("-"))).is_file();
    words.len() > 1 && help(&words)
}

#[test]
fn every_command_and_metric_of_a_runbook_exists() {
    let catalogue = Catalogue::read(&root().expect("a root")).expect("the reference");
    for entry in std::fs::read_dir(here("docs/runbooks")).expect("the folder") {
        let path = entry.expect("an entry").path();
        let page = std::fs::read_to_string(&path).expect("text");
        let spans = page.split('`').skip(1).step_by(2).flat_map(str::lines);
        for command in spans.filter(|span| span.starts_with("lockgate ")) {
            assert!(known_command(command), "{}: there is no `{command}`", name(&path));
        }
        for line in page.lines().filter(|line| line.starts_with("lockgate ")) {
            assert!(known_command(line), "{}: there is no `{line}`", name(&path));
        }
        let queries: Vec<&str> = page.split('`').skip(1).step_by(2).filter(|span| span.contains("lockgate_")).collect();
        for query in queries {
            let unknown = catalogue.unknown(query);
            let parts = |name: &String| !catalogue.unknown(&format!("{name}_count")).is_empty();
            assert_eq!(unknown.into_iter().filter(parts).collect::<Vec<_>>(), [""; 0], "{}", name(&path));
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
