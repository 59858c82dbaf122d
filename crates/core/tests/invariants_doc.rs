//! `docs/invariants.md` and `docs/traps.md` say only what is so: their tests exist, and the ids are those of the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of every source file and migration of the workspace.
fn sources(folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "sql") {
            into.push(fs::read_to_string(&path).unwrap());
        }
    }
}

fn all_sources() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["crates", "adapters"] {
        sources(&root().join(folder), &mut texts);
    }
    texts
}

fn doc() -> String {
    fs::read_to_string(root().join("docs/invariants.md")).unwrap()
}

/// Words like `J-1`: one of the nine letters, a hyphen, a number of one or two digits, and nothing else around them.
fn ids(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| is_id(word)).map(str::to_owned).collect()
}

fn is_id(word: &str) -> bool {
    let number = ["J-", "A-", "F-", "G-", "L-", "S-", "R-", "T-", "C-"].iter().find_map(|prefix| word.strip_prefix(prefix));
    number.is_some_and(|number| (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Written out, or one line of a macro that makes tests.
fn has_test(source: &str, name: &str) -> bool {
    [format!("fn {name}("), format!(" {name} = ")].iter().any(|text| source.contains(text))
}

#[test]
fn every_invariant_of_the_code_is_listed_and_every_listed_one_is_used() {
    let used: BTreeSet<String> = all_sources().iter().flat_map(|text| ids(text)).collect();
    assert_eq!(ids(&doc()), used);
}

#[test]
fn every_test_that_is_named_exists() {
    let sources = all_sources();
    let doc = doc();
    let rows = doc.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id"));
    let mut named = 0;
    for row in rows {
        let proofs = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in proofs.split('`').skip(1).step_by(2).filter(|name| name.matches('_').count() > 2) {
            named += 1;
            let exists = sources.iter().any(|text| has_test(text, test));
            assert!(exists, "{test} is named and does not exist");
        }
    }
    assert!(named > 30, "only {named} tests were found in the tables");
}

#[test]
fn every_trap_names_tests_that_exist() {
    let doc = fs::read_to_string(root().join("docs/traps.md")).unwrap();
    let rows = doc.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| no."));
    let mut traps = 0;
    for row in rows {
        traps += 1;
        let proofs: Vec<&str> = row.split('`').skip(1).step_by(2).filter(|text| text.contains("::")).collect();
        assert!(!proofs.is_empty(), "no test for {row}");
        for proof in proofs {
            let (path, test) = proof.split_once("::").unwrap();
            let source = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(has_test(&source, test), "{proof} is named and does not exist");
        }
    }
    assert!(traps > 40, "only {traps} traps were found in the tables");
}
