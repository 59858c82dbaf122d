//! The conditions (`match:`) of an input rule.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use super::keys;
use super::patterns::{Content, Patterns};
use super::predicate::{Bound, ScratchLayout};
use super::subject::Subject;
use super::velocity::{Velocity, VelocityLimit};
use super::when::{Evaluation, When};
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;
use crate::formula::Regexes;
use crate::glob::Glob;

pub(super) type NameSet = BTreeSet<Box<str>>;

/// The conditions of one rule: all that are given must hold.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    tenants: Option<NameSet>,
    topics: Option<Vec<Glob>>,
    capabilities: Option<NameSet>,
    actors: Option<NameSet>,
    actor_types: Option<NameSet>,
    risk_tags: Option<NameSet>,
    requires: Option<NameSet>,
    labels: Vec<(Box<str>, Box<str>)>,
    /// Holds if the job has a label of one of these names with a value that is not listed.
    label_not_in: Vec<(Box<str>, NameSet)>,
    /// Holds if the job has a label of one of these names with a number above its limit.
    label_threshold: Vec<(Box<str>, f64)>,
    payload_bytes_over: Option<u64>,
    content: Content,
    when: Option<When>,
    velocity: Option<VelocityLimit>,
    /// The rule has only `when` and `velocity`. Most rules that the index cannot skip are of this kind, so `check` skips the
    /// other conditions.
    only_when: bool,
}

/// The context for reading a rule.
pub(super) struct RuleReader<'a> {
    pub(super) patterns: Option<&'a Patterns>,
    pub(super) regexes: &'a mut Regexes,
    pub(super) shelf: &'a mut ScratchLayout,
    pub(super) report: &'a mut ConfigReport,
}

impl Conditions {
    pub(super) fn read(node: &YamlNode, rule: &str, reading: &mut RuleReader<'_>) -> Option<Self> {
        let RuleReader { patterns, regexes, shelf, report } = reading;
        let fields = Fields::of(node, &keys::MATCH, report)?;
        let mut list = |key: &str| fields.get(key).and_then(|node| names(node, key, report));
        let (tenants, capabilities) = (list("tenants"), list("capabilities"));
        let (actors, actor_types) = (list("actors"), list("actor_types"));
        let (risk_tags, requires) = (list("risk_tags"), list("requires"));
        let over = fields.get("payload_bytes_over");
        let when = fields.get("when").and_then(|node| Some((read::text(node, "when", report)?, node.at)));
        let given = |key: &&str| fields.get(key).is_some();
        let only_when = keys::MATCH.keys.iter().filter(|key| given(key)).all(|key| matches!(*key, "when" | "velocity"));
        Some(Self {
            tenants,
            topics: fields.get("topics").and_then(|node| globs(node, "topics", report)),
            capabilities,
            actors,
            actor_types,
            risk_tags,
            requires,
            labels: fields.get("labels").map_or_else(Vec::new, |node| labels(node, report)),
            label_not_in: label_not_in(&fields, report),
            label_threshold: fields.get("label_threshold").map_or_else(Vec::new, |node| thresholds(node, report)),
            payload_bytes_over: over.and_then(|node| read::whole(node, "payload_bytes_over", 0..=u64::MAX, report)),
            content: Content::read(&fields, rule, *patterns, report),
            when: when.and_then(|(text, at)| When::compile(text, rule, at, regexes, shelf, report)),
            velocity: fields.get("velocity").and_then(|node| VelocityLimit::read(node, report)),
            only_when,
        })
    }

    /// The topics outside of which the conditions cannot hold; None if there is no such bound.
    pub(super) fn needed_topics(&self) -> Option<Cow<'_, [Glob]>> {
        let by_when = || self.when.as_ref()?.predicate.topics();
        self.topics.as_deref().map(Cow::Borrowed).or_else(|| by_when().map(Cow::Owned))
    }

    /// The tenants outside of which the conditions cannot hold; None if there is no such bound.
    pub(super) fn needed_tenants(&self) -> Option<Cow<'_, NameSet>> {
        let by_when = || self.when.as_ref()?.predicate.tenants();
        self.tenants.as_ref().map(Cow::Borrowed).or_else(|| by_when().map(|names| Cow::Owned(names.into_iter().collect())))
    }

    /// A bound on a number of the job without which the conditions cannot hold.
    pub(super) fn bound(&self) -> Option<Bound> {
        self.when.as_ref()?.predicate.bound()
    }

    pub(super) fn falls_short(&self, evaluation: &Evaluation<'_, '_>) -> bool {
        self.when.as_ref().is_some_and(|when| evaluation.falls_short(when))
    }

    /// Checks cheap conditions first and velocity last, because velocity must count only jobs that meet all other
    /// conditions.
    pub(super) fn check(
        &self,
        rule: &str,
        subject: &Subject<'_>,
        evaluation: &Evaluation<'_, '_>,
        windows: &dyn Velocity,
    ) -> RuleMatch {
        let miss =
            || self.identity_miss(subject).or_else(|| self.label_miss(subject)).or_else(|| self.payload_miss(subject));
        if !self.only_when
            && let Some(miss) = miss()
        {
            return RuleMatch::Missed(miss);
        }
        match self.when.as_ref().map(|when| evaluation.holds(when)) {
            None | Some(Ok(true)) => {}
            Some(Ok(false)) => return RuleMatch::Missed(Miss::When),
            Some(Err(error)) => return RuleMatch::Failed(error),
        }
        match self.velocity.as_ref().map(|limit| limit.exceeded(rule, subject, windows)) {
            Some((false, count)) => RuleMatch::Missed(Miss::Velocity(count)),
            None | Some((true, _)) => RuleMatch::Matched,
        }
    }

    fn identity_miss(&self, subject: &Subject<'_>) -> Option<Miss> {
        let one_of = |names: &Option<NameSet>, value: Option<&str>| {
            names.as_ref().is_none_or(|names| value.is_some_and(|value| names.contains(value)))
        };
        let topic = |globs: &Vec<Glob>| globs.iter().any(|glob| glob.matches(subject.topic));
        let any_tag = |tags: &NameSet| subject.risk_tags.iter().any(|tag| tags.contains(&**tag));
        let all_required = |names: &NameSet| names.iter().all(|name| subject.requires.contains(&**name));
        if !one_of(&self.tenants, Some(subject.tenant)) {
            Some(Miss::Tenant)
        } else if !self.topics.as_ref().is_none_or(topic) {
            Some(Miss::Topic)
        } else if !one_of(&self.capabilities, subject.capability) {
            Some(Miss::Capability)
        } else if !one_of(&self.actors, Some(subject.actor)) {
            Some(Miss::Actor)
        } else if !one_of(&self.actor_types, subject.actor_type) {
            Some(Miss::ActorType)
        } else if !self.risk_tags.as_ref().is_none_or(any_tag) {
            Some(Miss::RiskTags)
        } else if !self.requires.as_ref().is_none_or(all_required) {
            Some(Miss::Requires)
        } else {
            None
        }
    }

    fn label_miss(&self, subject: &Subject<'_>) -> Option<Miss> {
        let label = |name: &str| subject.labels.get(name).map(String::as_str);
        if !self.labels.iter().all(|(name, value)| label(name) == Some(value)) {
            return Some(Miss::Labels);
        }
        let unlisted = |(name, values): &(Box<str>, NameSet)| label(name).is_some_and(|value| !values.contains(value));
        if !self.label_not_in.is_empty() && !self.label_not_in.iter().any(unlisted) {
            return Some(Miss::LabelNotIn);
        }
        let above = |(name, limit): &(Box<str>, f64)| {
            label(name).and_then(|value| value.trim().parse::<f64>().ok()).is_some_and(|value| value > *limit)
        };
        (!self.label_threshold.is_empty() && !self.label_threshold.iter().any(above)).then_some(Miss::LabelThreshold)
    }

    fn payload_miss(&self, subject: &Subject<'_>) -> Option<Miss> {
        if self.payload_bytes_over.is_some_and(|limit| subject.payload.len() as u64 <= limit) {
            return Some(Miss::PayloadBytes);
        }
        if !self.content.patterns_hit(subject.payload) {
            return Some(Miss::Patterns);
        }
        (!self.content.scan_hits(subject.payload)).then_some(Miss::Scan)
    }
}

/// The outcome of one rule for one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RuleMatch {
    Matched,
    Missed(Miss),
    /// A condition could not be evaluated.
    Failed(String),
}

/// The first condition that did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    Tenant,
    Topic,
    Capability,
    Actor,
    ActorType,
    RiskTags,
    Requires,
    Labels,
    LabelNotIn,
    LabelThreshold,
    PayloadBytes,
    Patterns,
    Scan,
    When,
    /// The count of the velocity window.
    Velocity(u64),
}

impl Miss {
    /// The miss in words, for `subject`.
    pub(super) fn of<'a>(self, subject: &'a Subject<'a>) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self {
            Self::Tenant => write!(f, "tenant {:?} is not in tenants", subject.tenant),
            Self::Topic => write!(f, "topic {:?} matches none of topics", subject.topic),
            Self::Capability => one_of(f, "capability", "capabilities", subject.capability),
            Self::Actor => write!(f, "actor {:?} is not in actors", subject.actor),
            Self::ActorType => one_of(f, "actor type", "actor_types", subject.actor_type),
            Self::RiskTags => f.write_str("none of its risk tags is in risk_tags"),
            Self::Requires => f.write_str("it does not require all of requires"),
            Self::Labels => f.write_str("its labels do not equal labels"),
            Self::LabelNotIn => f.write_str("no label of label_not_in has a value outside of its list"),
            Self::LabelThreshold => f.write_str("no label is above label_threshold"),
            Self::PayloadBytes => write!(f, "its payload of {} bytes is not over payload_bytes_over", subject.payload.len()),
            Self::Patterns => f.write_str("its payload matches none of patterns"),
            Self::Scan => f.write_str("the scanners find nothing in its payload"),
            Self::When => f.write_str("when is false"),
            Self::Velocity(count) => write!(f, "its velocity window holds {count}, which is not over max"),
        })
    }
}

fn one_of(f: &mut fmt::Formatter<'_>, what: &str, list: &str, value: Option<&str>) -> fmt::Result {
    match value {
        Some(value) => write!(f, "{what} {value:?} is not in {list}"),
        None => write!(f, "it has no {what}, and {list} is given"),
    }
}

pub(super) fn names(node: &YamlNode, name: &str, report: &mut ConfigReport) -> Option<NameSet> {
    Some(read::texts(node, name, report)?.into_iter().map(|(text, _)| text.into()).collect())
}

pub(super) fn globs(node: &YamlNode, name: &str, report: &mut ConfigReport) -> Option<Vec<Glob>> {
    let texts = read::texts(node, name, report)?;
    Some(texts.into_iter().filter_map(|(text, at)| read::glob(text, at, name, report)).collect())
}

pub(super) fn labels(node: &YamlNode, report: &mut ConfigReport) -> Vec<(Box<str>, Box<str>)> {
    let entries = read::some_entries(node, "labels", report).unwrap_or_default();
    let value = |entry: &crate::config::yaml::YamlEntry, report: &mut ConfigReport| {
        let value = read::value(&entry.value, &format!("label {:?}", entry.key), report)?;
        Some((entry.key.as_str().into(), value.into()))
    };
    entries.iter().filter_map(|entry| value(entry, report)).collect()
}

/// Reads `label_not_in`. Its former name `label_allowlist` said the opposite of what it does: the rule holds for values that
/// are *not* listed. Stored policies have the former name, so both are read.
fn label_not_in(fields: &Fields<'_>, report: &mut ConfigReport) -> Vec<(Box<str>, NameSet)> {
    let (name, node) = match (fields.get("label_not_in"), fields.get("label_allowlist")) {
        (Some(_), Some(former)) => {
            report.refuse(former.at, "label_allowlist is the former name of label_not_in; remove it");
            return Vec::new();
        }
        (Some(node), None) => ("label_not_in", node),
        (None, Some(node)) => ("label_allowlist", node),
        (None, None) => return Vec::new(),
    };
    let entries = read::some_entries(node, name, report).unwrap_or_default();
    let listed = entries.iter().filter_map(|entry| {
        let values = names(&entry.value, &format!("the list of {:?}", entry.key), report)?;
        Some((entry.key.as_str().into(), values))
    });
    listed.collect()
}

fn thresholds(node: &YamlNode, report: &mut ConfigReport) -> Vec<(Box<str>, f64)> {
    let entries = read::some_entries(node, "label_threshold", report).unwrap_or_default();
    let limits = entries.iter().filter_map(|entry| {
        let limit = read::number(&entry.value, &format!("the limit of {:?}", entry.key), report)?;
        Some((entry.key.as_str().into(), limit))
    });
    limits.collect()
}
