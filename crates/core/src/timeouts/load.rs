//! From the text of `timeouts.yaml` to timeouts, or to everything that is wrong with it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Timeouts, TopicTimeouts, keys};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlNode};
use crate::config::{ConfigError, ConfigReport, TopicMap, snapshot};
use crate::limits::SPAN_MS_MAX;

/// A shorter one would call attempts lost that are merely on their way to the worker.
const DISPATCH_MS: RangeInclusive<u64> = 1_000..=SPAN_MS_MAX;
const RUNNING_MS: RangeInclusive<u64> = 1..=SPAN_MS_MAX;

impl Timeouts {
    /// Reads a timeouts file. `file` is the name that errors show.
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
    let builtin = TopicTimeouts::default();
    let defaults = fields.get("defaults").and_then(|node| timeouts(node, "defaults", builtin, report)).unwrap_or(builtin);
    let topics = fields.get("topics").and_then(|node| {
        TopicMap::read(node, "topics", report, |entry, report| {
            timeouts(&entry.value, &format!("the entry of {:?}", entry.key), defaults, report)
        })
    });
    Some(Timeouts { snapshot: snapshot("timeouts", text), defaults, topics: topics.unwrap_or_default() })
}

/// What is left out is as in `otherwise`.
fn timeouts(node: &YamlNode, name: &str, otherwise: TopicTimeouts, report: &mut ConfigReport) -> Option<TopicTimeouts> {
    read::some_entries(node, name, report)?;
    let fields = Fields::of(node, &keys::TIMEOUTS, report)?;
    let mut span = |key: &str, range: RangeInclusive<u64>| {
        fields.get(key).and_then(|node| read::span(node, key, range, report)).map(Duration::from_millis)
    };
    Some(TopicTimeouts {
        dispatch: span("dispatch", DISPATCH_MS).unwrap_or(otherwise.dispatch),
        running: span("running", RUNNING_MS).unwrap_or(otherwise.running),
    })
}
