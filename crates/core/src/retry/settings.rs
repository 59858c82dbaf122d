//! Retry settings of an installation, a topic or a job. A field that a later one leaves out is taken from the earlier one.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::check_name;
use crate::limits::{ATTEMPTS_MAX, ENTRIES_MAX, SPAN_MS_MAX};
use crate::request::FieldError;

/// A longer list was not chosen code by code.
pub(super) const CODES_MAX: usize = ENTRIES_MAX;
pub(super) const SPAN_MS: RangeInclusive<u64> = 1..=SPAN_MS_MAX;
/// In percent: from equal delays to ten times as long each time.
pub(super) const FACTOR: RangeInclusive<u32> = 100..=1_000;
pub(super) const JITTER: RangeInclusive<u32> = 0..=100;
pub(super) const LOSSES: RangeInclusive<u32> = 0..=ATTEMPTS_MAX;

/// An absent field leaves the setting to others. The settings are part of stored requests, so unknown fields of newer
/// versions are ignored here; the APIs refuse unknown fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetrySettings {
    /// Attempts that may fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Attempts that may be lost by workers, servers and networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<u32>,
    /// The delay after the first failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_ms: Option<u64>,
    /// How much longer each delay is than the one before it, in percent. An integer, so that equal settings compare as
    /// equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor_percent: Option<u32>,
    /// The longest delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_ms: Option<u64>,
    /// The largest random addition to a delay, in percent of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_percent: Option<u32>,
    /// No retry is planned for later than this after the submit or the replay. It may start later, because it may wait for a
    /// worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<u64>,
    /// Error codes of handlers and of the platform after which no attempt follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_retryable: Option<BTreeSet<Arc<str>>>,
}

impl RetrySettings {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These settings, with absent fields taken from `others`.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        Self {
            attempts: self.attempts.or(others.attempts),
            losses: self.losses.or(others.losses),
            base_ms: self.base_ms.or(others.base_ms),
            factor_percent: self.factor_percent.or(others.factor_percent),
            cap_ms: self.cap_ms.or(others.cap_ms),
            jitter_percent: self.jitter_percent.or(others.jitter_percent),
            total_ms: self.total_ms.or(others.total_ms),
            non_retryable: self.non_retryable.or_else(|| others.non_retryable.clone()),
        }
    }

    /// Every field that is out of bounds.
    pub(crate) fn refusals(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut within = |name: &str, value: Option<u64>, range: RangeInclusive<u64>| {
            if value.is_some_and(|value| !range.contains(&value)) {
                let text = format!("must be between {} and {}", range.start(), range.end());
                errors.push(FieldError::new(format!("retry.{name}"), text));
            }
        };
        let wide = |range: RangeInclusive<u32>| u64::from(*range.start())..=u64::from(*range.end());
        within("attempts", self.attempts.map(u64::from), 1..=u64::from(ATTEMPTS_MAX));
        within("losses", self.losses.map(u64::from), wide(LOSSES));
        within("base_ms", self.base_ms, SPAN_MS);
        within("factor_percent", self.factor_percent.map(u64::from), wide(FACTOR));
        within("cap_ms", self.cap_ms, SPAN_MS);
        within("jitter_percent", self.jitter_percent.map(u64::from), wide(JITTER));
        within("total_ms", self.total_ms, SPAN_MS);
        let codes = self.non_retryable.iter().flatten();
        if codes.clone().count() > CODES_MAX {
            errors.push(FieldError::new("retry.non_retryable", format_args!("must have at most {CODES_MAX} entries")));
        }
        if let Some(Err(error)) = codes.map(|code| check_name(code)).find(Result::is_err) {
            errors.push(FieldError::new("retry.non_retryable", error));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_out_of_bounds_is_named() {
        let settings = RetrySettings {
            attempts: Some(0),
            losses: Some(ATTEMPTS_MAX + 1),
            base_ms: Some(0),
            factor_percent: Some(99),
            cap_ms: Some(SPAN_MS_MAX + 1),
            jitter_percent: Some(101),
            total_ms: Some(0),
            non_retryable: Some(["a b".into()].into()),
        };
        let fields: Vec<String> = settings.refusals().into_iter().map(|error| error.field).collect();
        let expected =
            ["attempts", "losses", "base_ms", "factor_percent", "cap_ms", "jitter_percent", "total_ms", "non_retryable"];
        assert_eq!(fields, expected.map(|name| format!("retry.{name}")));
        assert_eq!(RetrySettings { losses: Some(0), jitter_percent: Some(0), ..RetrySettings::default() }.refusals(), []);
    }

    #[test]
    fn what_is_left_out_comes_from_the_others() {
        let topic = RetrySettings { base_ms: Some(5), cap_ms: Some(7), ..RetrySettings::default() };
        let job = RetrySettings { base_ms: Some(1), losses: Some(0), ..RetrySettings::default() };
        let both = job.or(&topic);
        assert_eq!((both.base_ms, both.cap_ms, both.losses, both.total_ms), (Some(1), Some(7), Some(0), None));
    }

    #[test]
    fn what_says_nothing_is_written_as_nothing() {
        assert_eq!(serde_json::to_string(&RetrySettings::default()).ok().as_deref(), Some("{}"));
    }
}
