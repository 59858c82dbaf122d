//! Loads timeouts from the text of `timeouts.yaml`, or reports every error in it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Timeouts, TopicRules, TopicTimeouts, keys};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlNode};
use crate::config::{ConfigError, ConfigReport, TopicMap, snapshot};
use crate::limits::SPAN_MS_MAX;
use crate::retry::read::{RETRY, settings as read_settings};

/// A shorter timeout would declare attempts lost that are still on their way to the worker.
const DISPATCH_MS: RangeInclusive<u64> = 1_000..=SPAN_MS_MAX;
const RUNNING_MS: RangeInclusive<u64> = 1..=SPAN_MS_MAX;

impl Timeouts {
    /// Reads a timeouts file. `file` is its name in error messages.
    pub fn load(file: &str, text: &str) -> Result<Self, Vec<ConfigError>> {
        let mut report = ConfigReport::new(file);
        let timeouts = yaml::parse(text, &mut report).and_then(|root| read_timeouts(&root, text, &mut report));
        match timeouts {
            Some(timeouts) if report.is_clean() => Ok(timeouts),
            _ => Err(report.into_errors()),
        }
    }
}

fn read_timeouts(root: &YamlNode, text: &str, report: &mut ConfigReport) -> Option<Timeouts> {
    read::some_entries(root, keys::FILE.name, report)?;
    let fields = Fields::of(root, &keys::FILE, report)?;
    let builtin = TopicRules::default();
    let defaults = fields.get("defaults").and_then(|node| rules(node, "defaults", &builtin, report)).unwrap_or(builtin);
    let topics = fields.get("topics").and_then(|node| {
        TopicMap::read(node, "topics", report, |entry, report| {
            rules(&entry.value, &format!("the entry of {:?}", entry.key), &defaults, report)
        })
    });
    let workflows = fields.get("workflows").and_then(|node| {
        TopicMap::read(node, "workflows", report, |entry, report| {
            let fields = Fields::of(&entry.value, &keys::WORKFLOW, report)?;
            let running = fields.need("running", report)?;
            read::span(running, "running", RUNNING_MS, report).map(Duration::from_millis)
        })
    });
    let (topics, workflows) = (topics.unwrap_or_default(), workflows.unwrap_or_default());
    Some(Timeouts { snapshot: snapshot("timeouts", text), defaults, topics, workflows })
}

/// A setting that is left out keeps the value of `otherwise`.
fn rules(node: &YamlNode, name: &str, otherwise: &TopicRules, report: &mut ConfigReport) -> Option<TopicRules> {
    read::some_entries(node, name, report)?;
    let fields = Fields::of(node, &keys::TIMEOUTS, report)?;
    let mut span = |key: &str, range: RangeInclusive<u64>| {
        fields.get(key).and_then(|node| read::span(node, key, range, report)).map(Duration::from_millis)
    };
    let timeouts = TopicTimeouts {
        dispatch: span("dispatch", DISPATCH_MS).unwrap_or(otherwise.timeouts.dispatch),
        running: span("running", RUNNING_MS).unwrap_or(otherwise.timeouts.running),
    };
    let retry = fields.get("retry").and_then(|node| read_settings(node, &RETRY, report)).unwrap_or_default();
    Some(TopicRules { timeouts, retry: retry.or(&otherwise.retry) })
}
