//! How attempts are tried again, from and to the wire.

use std::time::Duration;

use lockgate_core::retry::{RetryPolicy, RetrySettings};
use lockgate_proto::v1;

use crate::ToWire;

/// What a client says. No codes are as good as none said: proto3 has no absent list.
pub(crate) fn settings(wire: v1::RetryPolicy) -> RetrySettings {
    let codes = wire.non_retryable;
    RetrySettings {
        attempts: None,
        losses: wire.losses,
        base_ms: wire.base_ms,
        factor_percent: wire.factor_percent,
        cap_ms: wire.cap_ms,
        jitter_percent: wire.jitter_percent,
        total_ms: wire.total_ms,
        non_retryable: (!codes.is_empty()).then(|| codes.into_iter().map(Into::into).collect()),
    }
}

impl ToWire for RetryPolicy {
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
