//! How attempts of a job are tried again.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::retry::RetryPolicy;
use serde::Serialize;
use utoipa::ToSchema;

/// The defaults of the topic and of the installation filled in. How many attempts may fail is `max_attempts`.
#[derive(Serialize, ToSchema)]
#[schema(as = RetryPolicy)]
pub(in crate::rest) struct RetryView {
    /// Delay after the first failure.
    base_ms: u64,
    /// How many hundredths of the delay before it each delay is; 200 doubles it.
    factor_percent: u32,
    /// Longest delay.
    cap_ms: u64,
    /// Up to how many hundredths of a delay are added to it at random.
    jitter_percent: u32,
    /// No attempt begins later than this after the submit or the replay; absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_ms: Option<u64>,
    /// Codes of failures that are not tried again.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    non_retryable: BTreeSet<String>,
    /// Attempts that may be lost; one more ends the job.
    losses: u32,
}

impl From<&RetryPolicy> for RetryView {
    fn from(policy: &RetryPolicy) -> Self {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self {
            base_ms: millis(policy.base),
            factor_percent: policy.factor_percent,
            cap_ms: millis(policy.cap),
            jitter_percent: policy.jitter_percent,
            total_ms: policy.total.map(millis),
            non_retryable: policy.non_retryable.iter().map(ToString::to_string).collect(),
            losses: policy.losses,
        }
    }
}
