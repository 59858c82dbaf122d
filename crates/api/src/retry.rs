//! How attempts are tried again: what clients ask for, and what holds once every default is filled in.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::retry::{self as core, RetrySettings};
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ToWire;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRetryPolicy)]
pub struct RetryBody {
    /// Delay after the first failure.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    base_ms: Option<u64>,
    /// How many hundredths of the delay before it each delay is; 200 doubles it.
    #[schema(minimum = 100, maximum = 1000)]
    factor_percent: Option<u32>,
    /// Longest delay.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    cap_ms: Option<u64>,
    /// Up to how many hundredths of a delay are added to it at random.
    #[schema(maximum = 100)]
    jitter_percent: Option<u32>,
    /// No retry is planned for later than this after the submit or a replay.
    #[schema(minimum = 1, maximum = 31622400000_i64)]
    total_ms: Option<u64>,
    /// Codes of failures, of handlers or of the platform (execution_timeout), that are not tried again.
    #[schema(max_items = 64)]
    non_retryable: Option<BTreeSet<String>>,
    /// Attempts that may be lost by workers, servers and networks; one more ends the job.
    #[schema(maximum = 1000)]
    losses: Option<u32>,
}

impl From<RetryBody> for RetrySettings {
    fn from(body: RetryBody) -> Self {
        Self {
            attempts: None,
            losses: body.losses,
            base_ms: body.base_ms,
            factor_percent: body.factor_percent,
            cap_ms: body.cap_ms,
            jitter_percent: body.jitter_percent,
            total_ms: body.total_ms,
            non_retryable: body.non_retryable.map(|codes| codes.into_iter().map(Into::into).collect()),
        }
    }
}

impl From<v1::RetryPolicy> for RetryBody {
    /// No codes are as good as none said: proto3 has no absent list.
    fn from(wire: v1::RetryPolicy) -> Self {
        let codes = wire.non_retryable;
        Self {
            base_ms: wire.base_ms,
            factor_percent: wire.factor_percent,
            cap_ms: wire.cap_ms,
            jitter_percent: wire.jitter_percent,
            total_ms: wire.total_ms,
            non_retryable: (!codes.is_empty()).then(|| codes.into_iter().collect()),
            losses: wire.losses,
        }
    }
}

/// The defaults of the topic and of the installation filled in. How many attempts may fail is `max_attempts`.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct RetryPolicy {
    /// Delay after the first failure.
    pub base_ms: u64,
    /// How many hundredths of the delay before it each delay is; 200 doubles it.
    pub factor_percent: u32,
    /// Longest delay.
    pub cap_ms: u64,
    /// Up to how many hundredths of a delay are added to it at random.
    pub jitter_percent: u32,
    /// No retry is planned for later than this after the submit or the replay; absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<u64>,
    /// Codes of failures that are not tried again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
    /// Attempts that may be lost; one more ends the job.
    pub losses: u32,
}

impl ToWire for core::RetryPolicy {
    type Wire = v1::RetryPolicy;

    fn to_wire(&self) -> v1::RetryPolicy {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        v1::RetryPolicy {
            base_ms: Some(millis(self.base)),
            factor_percent: Some(self.factor_percent),
            cap_ms: Some(millis(self.cap)),
            jitter_percent: Some(self.jitter_percent),
            total_ms: self.total.map(millis),
            non_retryable: self.non_retryable.iter().map(ToString::to_string).collect(),
            losses: Some(self.losses),
        }
    }
}

impl From<v1::RetryPolicy> for RetryPolicy {
    fn from(wire: v1::RetryPolicy) -> Self {
        Self {
            base_ms: wire.base_ms.unwrap_or_default(),
            factor_percent: wire.factor_percent.unwrap_or_default(),
            cap_ms: wire.cap_ms.unwrap_or_default(),
            jitter_percent: wire.jitter_percent.unwrap_or_default(),
            total_ms: wire.total_ms,
            non_retryable: wire.non_retryable,
            losses: wire.losses.unwrap_or_default(),
        }
    }
}
