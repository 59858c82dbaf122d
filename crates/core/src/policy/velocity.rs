//! Velocity conditions: how often jobs arrive, counted in windows outside of the policy.

use std::time::Duration;

use super::keys;
use super::subject::Subject;
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;
use crate::time::Timestamp;

/// The most jobs that a window may allow, since it keeps one id for each.
const MAX_JOBS: u64 = 100_000;
const SECOND_MS: u64 = 1_000;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// Counts distinct jobs in sliding windows.
///
/// Called only for jobs that meet every other condition of the rule. Counting one job twice changes nothing, so that a
/// retry, or a repeated call after a crash, does not count again.
pub trait Velocity {
    /// Adds the job to the window and returns its position, counted from the oldest job that is still inside.
    fn count(&self, window: &VelocityWindow<'_>) -> u64;
}

/// One window of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VelocityWindow<'a> {
    pub rule: &'a str,
    /// A JSON list of the values that the jobs of the window share.
    pub key: &'a str,
    pub job_id: &'a str,
    pub now: Timestamp,
    pub span: Duration,
}

/// The `velocity` condition: true when the window holds more than `max` jobs.
#[derive(Clone, Debug)]
pub(super) struct VelocityLimit {
    pub(super) max: u64,
    pub(super) span: Duration,
    key: Vec<KeyPart>,
}

#[derive(Clone, Debug)]
enum KeyPart {
    Tenant,
    Topic,
    Actor,
    ActorType,
    Capability,
    Label(Box<str>),
}

const KEY_PARTS: [&str; 5] = ["tenant", "topic", "actor", "actor_type", "capability"];

impl VelocityLimit {
    pub(super) fn read(node: &YamlNode, report: &mut ConfigReport) -> Option<Self> {
        let fields = Fields::of(node, &keys::VELOCITY, report)?;
        let max = fields.need("max", report).and_then(|node| read::whole(node, "max", 1..=MAX_JOBS, report));
        let span = fields.need("window", report).and_then(|node| read::span(node, "window", SECOND_MS..=DAY_MS, report));
        let key = match fields.get("key") {
            Some(node) => read_key(node, report),
            None => Some(Vec::new()),
        };
        Some(Self { max: max?, span: Duration::from_millis(span?), key: key? })
    }

    /// Whether the window exceeds its limit once the job is counted, and the count.
    pub(super) fn exceeded(&self, rule: &str, subject: &Subject<'_>, windows: &dyn Velocity) -> (bool, u64) {
        let key = self.key(subject);
        let window = VelocityWindow { rule, key: &key, job_id: subject.job_id, now: subject.now, span: self.span };
        let count = windows.count(&window);
        (count > self.max, count)
    }

    /// JSON, because labels may contain any separator character.
    fn key(&self, subject: &Subject<'_>) -> String {
        let parts: Vec<Option<&str>> = self
            .key
            .iter()
            .map(|part| match part {
                KeyPart::Tenant => Some(subject.tenant),
                KeyPart::Topic => Some(subject.topic),
                KeyPart::Actor => Some(subject.actor),
                KeyPart::ActorType => subject.actor_type,
                KeyPart::Capability => subject.capability,
                KeyPart::Label(name) => subject.labels.get(&**name).map(String::as_str),
            })
            .collect();
        serde_json::Value::from_iter(parts).to_string()
    }
}

fn read_key(node: &YamlNode, report: &mut ConfigReport) -> Option<Vec<KeyPart>> {
    let texts = read::texts(node, "key", report)?;
    let mut parts = Vec::new();
    for (text, at) in texts {
        parts.push(match text {
            "tenant" => KeyPart::Tenant,
            "topic" => KeyPart::Topic,
            "actor" => KeyPart::Actor,
            "actor_type" => KeyPart::ActorType,
            "capability" => KeyPart::Capability,
            other => match other.strip_prefix("labels.").filter(|name| !name.is_empty()) {
                Some(label) => KeyPart::Label(label.into()),
                None => {
                    let message = format!("unknown velocity key {other:?}; use {} or labels.<name>", KEY_PARTS.join(", "));
                    report.unknown(at, message, other, KEY_PARTS);
                    return None;
                }
            },
        });
    }
    Some(parts)
}
