//! One name, one meaning: how often each type name is defined outside of tests.
//!
//! A name may be defined once in a crate and twice in the workspace. Names that were defined more often when the rule was made stand
//! in `xtask/type-names.txt` with their number, which may only fall: a name that is not there, or a larger number, is refused.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::source::Source;
use super::{Severity, TidyFinding};

/// Names and how often each of them may be defined.
pub(crate) const ALLOWED: &str = "xtask/type-names.txt";
const ONE_WORKSPACE_MAX: usize = 2;

struct Definition<'s> {
    package: &'s str,
    path: &'s str,
    line: usize,
}

type Definitions<'s> = BTreeMap<&'s str, Vec<Definition<'s>>>;

pub(crate) fn check(sources: &[Source], list: &str) -> Vec<TidyFinding> {
    let mut allowed = allowances(list);
    let mut found = Vec::new();
    for (name, definitions) in repeated(definitions(sources)) {
        let (count, max) = (definitions.len(), allowed.remove(name).unwrap_or(0));
        if count < max {
            found.push(outdated(name, max));
        }
        if count > max {
            let last = &definitions[count - 1];
            let others: Vec<&str> = definitions[..count - 1].iter().map(|other| other.path).collect();
            let text = format!(
                "type `{name}` is defined {count} times (also in {}); give it a name of its own: once in a crate, twice in the workspace",
                others.join(", ")
            );
            found.push(TidyFinding::at(Severity::Refuse, last.path, last.line, text));
        }
    }
    found.extend(allowed.into_iter().map(|(name, max)| outdated(name, max)));
    found
}

fn outdated(name: &str, max: usize) -> TidyFinding {
    let text = format!("`{name}` is defined fewer than {max} times now: lower its number or remove the line");
    TidyFinding::of_file(Severity::Warn, ALLOWED, text)
}

/// Lines of a name and a number.
fn allowances(list: &str) -> BTreeMap<&str, usize> {
    let read = |line: &'_ str| -> Option<(usize, usize)> {
        let number = line.rsplit(' ').next()?;
        Some((line.len() - number.len(), number.parse().ok()?))
    };
    list.lines().filter_map(|line| read(line).map(|(end, max)| (line[..end].trim(), max))).collect()
}

/// Names that are defined more than once, those with the most definitions first.
pub(crate) fn table(sources: &[Source]) -> String {
    let mut names: Vec<_> = definitions(sources).into_iter().filter(|(_, places)| places.len() > 1).collect();
    names.sort_by_key(|(name, places)| (usize::MAX - places.len(), *name));
    let mut table = format!("\n{:<24}{:>5}  {}\n", "type name", "count", "packages");
    for (name, places) in names {
        let packages: Vec<&str> = places.iter().map(|place| place.package).collect();
        let _ = writeln!(table, "{name:<24}{:>5}  {}", places.len(), packages.join(" "));
    }
    table
}

fn repeated(definitions: Definitions<'_>) -> Definitions<'_> {
    let twice_in_one = |places: &[Definition<'_>]| {
        places.iter().enumerate().any(|(at, place)| places[..at].iter().any(|other| other.package == place.package))
    };
    definitions.into_iter().filter(|(_, places)| places.len() > ONE_WORKSPACE_MAX || twice_in_one(places)).collect()
}

fn definitions(sources: &[Source]) -> Definitions<'_> {
    let mut definitions = Definitions::new();
    for source in sources {
        for (line, text) in source.code.lines().enumerate().filter(|(line, _)| !source.is_test(*line)) {
            if let Some(name) = defined(text) {
                let place = Definition { package: package(&source.path), path: &source.path, line };
                definitions.entry(name).or_default().push(place);
            }
        }
    }
    definitions
}

/// The type that a line defines. An indented `type` belongs to an impl, and is not a name of its own.
fn defined(line: &str) -> Option<&str> {
    let mut words =
        line.split_whitespace().skip_while(|word| *word == "pub" || word.starts_with("pub(") || word.ends_with(')'));
    let kind = words.next()?;
    let is_alias = kind == "type" && !line.starts_with(' ');
    if !is_alias && !matches!(kind, "struct" | "enum" | "trait" | "union") {
        return None;
    }
    let rest = words.next()?;
    let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
    name.starts_with(|c: char| c.is_ascii_uppercase()).then_some(name)
}

/// The folder of the package, such as `crates/core`.
fn package(path: &str) -> &str {
    let end = ["/src/", "/examples/"].iter().filter_map(|inside| path.find(inside)).min();
    end.map_or(path, |end| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        files.iter().map(|(path, text)| Source::new(*path, *text)).collect()
    }

    fn refused(files: &[(&str, &str)], allowed: &str) -> usize {
        let found = check(&sources(files), allowed);
        found.iter().filter(|finding| finding.severity == Severity::Refuse).count()
    }

    const TWICE: [(&str, &str); 2] =
        [("crates/a/src/b.rs", "pub(crate) struct Known;"), ("crates/a/src/c.rs", "enum Known {}")];

    #[test]
    fn a_name_may_be_defined_once_in_a_crate_and_twice_in_the_workspace() {
        assert_eq!(refused(&TWICE, ""), 1);
        let mut apart = vec![TWICE[0], ("crates/b/src/lib.rs", "type Known<T> = T;")];
        assert_eq!(refused(&apart, ""), 0);
        apart.push(("adapters/c/src/lib.rs", "pub trait Known {}"));
        assert_eq!(refused(&apart, ""), 1);
    }

    #[test]
    fn tests_aliases_of_impls_and_words_are_not_counted() {
        let test = ("crates/a/tests/it.rs", "struct Known;");
        let alias = ("crates/a/src/d.rs", "impl A {\n    type Known = u8;\n}\n// struct Known;\nfn known() {}");
        assert_eq!(refused(&[TWICE[0], test, alias], ""), 0);
    }

    #[test]
    fn an_allowance_holds_for_its_number_and_no_more() {
        assert_eq!(refused(&TWICE, "Known 2\n"), 0);
        let more = [TWICE[0], TWICE[1], ("crates/b/src/lib.rs", "struct Known;")];
        assert_eq!(refused(&more, "Known 2\n"), 1);
    }

    #[test]
    fn an_allowance_that_is_no_longer_needed_is_told_of() {
        let found = |files: &[(&str, &str)]| check(&sources(files), "Known 3\n").len();
        assert_eq!(found(&TWICE), 1);
        assert_eq!(found(&[]), 1);
    }

    #[test]
    fn the_table_lists_repeated_names_only() {
        let table = table(&sources(&[TWICE[0], TWICE[1], ("crates/a/src/e.rs", "struct Once;")]));
        assert!(table.contains("Known") && !table.contains("Once"), "{table}");
    }
}
