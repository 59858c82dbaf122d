//! The engine is split by owner: a struct with its named ports and settings that does one part of the work.
//!
//! An owner names no `Inner`, so that a test builds it from its ports alone, and no type but the wiring holds more than one owner.
//! What is not split yet stands in `Inner`.

use super::source::Source;
use super::{Severity, TidyFinding};

/// Each owner and the file that defines it. Owners may use [`SHARED`] beside themselves.
const OWNERS: [(&str, &str); 2] =
    [("AuditSealer", "crates/engine/src/loops/seals.rs"), ("OutboxRelay", "crates/engine/src/loops/outbox.rs")];
/// What owners are built on. It names no `Inner` either.
const SHARED: [(&str, &str); 1] = [("Leadership", "crates/engine/src/loops/leads.rs")];
/// The one place that knows all owners.
const WIRING: &str = "crates/engine/src/lib.rs";

pub(crate) fn check(sources: &[Source]) -> Vec<TidyFinding> {
    let alone = OWNERS.iter().chain(&SHARED).flat_map(|(owner, path)| stands_alone(owner, path, sources));
    alone.chain(sources.iter().filter(|source| source.path != WIRING).flat_map(holds_many)).collect()
}

/// Whether the owner is where it should be and reaches for nothing but its ports.
fn stands_alone(owner: &str, path: &str, sources: &[Source]) -> Vec<TidyFinding> {
    let defined = format!("struct {owner} ");
    let Some(source) = sources.iter().find(|source| source.path == path && source.code.contains(&defined)) else {
        let text = format!("`{owner}` is not defined here; correct the list in xtask/src/tidy/owners.rs");
        return vec![TidyFinding::of_file(Severity::Refuse, path, text)];
    };
    let lines = source.code.lines().enumerate().filter(|(at, line)| !source.is_test(*at) && has_word(line, "Inner"));
    let text = || format!("`{owner}` is built from its ports alone; hand it what it needs instead of `Inner`");
    lines.map(|(at, _)| TidyFinding::at(Severity::Refuse, path, at, text())).collect()
}

/// Structs of the file whose fields name more than one owner.
fn holds_many(source: &Source) -> Vec<TidyFinding> {
    let (mut found, mut held, mut begins) = (Vec::new(), Vec::new(), None);
    for (at, line) in source.code.lines().enumerate() {
        if has_word(line, "struct") && line.trim_end().ends_with('{') {
            (held, begins) = (Vec::new(), Some(at));
        } else if let Some(begin) = begins {
            held.extend(OWNERS.iter().map(|(owner, _)| *owner).filter(|owner| has_word(line, owner)));
            if line.starts_with('}') {
                begins = None;
                if held.len() > 1 {
                    let text = format!("holds {}: one owner at most outside of {WIRING}", held.join(" and "));
                    found.push(TidyFinding::at(Severity::Refuse, &source.path, begin, text));
                }
            }
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_holds_two_owners_is_refused_and_the_wiring_is_not() {
        let text = "struct Both {\n    a: Arc<AuditSealer>,\n    b: OutboxRelay,\n}\nstruct One {\n    a: AuditSealer,\n}\n";
        assert_eq!(holds_many(&Source::new("crates/engine/src/service/mod.rs", text)).len(), 1);
        let others = |path| check(&[Source::new(path, text)]).iter().filter(|found| found.text.contains("at most")).count();
        assert_eq!((others(WIRING), others("crates/engine/src/commit.rs")), (0, 1));
    }

    #[test]
    fn an_owner_that_names_inner_outside_of_tests_is_refused() {
        let path = "crates/engine/src/loops/seals.rs";
        let stands = |text: &str| stands_alone("AuditSealer", path, &[Source::new(path, text)]).is_empty();
        assert!(stands("struct AuditSealer {\n    clock: Clock,\n}\n"));
        assert!(!stands("use crate::Inner;\nstruct AuditSealer {\n    clock: Clock,\n}\n"));
        assert!(!stands("struct Sealer {\n}\n"), "the list is out of date");
    }
}
