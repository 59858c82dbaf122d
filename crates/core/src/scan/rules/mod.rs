//! The built-in rules as tables.

mod ai;
mod assignment;
mod cloud;
mod forge;
mod generic;
mod iban;
mod injection;
mod leads;
mod numbers;
mod pii;
mod saas;

use std::ops::Range;

pub(super) use numbers::{NUMBERS, Numbers, spans as number_spans};

use super::checks;
use super::finding::FindingKind;

/// One way to recognise what a rule looks for. A rule has as many probes as its thing has forms.
pub(super) struct Probe {
    pub(super) rule: &'static str,
    pub(super) kind: FindingKind,
    /// Where one of these stands, in upper or lower case, the probe looks. ASCII only.
    pub(super) keywords: &'static [&'static str],
    /// From the place of the keyword to the start of the match, if what lies before allows one.
    pub(super) lead: fn(&[u8], usize) -> Option<usize>,
    pub(super) find: Find,
    /// The match must not be the head of a longer word.
    pub(super) closed: bool,
    /// The last word about the matched text.
    pub(super) check: fn(&str) -> bool,
    /// Goes by the name of a value more than by its form.
    pub(super) loose: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Find {
    /// Tried at the lead's place only. Its first group, if it has one, is the finding. Every repetition is bounded.
    Regex(&'static str),
    /// A phrase in upper or lower case. A space in it stands for any white space.
    Phrase(&'static str),
    /// A value assigned to a name; the value is the finding.
    Named { name: &'static str, value: &'static str },
    /// Gets the text and the place of the keyword.
    Code(fn(&str, usize) -> Option<Range<usize>>),
}

impl Probe {
    /// A token that starts with its keyword.
    const fn token(rule: &'static str, keywords: &'static [&'static str], pattern: &'static str) -> Self {
        Self {
            rule,
            kind: FindingKind::Secrets,
            keywords,
            lead: leads::word,
            find: Find::Regex(pattern),
            closed: true,
            check: checks::varied,
            loose: false,
        }
    }

    /// A phrase of an attack.
    const fn phrase(rule: &'static str, keywords: &'static [&'static str], pattern: &'static str) -> Self {
        let find = Find::Phrase(pattern);
        Self {
            kind: FindingKind::Injection,
            find,
            closed: false,
            check: checks::any,
            ..Self::token(rule, keywords, pattern)
        }
    }

    /// A value without a mark of its own, known by the name before it.
    const fn named(rule: &'static str, keywords: &'static [&'static str], name: &'static str, value: &'static str) -> Self {
        Self { lead: leads::anywhere, find: Find::Named { name, value }, ..Self::token(rule, keywords, "") }
    }

    /// Something that a function recognises.
    const fn code(
        rule: &'static str,
        kind: FindingKind,
        keywords: &'static [&'static str],
        code: fn(&str, usize) -> Option<Range<usize>>,
    ) -> Self {
        Self { kind, find: Find::Code(code), closed: false, check: checks::any, ..Self::token(rule, keywords, "") }
    }

    const fn lead(self, lead: fn(&[u8], usize) -> Option<usize>) -> Self {
        Self { lead, ..self }
    }

    const fn check(self, check: fn(&str) -> bool) -> Self {
        Self { check, ..self }
    }

    /// May be followed by anything: its length is not fixed, and what follows is taken as far as it goes.
    const fn open(self) -> Self {
        Self { closed: false, ..self }
    }

    const fn loose(self) -> Self {
        Self { loose: true, ..self }
    }
}

pub(super) fn probes() -> impl Iterator<Item = &'static Probe> {
    let secrets = cloud::PROBES.iter().chain(&forge::PROBES).chain(&ai::PROBES).chain(&saas::PROBES).chain(&generic::PROBES);
    secrets.chain(&pii::PROBES).chain(&injection::PROBES)
}
