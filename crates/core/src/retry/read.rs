//! Reads retry settings from configuration files.

use std::ops::RangeInclusive;

use super::RetrySettings;
use super::settings::{CODES_MAX, FACTOR, JITTER, LOSSES, SPAN_MS};
use crate::config::read::{self, Fields};
use crate::config::yaml::YamlNode;
use crate::config::{ConfigReport, Section};
use crate::limits::ATTEMPTS_MAX;

/// The keys for a topic and for all topics.
pub(crate) static RETRY: Section = Section {
    name: "retry",
    keys: &["attempts", "losses", "base", "factor", "cap", "jitter_percent", "total", "non_retryable"],
};
/// The keys for a job, which has `max_attempts` beside the section.
pub(crate) static RETRY_OF_JOB: Section =
    Section { name: "retry", keys: &["losses", "base", "factor", "cap", "jitter_percent", "total", "non_retryable"] };

/// Reads a section `retry`, in durations instead of milliseconds.
pub(crate) fn settings(node: &YamlNode, section: &'static Section, report: &mut ConfigReport) -> Option<RetrySettings> {
    read::some_entries(node, section.name, report)?;
    let fields = Fields::of(node, section, report)?;
    let mut span = |key: &str| fields.get(key).and_then(|node| read::span(node, key, SPAN_MS, report));
    let (base_ms, cap_ms, total_ms) = (span("base"), span("cap"), span("total"));
    let mut number = |key: &str, range: RangeInclusive<u32>| {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        let number = fields.get(key).and_then(|node| read::whole(node, key, wide, report));
        number.and_then(|number| u32::try_from(number).ok())
    };
    let attempts = if section.keys.contains(&"attempts") { number("attempts", 1..=ATTEMPTS_MAX) } else { None };
    Some(RetrySettings {
        attempts,
        losses: number("losses", LOSSES),
        jitter_percent: number("jitter_percent", JITTER),
        base_ms,
        cap_ms,
        total_ms,
        factor_percent: fields.get("factor").and_then(|node| factor(node, report)),
        non_retryable: fields.get("non_retryable").and_then(|node| codes(node, report)),
    })
}

/// Reads a factor such as 2 or 1.5.
fn factor(node: &YamlNode, report: &mut ConfigReport) -> Option<u32> {
    let percent = (read::number(node, "factor", report)? * 100.0).round();
    let (least, most) = (f64::from(*FACTOR.start()), f64::from(*FACTOR.end()));
    if !(least..=most).contains(&percent) {
        report.refuse(node.at, format!("factor must be between {} and {}", least / 100.0, most / 100.0));
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number within the bounds above")]
    Some(percent as u32)
}

fn codes(node: &YamlNode, report: &mut ConfigReport) -> Option<std::collections::BTreeSet<std::sync::Arc<str>>> {
    let texts = read::texts(node, "non_retryable", report)?;
    read::distinct(&texts, "non_retryable", report);
    if texts.len() > CODES_MAX {
        report.refuse(node.at, format!("non_retryable must have at most {CODES_MAX} entries"));
    }
    Some(texts.into_iter().filter_map(|(text, at)| read::name(text, "code", at, report)).map(Into::into).collect())
}
