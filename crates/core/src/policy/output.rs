//! The output policy: whether a result may come out.
//!
//! It is asked in two steps. The first looks at what is known without reading the result; only rules that look for
//! content make the second one necessary. In both, the first rule in order that matches decides.

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

/// What is known about a result before it is read.
#[derive(Clone, Copy, Debug)]
pub struct OutputSubject<'a> {
    pub tenant: &'a str,
    pub topic: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    pub output_bytes: u64,
    /// The error text of an attempt that failed. Content rules look at it in the first step.
    pub error: Option<&'a str>,
}

/// What came of the first step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputLook {
    Decided(OutputVerdict),
    /// A rule that could match has to see the content.
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
    /// The job waits for the content check before it counts as done.
    hold: bool,
    tenants: Option<NameSet>,
    topics: Option<Vec<Glob>>,
    labels: Vec<(Box<str>, Box<str>)>,
    output_bytes_over: Option<u64>,
    has_error: Option<bool>,
    content: Content,
}

/// Of a result, the copy must be JSON by the rule for all results: two names may have become the same one. An error text need
/// not be JSON at all.
fn kept(text: &str, clean: &str) -> Option<Json> {
    if Json::read(text).is_ok() { Json::parse(clean).ok() } else { Some(Json::trusted(clean)) }
}

impl OutputPolicy {
    /// Whether results are to be checked. It is asked first; an operator's setting may overrule it.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Decides what can be decided without the content.
    pub fn metadata(&self, subject: &OutputSubject<'_>) -> OutputLook {
        let Some(rule) = self.rules.iter().find(|rule| rule.fits(subject)) else {
            return OutputLook::Decided(self.no_match());
        };
        // An error text that is to be redacted goes through `content`, which can do it.
        let in_error = || rule.decision.withholds() && subject.error.is_some_and(|error| rule.content.hits(error));
        if rule.content.is_none() || in_error() { OutputLook::Decided(self.verdict(rule)) } else { OutputLook::NeedsContent }
    }

    /// Whether the job has to wait for the content check. Also when a rule after the content would withhold the result
    /// whatever is in it: what cannot come out clean must not be out meanwhile.
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

    /// What happens to the result when it cannot be checked.
    pub fn fail_mode(&self, subject: &OutputSubject<'_>) -> FailMode {
        let fits = |rule: &&FailModeRule| in_scope(rule.topics.as_deref(), rule.tenants.as_ref(), subject);
        self.fail_modes.iter().find(fits).map_or(self.fail_mode, |rule| rule.mode)
    }

    /// Decides about one text: the output, or the error text. Each is asked about on its own.
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

    /// Decides about content that could not be read, or is too large to be: a rule that had to see it holds it back.
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
    /// Whether everything but the content matches.
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

/// The text without what any of the selections finds, or nothing if that cannot be promised.
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
