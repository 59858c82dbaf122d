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

/// One way to recognise the subject of a rule. A rule has a probe for each form of its subject.
pub(super) struct Probe {
    pub(super) rule: &'static str,
    pub(super) kind: FindingKind,
    /// The probe runs where one of these occurs, in upper or lower case. ASCII only.
    pub(super) keywords: &'static [&'static str],
    /// From the position of the keyword to the start of the match; None if the preceding bytes rule a match out.
    pub(super) lead: fn(&[u8], usize) -> Option<usize>,
    pub(super) find: Find,
    /// The match must not be the head of a longer word.
    pub(super) closed: bool,
    /// The final check of the matched text.
    pub(super) check: fn(&str) -> bool,
    /// The rule relies on the name of a value more than on its form.
    pub(super) loose: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Find {
    /// Tried only where the lead points. The first group, if there is one, is the finding. Every repetition is bounded.
    Regex(&'static str),
    /// A phrase in upper or lower case. A space in it matches any white space.
    Phrase(&'static str),
    /// A value assigned to a name; the value is the finding.
    Named { name: &'static str, value: &'static str },
    /// A function of the text and the position of the keyword.
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

    /// A value without a form of its own, recognised by the name before it.
    const fn named(rule: &'static str, keywords: &'static [&'static str], name: &'static str, value: &'static str) -> Self {
        Self { lead: leads::anywhere, find: Find::Named { name, value }, ..Self::token(rule, keywords, "") }
    }

    /// A subject that a function recognises.
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

    /// Any byte may follow: the length is not fixed, and the match extends as far as it can.
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
