//! Selects scanners by name.

use std::sync::Arc;

use super::engine::{BuiltinRules, RuleId};
use super::finding::FindingKind;
use super::user::UserSet;

/// Names that each select a group of rules.
pub(super) const GROUPS: [(&str, FindingKind); 4] = [
    ("secrets", FindingKind::Secrets),
    ("pii", FindingKind::Pii),
    ("injection", FindingKind::Injection),
    ("patterns", FindingKind::Pattern),
];

/// The rules to search for. It holds the patterns that it was made from, so it cannot be used with those of another policy.
#[derive(Clone)]
pub struct Selection {
    builtin: Box<[bool]>,
    pub(super) user: Arc<UserSet>,
    chosen: Box<[bool]>,
}

impl Selection {
    pub(super) fn none(builtin: &BuiltinRules, user: &Arc<UserSet>) -> Self {
        Self {
            builtin: vec![false; builtin.rules().len()].into(),
            user: Arc::clone(user),
            chosen: vec![false; user.len()].into(),
        }
    }

    /// Adds the rules of a name. False if no rule has it.
    pub(super) fn add(&mut self, builtin: &BuiltinRules, name: &str) -> bool {
        if let Some((_, kind)) = GROUPS.iter().find(|(group, _)| *group == name) {
            self.add_kind(builtin, *kind);
            return true;
        }
        match (builtin.rule(name), self.user.position(name)) {
            (Some(rule), _) => self.builtin[rule] = true,
            (None, Some(pattern)) => self.chosen[pattern] = true,
            (None, None) => return false,
        }
        true
    }

    fn add_kind(&mut self, builtin: &BuiltinRules, kind: FindingKind) {
        if kind == FindingKind::Pattern {
            self.chosen.fill(true);
        }
        for (on, rule) in self.builtin.iter_mut().zip(builtin.rules()) {
            *on |= rule.kind == kind;
        }
    }

    pub(super) fn has(&self, rule: RuleId) -> bool {
        match rule {
            RuleId::Builtin(rule) => self.builtin[rule],
            RuleId::User(pattern) => self.chosen[pattern],
        }
    }

    pub(super) fn any_builtin(&self) -> bool {
        self.builtin.contains(&true)
    }

    pub(super) fn any_user(&self) -> bool {
        self.chosen.contains(&true)
    }
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.builtin.iter().chain(&self.chosen).filter(|on| **on).count();
        write!(f, "Selection({count} rules)")
    }
}

/// A name that no scanner has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scanner is called `{name}`: did you mean `{nearest}`?")]
pub struct UnknownScanner {
    pub name: String,
    /// The known name that is spelt most like it.
    pub nearest: String,
}

impl UnknownScanner {
    pub(super) fn new<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let nearest = known.min_by_key(|candidate| distance(name, candidate)).unwrap_or_default();
        Self { name: name.to_owned(), nearest: nearest.to_owned() }
    }
}

/// How many single-byte edits lie between two names.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
