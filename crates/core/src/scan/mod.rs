//! Content scanners: find secrets, personal data and attacks in payloads, results, error texts and logs.
//!
//! A scan finds keywords first, in one pass over the text, and runs a rule only where one of its keywords is. Every rule is
//! anchored there and bounded, so the cost is linear in the text whatever it contains. Numbers (cards, IBANs) have no
//! keyword; they are found by probing the text in strides no longer than the shortest of them.
//!
//! Payloads and results are JSON text, where a secret may hide behind escapes (`\u0040`, `\/`, `\n`). A text with
//! backslashes is therefore scanned as written and again in its decoded views; findings always refer to bytes of the raw
//! text.
//!
//! A [`Finding`] never carries the matched text, only its place and a keyed hash by which two findings can be compared.

mod checks;
mod decode;
mod engine;
mod finding;
mod merge;
mod redact;
mod rules;
mod select;
mod user;

#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

pub use finding::{Finding, FindingKey, FindingKind, ScanReport};
pub use redact::redact;
pub use select::{Selection, UnknownScanner};
pub use user::{PatternError, PatternFault, UserPattern};

use engine::BuiltinRules;
use merge::MatchCollector;
use user::UserSet;

static BUILTIN: LazyLock<BuiltinRules> = LazyLock::new(BuiltinRules::compile);
static PLAIN: LazyLock<Scanners> = LazyLock::new(|| Scanners { builtin: &BUILTIN, user: Arc::default() });

/// Redacting may reveal a match that the first scan could not see, such as a token glued to another one. A text with
/// findings after this many rounds is not redacted at all.
const REDACT_ROUNDS: usize = 4;

/// Content that no scanner can read, because it is not UTF-8. A rule that has to scan it withholds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content is not UTF-8 text (byte {offset}): send text, or allow binary results for this topic")]
pub struct Unreadable {
    /// The first byte that is not valid UTF-8.
    pub offset: usize,
}

/// The built-in rules and the patterns of one policy.
pub struct Scanners {
    builtin: &'static BuiltinRules,
    user: Arc<UserSet>,
}

impl Scanners {
    /// The built-in rules alone, compiled once per process.
    pub fn builtin() -> &'static Self {
        &PLAIN
    }

    /// The built-in rules and the patterns `user`.
    pub fn new(user: &[UserPattern]) -> Result<Self, PatternError> {
        let taken = |name: &str| select::GROUPS.iter().any(|(group, _)| *group == name) || BUILTIN.rule(name).is_some();
        Ok(Self { builtin: &BUILTIN, user: Arc::new(UserSet::compile(user, taken)?) })
    }

    /// Every name that [`select`](Self::select) takes: groups, built-in rules, patterns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let groups = select::GROUPS.iter().map(|(group, _)| *group);
        groups.chain(self.builtin.rules().map(|rule| &*rule.name)).chain(self.user.names())
    }

    /// The union of the named groups, rules and patterns.
    pub fn select(&self, names: &[&str]) -> Result<Selection, UnknownScanner> {
        let mut selection = Selection::none(self.builtin, &self.user);
        for name in names {
            if !selection.add(self.builtin, name) {
                return Err(UnknownScanner::new(name, self.names()));
            }
        }
        Ok(selection)
    }

    /// Whether the text has any finding of the selection.
    pub fn hits(&self, selection: &Selection, text: &str) -> bool {
        decode::views(text)
            .any(|view| engine::walk(self.builtin, selection, view.text(), &mut |_, _| engine::AfterMatch::Stop).is_break())
    }

    /// The findings of the selection in the text.
    pub fn scan(&self, selection: &Selection, text: &str, key: &FindingKey) -> ScanReport {
        let mut collector = MatchCollector::new(key);
        for view in decode::views(text) {
            collector.begin_view();
            // A collector never stops the walk: it drops what is over its limits and says so in the report.
            let _ = engine::walk(self.builtin, selection, view.text(), &mut |rule, span| collector.take(rule, &view, span));
        }
        collector.report(self.builtin, selection)
    }

    /// Like [`scan`](Self::scan), for content that may not be text.
    pub fn scan_bytes(&self, selection: &Selection, content: &[u8], key: &FindingKey) -> Result<ScanReport, Unreadable> {
        let text = std::str::from_utf8(content).map_err(|e| Unreadable { offset: e.valid_up_to() })?;
        Ok(self.scan(selection, text, key))
    }

    /// The text without what was found in it, or nothing if that cannot be promised: the report is incomplete, the JSON
    /// would break, or what remains still hits. The caller then holds the whole text back.
    pub fn redact(&self, selection: &Selection, text: &str, report: &ScanReport, key: &FindingKey) -> Option<String> {
        if report.truncated {
            return None;
        }
        let mut clean = redact(text, &report.findings)?;
        for _ in 0..REDACT_ROUNDS {
            let left = self.scan(selection, &clean, key);
            if left.findings.is_empty() {
                return Some(clean);
            }
            if left.truncated {
                return None;
            }
            clean = redact(&clean, &left.findings)?;
        }
        None
    }
}
