//! The kernel's verdict on one attempt.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::unknown_name::UnknownName;

/// The snapshot in force while no policy was ever activated.
pub const BUILTIN_ALLOW: &str = "builtin:allow";

/// The five decisions of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny,
    RequireApproval,
    Throttle,
    AllowWithConstraints,
    /// Stored by a newer version: kept as it is, shown by its name, and never an allowance.
    #[serde(untagged)]
    Unknown(UnknownName),
}

impl Decision {
    pub const ALL: [Self; 5] = [Self::Allow, Self::Deny, Self::RequireApproval, Self::Throttle, Self::AllowWithConstraints];

    pub fn as_str(&self) -> &str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::RequireApproval => "require_approval",
            Self::Throttle => "throttle",
            Self::AllowWithConstraints => "allow_with_constraints",
            Self::Unknown(name) => name.as_str(),
        }
    }

    /// The words of all decisions that policies may make.
    pub fn words() -> [(&'static str, Self); 5] {
        Self::ALL.each_ref().map(|decision| (decision.as_str(), *decision))
    }
}

/// A decision with its grounds, stored with the attempt that it was made for. Read-only, because its JSON may be cached
/// already; to change it, make another with [`Verdict::but`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verdict {
    grounds: Grounds,
    #[serde(skip)]
    written: Written,
}

/// The content of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds {
    pub decision: Decision,
    /// The rule that decided.
    pub rule: Arc<str>,
    /// SHA-256 of the rule's own text, if it requires an approval. The approval binds to it, so that an unrelated change of
    /// the policy keeps the approval.
    #[serde(default = "empty", skip_serializing_if = "str::is_empty")]
    pub rule_hash: Arc<str>,
    pub reason: Arc<str>,
    /// The policy snapshot of the verdict; with an older one the job is judged again before dispatch.
    pub snapshot: Arc<str>,
    #[serde(default, skip_serializing_if = "Constraints::is_none")]
    pub constraints: Constraints,
    /// The terms of the approval, if one is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalTerms>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remediations: Vec<Remediation>,
    /// The kernel gave no verdict, and the fail mode is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bypassed: bool,
    /// The kernel is reachable, was asked, and gave no verdict. It is not asked again before dispatch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// The cached JSON of a verdict, since many jobs share one. A copy starts without it, because most copies are made to be
/// changed.
#[derive(Default)]
struct Written(OnceLock<Option<Box<RawValue>>>);

impl Clone for Written {
    fn clone(&self) -> Self {
        Self::default()
    }
}

// The cache holds nothing that the grounds do not: it matters neither for comparison nor for display.
impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

impl PartialEq for Written {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Written {}

fn empty() -> Arc<str> {
    Arc::from("")
}

impl From<Grounds> for Verdict {
    fn from(grounds: Grounds) -> Self {
        Self { grounds, written: Written::default() }
    }
}

impl Deref for Verdict {
    type Target = Grounds;

    fn deref(&self) -> &Grounds {
        &self.grounds
    }
}

impl Verdict {
    /// A verdict with only a decision, a rule and a reason.
    pub fn plain(decision: Decision, rule: impl Into<Arc<str>>, reason: impl Into<Arc<str>>, snapshot: Arc<str>) -> Self {
        Self::from(Grounds {
            decision,
            rule: rule.into(),
            rule_hash: empty(),
            reason: reason.into(),
            snapshot,
            constraints: Constraints::default(),
            approval: None,
            remediations: Vec::new(),
            bypassed: false,
            unanswered: false,
        })
    }

    /// A copy of the verdict with `change` applied.
    #[must_use]
    pub fn but(self, change: impl FnOnce(&mut Grounds)) -> Self {
        let mut grounds = self.grounds;
        change(&mut grounds);
        Self::from(grounds)
    }

    /// The verdict as JSON, written once for all jobs that share it.
    pub fn as_json(&self) -> Option<&RawValue> {
        self.written.0.get_or_init(|| to_raw_value(&self.grounds).ok()).as_deref()
    }

    /// Drops the hash where no approval binds to it, because every row of every job would carry it.
    pub(crate) fn without_idle_hash(self) -> Self {
        if self.decision == Decision::RequireApproval || self.rule_hash.is_empty() {
            return self;
        }
        self.but(|verdict| verdict.rule_hash = empty())
    }

    /// Lets an attempt through without a verdict.
    pub fn bypass(why: &str, snapshot: Arc<str>) -> Self {
        let reason = format!("fail-open: safety unavailable -- {why}");
        Self::plain(Decision::Allow, "fail-open", reason, snapshot).but(|verdict| verdict.bypassed = true)
    }

    /// Lets an attempt through for which the kernel was asked and gave no verdict.
    pub fn unanswered(why: &str, snapshot: Arc<str>) -> Self {
        Self::bypass(why, snapshot).but(|verdict| {
            verdict.rule = "fail-open-unanswered".into();
            verdict.unanswered = true;
        })
    }
}

/// Conditions under which an attempt may run. Every constraint is enforced; a policy that names an unknown one is refused. A
/// constraint that a newer version stored is kept, and a process that cannot enforce it does not dispatch under the verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraints {
    /// Lowers the attempt's timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_ms: Option<u64>,
    /// Caps retries: the job may be retried after this many failures, and no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// A larger result fails the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    /// The most jobs of the tenant and topic at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// The only pools whose workers may take the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_pools: Option<BTreeSet<Arc<str>>>,
    /// Whether built-in handlers may open connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Access>,
    /// Whether built-in handlers may start programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Access>,
    /// Constraints that this version does not know, by name.
    #[serde(flatten)]
    pub unknown: BTreeMap<Arc<str>, serde_json::Value>,
}

impl Constraints {
    pub const NONE: Self = Self {
        max_runtime_ms: None,
        max_retries: None,
        max_output_bytes: None,
        max_concurrent: None,
        allowed_pools: None,
        network: None,
        exec: None,
        unknown: BTreeMap::new(),
    };

    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// The stricter of both for each constraint.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let pools = match (&self.allowed_pools, &other.allowed_pools) {
            (Some(a), Some(b)) => Some(a.intersection(b).cloned().collect()),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        Self {
            max_runtime_ms: least(self.max_runtime_ms, other.max_runtime_ms),
            max_retries: least(self.max_retries, other.max_retries),
            max_output_bytes: least(self.max_output_bytes, other.max_output_bytes),
            max_concurrent: least(self.max_concurrent, other.max_concurrent),
            allowed_pools: pools,
            network: self.network.max(other.network),
            exec: self.exec.max(other.exec),
            unknown: self.unknown.iter().chain(&other.unknown).map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}

fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Ordered by strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Allow,
    Deny,
}

/// How many people must approve, and for how long an approval is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalTerms {
    /// Distinct people, none of them the submitter.
    #[serde(default = "one")]
    pub approvers: u32,
    /// The job is denied if the approval is unanswered for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_expiry_ms: Option<u64>,
    /// An attempt judged later than this after the approval requires a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_for_ms: Option<u64>,
}

const fn one() -> u32 {
    1
}

impl Default for ApprovalTerms {
    fn default() -> Self {
        Self { approvers: 1, request_expiry_ms: None, valid_for_ms: None }
    }
}

/// A change by which the submitter's job would be allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remediation {
    pub title: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement_topic: Option<Arc<str>>,
}

/// The outcome of asking for a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    Decided(Arc<Verdict>),
    /// There is no verdict, and the job waits (fail closed). The reason is None if the kernel was not asked.
    Unavailable(Option<Arc<str>>),
}

impl Judgement {
    /// For decisions that need no verdict.
    pub const UNASKED: Self = Self::Unavailable(None);

    pub fn unavailable(why: impl Into<Arc<str>>) -> Self {
        Self::Unavailable(Some(why.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_that_was_changed_is_written_anew() {
        let text = |verdict: &Verdict| verdict.as_json().unwrap().get().to_owned();
        let said = Verdict::plain(Decision::Allow, "r", "because", "s".into());
        assert_eq!(text(&said), r#"{"decision":"allow","rule":"r","reason":"because","snapshot":"s"}"#);
        let denied = said.clone().but(|verdict| verdict.decision = Decision::Deny);
        let other = said.but(|verdict| verdict.rule = "other".into());
        for (changed, decision, rule) in [(denied, "deny", "r"), (other, "allow", "other")] {
            let expected = format!(r#"{{"decision":"{decision}","rule":"{rule}","reason":"because","snapshot":"s"}}"#);
            assert_eq!(text(&changed), expected);
            assert_eq!(serde_json::to_string(&changed).unwrap(), expected);
            assert_eq!(serde_json::from_str::<Verdict>(&expected).unwrap(), changed);
        }
    }

    #[test]
    fn a_decision_that_is_not_known_is_kept_under_its_name() {
        for (text, known) in [(r#""deny""#, true), (r#""allow_on_mars""#, false)] {
            let decision: Decision = serde_json::from_str(text).unwrap();
            assert_eq!(Decision::ALL.contains(&decision), known);
            assert_eq!(
                (serde_json::to_string(&decision).unwrap(), format!("{:?}", decision.as_str())),
                (text.into(), text.into())
            );
        }
    }

    #[test]
    fn both_constraints_at_once_are_of_each_the_stricter() {
        let pools = |names: &[&str]| Some(names.iter().map(|name| Arc::from(*name)).collect());
        let a = Constraints { max_runtime_ms: Some(5), allowed_pools: pools(&["a", "b"]), ..Constraints::default() };
        let b = Constraints {
            max_runtime_ms: Some(3),
            max_retries: Some(1),
            allowed_pools: pools(&["b", "c"]),
            network: Some(Access::Deny),
            ..Constraints::default()
        };
        let stricter = a.and(&b);
        assert_eq!(b.and(&a), stricter);
        assert_eq!(stricter, Constraints { allowed_pools: pools(&["b"]), ..b });
        assert_eq!(Constraints::default().and(&a), a);
    }
}
