//! The fail mode of the input policy: what happens to jobs while the kernel gives no verdict.

use super::keys;
use super::rfc3339;
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;
use crate::time::Timestamp;

/// Whether work continues without a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailMode {
    /// Jobs wait for the check.
    Closed,
    /// Jobs continue, are marked, and are judged later.
    Open,
}

pub(super) const FAIL_MODES: [(&str, FailMode); 2] = [("closed", FailMode::Closed), ("open", FailMode::Open)];

/// The `input_policy` section. It only matters with a safety kernel in another process, which may not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputPolicy {
    pub mode: FailMode,
    /// From this time on an open mode is closed.
    pub until: Option<Timestamp>,
}

impl InputPolicy {
    pub const CLOSED: Self = Self { mode: FailMode::Closed, until: None };

    /// The mode in force: an open mode closes by itself at `until`.
    pub fn fail_mode(&self, now: Timestamp) -> FailMode {
        if self.until.is_some_and(|until| now >= until) { FailMode::Closed } else { self.mode }
    }

    pub(super) fn read(node: Option<&YamlNode>, report: &mut ConfigReport) -> Self {
        let Some(fields) = node.and_then(|node| Fields::of(node, &keys::INPUT_POLICY, report)) else { return Self::CLOSED };
        let mode = fields.need("fail_mode", report).and_then(|node| read::choice(node, "fail_mode", &FAIL_MODES, report));
        let until = fields.get("until").and_then(|node| time(node, "until", report));
        if let (Some(FailMode::Closed), Some(at)) = (mode, fields.place("until")) {
            report.refuse(at, "until has an effect only with fail_mode open; remove it or open the mode");
        }
        Self { mode: mode.unwrap_or(FailMode::Closed), until }
    }
}

/// A time in RFC 3339.
pub(super) fn time(node: &YamlNode, name: &str, report: &mut ConfigReport) -> Option<Timestamp> {
    let text = read::text(node, name, report)?;
    let moment = rfc3339::parse(text);
    if moment.is_none() {
        report.refuse(node.at, format!("{name} must be a time such as 2030-01-31T12:00:00Z, not {text:?}"));
    }
    moment
}
