//! The output gate: applies the output rules in force to results and texts, also where this process does not know the rules.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{OutputLook, OutputPolicy, OutputSubject};
use crate::output::{OutputDecision, OutputStep, OutputVerdict};
use crate::policy::{DEFAULT_RULE, FailMode, Policy};
use crate::request::{JobRequest, Json};
use crate::scan::FindingKey;

/// Replaces a text that could not be checked.
const WITHHELD: &str = "[withheld: the output policy in force is not known here yet]";

/// The output rules in force, as far as this process knows them.
#[derive(Clone, Debug)]
pub enum OutputRules {
    /// No policy is in force, so nothing is checked.
    None,
    Of(Arc<Policy>),
    /// There may be rules, but this process has not loaded them or cannot read them: nothing is exposed unchecked.
    Unknown,
}

/// Applies the output rules. Cheap to clone, so that a scan can move to another thread.
#[derive(Clone)]
pub struct OutputGate {
    key: FindingKey,
    /// An operator's setting that overrides the policy's `enabled`.
    enabled: Option<bool>,
}

impl OutputGate {
    /// `key` makes equal findings comparable without revealing them.
    pub fn new(key: FindingKey, enabled: Option<bool>) -> Self {
        Self { key, enabled }
    }

    /// The metadata step for a result.
    pub fn step(&self, rules: &OutputRules, request: &JobRequest, bytes: usize) -> OutputStep {
        let policy = match self.watched(rules) {
            Watched::Nothing => return OutputStep::Pass,
            Watched::Everything => return OutputStep::Scan { hold: true },
            Watched::By(policy) => policy,
        };
        let subject = subject(request, bytes, None);
        match policy.metadata(&subject) {
            OutputLook::Decided(verdict) if verdict.decision == OutputDecision::Allow => OutputStep::Pass,
            OutputLook::Decided(verdict) => OutputStep::Decided(Arc::new(verdict)),
            OutputLook::NeedsContent => OutputStep::Scan { hold: policy.holds(&subject) },
        }
    }

    /// What happens to a result whose content cannot be scanned.
    pub fn fail_mode(&self, rules: &OutputRules, request: &JobRequest) -> FailMode {
        match self.watched(rules) {
            Watched::Nothing => FailMode::Open,
            Watched::Everything => FailMode::Closed,
            Watched::By(policy) => policy.fail_mode(&subject(request, 0, None)),
        }
    }

    /// The content step for a result. None if the rules are not known here.
    pub fn content(&self, rules: &OutputRules, request: &JobRequest, result: &Json) -> Option<OutputVerdict> {
        match rules {
            OutputRules::None => Some(allowed("no output rule")),
            OutputRules::Of(policy) => {
                let text = result.as_str();
                Some(self.checked(policy.output(), &subject(request, text.len(), None), text))
            }
            OutputRules::Unknown => None,
        }
    }

    /// The verdict on a result that cannot be read, whatever the fail mode: a rule that has to scan it quarantines it. None
    /// if the rules are not known here.
    pub fn unreadable(&self, rules: &OutputRules, request: &JobRequest, bytes: usize, why: &str) -> Option<OutputVerdict> {
        match rules {
            OutputRules::None => Some(allowed("no output rule")),
            OutputRules::Of(policy) => Some(policy.output().unreadable(&subject(request, bytes, None), why)),
            OutputRules::Unknown => None,
        }
    }

    /// A text that is exposed together with an attempt (an error, progress, a log line), with findings removed.
    pub fn clean(&self, rules: &OutputRules, request: &JobRequest, text: Arc<str>) -> Arc<str> {
        let policy = match self.watched(rules) {
            Watched::Nothing => return text,
            Watched::Everything if text.is_empty() => return text,
            Watched::Everything => return WITHHELD.into(),
            Watched::By(policy) => policy,
        };
        let verdict = self.checked(policy, &subject(request, 0, Some(&text)), &text);
        match (verdict.decision, verdict.redacted) {
            (OutputDecision::Allow, _) => text,
            (OutputDecision::Redact, Some(clean)) => clean.as_str().into(),
            _ => format!("[withheld by policy rule {}]", verdict.rule).into(),
        }
    }

    /// A panic in a scanner must neither expose a text nor end the caller: the content counts as unreadable.
    fn checked(&self, policy: &OutputPolicy, subject: &OutputSubject<'_>, text: &str) -> OutputVerdict {
        let checked = catch_unwind(AssertUnwindSafe(|| policy.content(subject, text, &self.key)));
        checked.unwrap_or_else(|_| policy.unreadable(subject, "the scanners failed"))
    }

    fn watched<'r>(&self, rules: &'r OutputRules) -> Watched<'r> {
        match rules {
            _ if self.enabled == Some(false) => Watched::Nothing,
            OutputRules::None => Watched::Nothing,
            OutputRules::Unknown => Watched::Everything,
            OutputRules::Of(policy) if self.enabled.unwrap_or_else(|| policy.output().enabled()) => {
                Watched::By(policy.output())
            }
            OutputRules::Of(_) => Watched::Nothing,
        }
    }
}

/// The policy to check by.
enum Watched<'r> {
    Nothing,
    Everything,
    By(&'r OutputPolicy),
}

fn allowed(reason: &str) -> OutputVerdict {
    OutputVerdict {
        decision: OutputDecision::Allow,
        rule: DEFAULT_RULE.into(),
        reason: reason.into(),
        snapshot: crate::verdict::BUILTIN_ALLOW.into(),
        findings: Vec::new(),
        redacted: None,
    }
}

fn subject<'a>(request: &'a JobRequest, bytes: usize, error: Option<&'a str>) -> OutputSubject<'a> {
    OutputSubject {
        tenant: request.tenant.as_str(),
        topic: request.topic.as_str(),
        labels: &request.labels,
        output_bytes: bytes as u64,
        error,
    }
}
