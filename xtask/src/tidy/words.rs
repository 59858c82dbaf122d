//! Words that must not stand in the source.

use super::source::Source;
use super::{Severity, TidyFinding};

/// Names that say nothing about what a type does.
const EMPTY_NAMES: [&str; 6] = ["Manager", "Handler", "Helper", "Processor", "Util", "Utils"];
/// In this crate a handler is a thing of the domain: the code that runs a job.
const HANDLERS_LIVE_IN: &str = "crates/worker/";
/// Notes to oneself. Split, so that this file does not find itself.
const NOTES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// Folders that exist on one machine only.
const MACHINE_FOLDERS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];

/// What only Rust source can get wrong.
pub(crate) fn check(source: &Source) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for (at, line) in source.code.lines().enumerate() {
        let mut refuse = |text: String| found.push(TidyFinding::at(Severity::Refuse, &source.path, at, text));
        if let Some((name, word)) = empty_name(line, &source.path) {
            refuse(format!("type `{name}`: the word {word} says nothing; name what it does"));
        }
        if line.contains("#[ignore") {
            refuse("an ignored test proves nothing; make it a command of its own or run it".to_owned());
        }
    }
    for (at, line) in source.comments.lines().enumerate() {
        if let Some(note) = NOTES.iter().find(|note| has_word(line, note)) {
            found.push(TidyFinding::at(Severity::Refuse, &source.path, at, format!("{note}: do it, or open an issue")));
        }
    }
    found
}

/// What any text file can get wrong.
pub(crate) fn check_text(path: &str, text: &str) -> Vec<TidyFinding> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(at, line)| {
            let folder = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder))?;
            Some(TidyFinding::at(Severity::Refuse, path, at, format!("{folder}… exists on one machine only")))
        })
        .collect()
}

fn empty_name<'a>(line: &'a str, path: &str) -> Option<(&'a str, &'static str)> {
    let mut words = line.split_whitespace().skip_while(|word| *word == "pub" || word.starts_with("pub("));
    if !matches!(words.next()?, "struct" | "enum" | "trait" | "type" | "union") {
        return None;
    }
    let rest = words.next()?;
    let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
    let allowed = |word: &str| word == "Handler" && path.starts_with(HANDLERS_LIVE_IN);
    let word = EMPTY_NAMES.into_iter().find(|word| has_camel_word(name, word) && !allowed(word))?;
    Some((name, word))
}

fn has_camel_word(name: &str, word: &str) -> bool {
    name.match_indices(word).any(|(at, _)| !name[at + word.len()..].starts_with(|c: char| c.is_lowercase()))
}

fn has_word(line: &str, word: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    line.match_indices(word)
        .any(|(at, _)| edge(line[..at].chars().next_back()) && edge(line[at + word.len()..].chars().next()))
}

/// A path that starts with the folder, not one that merely contains it, such as a URL.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '-' | '_' | '}' | '~' | '*'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> usize {
        check(&Source::new(path, text)).len()
    }

    #[test]
    fn types_with_empty_names_are_refused() {
        assert_eq!(texts("a.rs", "pub(crate) struct JobManager;"), 1);
        assert_eq!(texts("a.rs", "enum HelperKind {}\ntrait FooUtils {}"), 2);
        assert_eq!(texts("a.rs", "struct Utility; struct Managed; fn job_manager() {}"), 0);
    }

    #[test]
    fn only_the_worker_may_speak_of_handlers() {
        assert_eq!(texts("crates/worker/src/handlers/echo.rs", "struct EchoHandler;"), 0);
        assert_eq!(texts("crates/worker/src/lib.rs", "struct SlotManager;"), 1);
        assert_eq!(texts("crates/engine/src/a.rs", "trait EventHandler {}"), 1);
    }

    #[test]
    fn notes_to_oneself_are_refused_in_comments_only() {
        let note = NOTES[0];
        assert_eq!(texts("a.rs", &format!("// {note}: later")), 1);
        assert_eq!(texts("a.rs", &format!("let a = \"{note}\"; // {note}S are fine")), 0);
    }

    #[test]
    fn ignored_tests_are_refused() {
        assert_eq!(texts("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}"), 1);
    }

    #[test]
    fn paths_of_one_machine_are_refused_in_any_file() {
        let folder = MACHINE_FOLDERS[0];
        assert_eq!(check_text("README.md", &format!("cd {folder}me/src")).len(), 1);
        assert_eq!(check_text("README.md", &format!("see https://example.org{folder}page")).len(), 0);
        assert_eq!(check_text("Makefile", &format!("X := $(HOME){folder}")).len(), 1);
    }
}
