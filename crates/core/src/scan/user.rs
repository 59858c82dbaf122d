//! Patterns that a policy defines.

use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// A compiled pattern larger than this is refused: loading a policy with many of them would exhaust memory.
const COMPILED_BYTES_MAX: usize = 1 << 20;
const NAME_BYTES_MAX: usize = 64;
const PATTERNS_MAX: usize = 256;
const KEYWORDS_MAX: usize = 64;

/// A pattern as written in a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserPattern {
    /// Lower-case letters, digits, `_`, `-` and `.`; it appears in findings and in redacted text.
    pub name: String,
    pub regex: String,
    /// If any are given, the regex runs only on texts that contain one of them, in upper or lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
}

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern `{name}`: {fault}")]
pub struct PatternError {
    pub name: String,
    pub fault: PatternFault,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    #[error("a name has 1 to 64 of the characters a-z, 0-9, `_`, `-` and `.`: rename it")]
    Name,
    #[error("a built-in scanner has this name: choose another")]
    Builtin,
    #[error("another pattern has this name: choose another")]
    Duplicate,
    #[error("the regex does not parse: {0}")]
    Syntax(String),
    #[error("the regex matches the empty text, so it would match everywhere: make a part of it mandatory")]
    MatchesEmpty,
    #[error("the regex can never match: remove it or correct it")]
    NeverMatches,
    #[error("the regex is too large when compiled: shorten it or lower its repetition counts")]
    TooLarge,
    #[error("it has an empty keyword or more than 64: remove what is not needed")]
    Keywords,
    #[error("a policy has at most 256 patterns: join or remove some")]
    TooMany,
}

#[derive(Debug)]
pub(super) struct UserRule {
    pub(super) name: Arc<str>,
    pub(super) regex: Regex,
    has_keywords: bool,
}

/// The compiled patterns of one policy.
#[derive(Debug, Default)]
pub(super) struct UserSet {
    rules: Vec<UserRule>,
    keywords: Option<AhoCorasick>,
    /// The rule of each keyword.
    owners: Vec<usize>,
}

impl UserSet {
    pub(super) fn compile(patterns: &[UserPattern], taken: impl Fn(&str) -> bool) -> Result<Self, PatternError> {
        let mut seen = BTreeSet::new();
        let mut set = Self::default();
        let mut keywords = Vec::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let refuse = |fault| PatternError { name: pattern.name.clone(), fault };
            check(pattern, index, &taken).map_err(refuse)?;
            if !seen.insert(&pattern.name) {
                return Err(refuse(PatternFault::Duplicate));
            }
            let regex = compile(&pattern.regex).map_err(refuse)?;
            set.rules.push(UserRule {
                name: pattern.name.as_str().into(),
                regex,
                has_keywords: !pattern.keywords.is_empty(),
            });
            keywords.extend(pattern.keywords.iter());
            set.owners.extend(std::iter::repeat_n(index, pattern.keywords.len()));
        }
        if let Some(last) = patterns.last().filter(|_| !keywords.is_empty()) {
            let built = AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::Standard).build(keywords);
            set.keywords = Some(built.map_err(|_| PatternError { name: last.name.clone(), fault: PatternFault::TooLarge })?);
        }
        Ok(set)
    }

    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| &*rule.name)
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.names().position(|known| known == name)
    }

    pub(super) fn rule(&self, index: usize) -> &UserRule {
        &self.rules[index]
    }

    /// The patterns that have no keyword, or whose keyword is in the text.
    pub(super) fn awake(&self, text: &str) -> impl Iterator<Item = usize> {
        let mut awake: Vec<bool> = self.rules.iter().map(|rule| !rule.has_keywords).collect();
        if let Some(keywords) = &self.keywords {
            for hit in keywords.find_overlapping_iter(text) {
                awake[self.owners[hit.pattern().as_usize()]] = true;
            }
        }
        awake.into_iter().enumerate().filter_map(|(index, on)| on.then_some(index))
    }
}

fn check(pattern: &UserPattern, index: usize, taken: &impl Fn(&str) -> bool) -> Result<(), PatternFault> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'.');
    if pattern.name.is_empty() || pattern.name.len() > NAME_BYTES_MAX || !pattern.name.bytes().all(plain) {
        return Err(PatternFault::Name);
    }
    if taken(&pattern.name) {
        return Err(PatternFault::Builtin);
    }
    if pattern.keywords.len() > KEYWORDS_MAX || pattern.keywords.iter().any(String::is_empty) {
        return Err(PatternFault::Keywords);
    }
    if index >= PATTERNS_MAX {
        return Err(PatternFault::TooMany);
    }
    Ok(())
}

fn compile(pattern: &str) -> Result<Regex, PatternFault> {
    let parsed = regex_syntax::parse(pattern).map_err(|e| PatternFault::Syntax(e.to_string()))?;
    match parsed.properties().minimum_len() {
        Some(0) => return Err(PatternFault::MatchesEmpty),
        None => return Err(PatternFault::NeverMatches),
        Some(_) => {}
    }
    RegexBuilder::new(pattern).size_limit(COMPILED_BYTES_MAX).build().map_err(|e| match e {
        regex::Error::CompiledTooBig(_) => PatternFault::TooLarge,
        other => PatternFault::Syntax(other.to_string()),
    })
}
