//! The output policy: whether a result may be exposed.
//!
//! It has two steps. The first looks only at metadata, known without reading the result; the second scans the content, and
//! is needed only if a rule with content conditions could match. In both steps the first rule in order that matches decides.

mod gate;
mod read;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::conditions::NameSet;
use super::input::FailMode;
use super::patterns::Content;
use super::rule::DEFAULT_RULE;
use crate::glob::Glob;
use crate::output::{OutputDecision, OutputVerdict};
use crate::request::Json;
use crate::scan::{FindingKey, Scanners};

pub use gate::{OutputGate, OutputRules};

/// The metadata of a result.
#[derive(Clone, Copy, Debug)]
pub struct OutputSubject<'a> {
    pub tenant: &'a str,
    pub topic: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    pub output_bytes: u64,
    /// The error text of a failed attempt. It is short, so content rules scan it in the first step.
    pub error: Option<&'a str>,
}

/// The outcome of the first step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputLook {
    Decided(OutputVerdict),
    /// A rule that could match has content conditions.
    NeedsContent,
}

/// The compiled `output` section.
#[derive(Debug)]
pub struct OutputPolicy {
    snapshot: Arc<str>,
    enabled: bool,
    fail_mode: FailMode,
    fail_modes: Vec<FailModeRule>,
    hold_topics: Vec<Glob>,
    rules: Vec<OutputRule>,
}

#[derive(Debug)]
struct FailModeRule {
    topics: Option<Vec<Glob>>,
    tenants: Option<NameSet>,
    mode: FailMode,
}

#[derive(Debug)]
struct OutputRule {
    id: Arc<str>,
    reason: Arc<str>,
    decision: OutputDecision,
    /// The result is hidden until its content has been scanned.
    hold: bool,
    tenants: Option<NameSet>,
    topics: Option<Vec<Glob>>,
    labels: Vec<(Box<str>, Box<str>)>,
    output_bytes_over: Option<u64>,
    has_error: Option<bool>,
    content: Content,
}

/// The copy of a result must be valid JSON by the rules for results: redaction may have made two keys equal. An error text
/// need not be JSON.
fn kept(text: &str, clean: &str) -> Option<Json> {
    if Json::read(text).is_ok() { Json::parse(clean).ok() } else { Some(Json::trusted(clean)) }
}

impl OutputPolicy {
    /// Whether results are checked at all. An operator's setting may override it.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// The first step: decides what can be decided without the content.
    pub fn metadata(&self, subject: &OutputSubject<'_>) -> OutputLook {
        let Some(rule) = self.rules.iter().find(|rule| rule.fits(subject)) else {
            return OutputLook::Decided(self.no_match());
        };
        // An error text that must be redacted is passed to `content`, which redacts.
        let in_error = || rule.decision.withholds() && subject.error.is_some_and(|error| rule.content.hits(error));
        if rule.content.is_none() || in_error() { OutputLook::Decided(self.verdict(rule)) } else { OutputLook::NeedsContent }
    }

    /// Whether the result must be hidden until the content scan. Also if a later rule without content conditions would
    /// withhold the result: a result that cannot be exposed in the end must not be exposed meanwhile.
    pub fn holds(&self, subject: &OutputSubject<'_>) -> bool {
        let mut asked = false;
        for rule in self.rules.iter().filter(|rule| rule.fits(subject)) {
            if rule.content.is_none() {
                return asked && (rule.decision.withholds() || self.is_held_topic(subject));
            }
            asked = true;
            if rule.hold {
                return true;
            }
        }
        asked && self.is_held_topic(subject)
    }

    fn is_held_topic(&self, subject: &OutputSubject<'_>) -> bool {
        self.hold_topics.iter().any(|topic| topic.matches(subject.topic))
    }

    /// What happens to a result that cannot be scanned.
    pub fn fail_mode(&self, subject: &OutputSubject<'_>) -> FailMode {
        let fits = |rule: &&FailModeRule| in_scope(rule.topics.as_deref(), rule.tenants.as_ref(), subject);
        self.fail_modes.iter().find(fits).map_or(self.fail_mode, |rule| rule.mode)
    }

    /// The second step, for one text: the result or the error text.
    pub fn content(&self, subject: &OutputSubject<'_>, text: &str, key: &FindingKey) -> OutputVerdict {
        let matching = self.rules.iter().filter(|rule| rule.fits(subject)).find(|rule| rule.content.hits(text));
        let Some(rule) = matching else { return self.no_match() };
        let mut verdict = self.verdict(rule);
        let scan = |selection| Scanners::builtin().scan(selection, text, key);
        verdict.findings = rule.content.selections().flat_map(|selection| scan(selection).findings).collect();
        verdict.findings.sort_by_key(|finding| (finding.offset, finding.length));
        if rule.decision == OutputDecision::Redact {
            verdict.redacted = redact(&rule.content, text, key).and_then(|clean| kept(text, &clean));
            if verdict.redacted.is_none() {
                verdict.decision = OutputDecision::Quarantine;
                verdict.reason = format!("{}; held back because it could not be redacted safely", rule.reason).into();
            }
        }
        verdict
    }

    /// Decides on content that could not be read or is too large: the first rule that has to scan it quarantines it.
    pub fn unreadable(&self, subject: &OutputSubject<'_>, why: &str) -> OutputVerdict {
        for rule in self.rules.iter().filter(|rule| rule.fits(subject)) {
            let mut verdict = self.verdict(rule);
            if rule.content.is_none() {
                return verdict;
            }
            if rule.decision != OutputDecision::Allow {
                verdict.decision = OutputDecision::Quarantine;
                verdict.reason =
                    format!("{}; held back because its content could not be checked: {why}", rule.reason).into();
                return verdict;
            }
        }
        self.no_match()
    }

    fn verdict(&self, rule: &OutputRule) -> OutputVerdict {
        OutputVerdict {
            decision: rule.decision,
            rule: rule.id.clone(),
            reason: rule.reason.clone(),
            snapshot: self.snapshot.clone(),
            findings: Vec::new(),
            redacted: None,
        }
    }

    fn no_match(&self) -> OutputVerdict {
        OutputVerdict {
            decision: OutputDecision::Allow,
            rule: DEFAULT_RULE.into(),
            reason: "no output rule matched".into(),
            snapshot: self.snapshot.clone(),
            findings: Vec::new(),
            redacted: None,
        }
    }
}

impl OutputRule {
    /// Whether all conditions but those on content hold.
    fn fits(&self, subject: &OutputSubject<'_>) -> bool {
        let label =
            |(name, value): &(Box<str>, Box<str>)| subject.labels.get(&**name).is_some_and(|found| **found == **value);
        in_scope(self.topics.as_deref(), self.tenants.as_ref(), subject)
            && self.output_bytes_over.is_none_or(|limit| subject.output_bytes > limit)
            && self.has_error.is_none_or(|wanted| subject.error.is_some() == wanted)
            && self.labels.iter().all(label)
    }
}

fn in_scope(topics: Option<&[Glob]>, tenants: Option<&NameSet>, subject: &OutputSubject<'_>) -> bool {
    topics.is_none_or(|topics| topics.iter().any(|topic| topic.matches(subject.topic)))
        && tenants.is_none_or(|tenants| tenants.contains(subject.tenant))
}

/// The text without the findings of the selections; None if some finding could not be removed.
fn redact(content: &Content, text: &str, key: &FindingKey) -> Option<String> {
    let scanners = Scanners::builtin();
    let mut clean = text.to_owned();
    for selection in content.selections() {
        let report = scanners.scan(selection, &clean, key);
        clean = scanners.redact(selection, &clean, &report, key)?;
    }
    let still_hits = content.selections().any(|selection| scanners.hits(selection, &clean));
    (!still_hits).then_some(clean)
}
