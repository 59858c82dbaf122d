//! The effective retry policy of one job, with every setting resolved.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Jitter, LOSS_SPREAD, RetrySettings};
use crate::limits::Limits;
use crate::time::Timestamp;

/// By default up to half of a delay is added to it at random.
const JITTER_PERCENT: u32 = 50;
/// By default each delay is twice the one before.
const FACTOR_PERCENT: u32 = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts that may fail, including the last one.
    pub attempts: u32,
    /// Attempts that may be lost; one more ends the job.
    pub losses: u32,
    pub base: Duration,
    pub factor_percent: u32,
    pub cap: Duration,
    pub jitter_percent: u32,
    /// Measured from the start of the life; no retry is planned for later.
    pub total: Option<Duration>,
    pub non_retryable: BTreeSet<Arc<str>>,
}

impl RetryPolicy {
    /// The policy without any settings.
    pub fn of(limits: &Limits) -> Self {
        Self {
            attempts: limits.attempts_default,
            losses: limits.infra_failures_max,
            base: limits.backoff_base,
            factor_percent: FACTOR_PERCENT,
            cap: limits.backoff_max,
            jitter_percent: JITTER_PERCENT,
            total: None,
            non_retryable: BTreeSet::new(),
        }
    }

    /// This policy with `said` overriding it field by field.
    #[must_use]
    pub fn with(self, said: &RetrySettings) -> Self {
        let span = |millis: Option<u64>, otherwise| millis.map_or(otherwise, Duration::from_millis);
        Self {
            attempts: said.attempts.unwrap_or(self.attempts),
            losses: said.losses.unwrap_or(self.losses),
            base: span(said.base_ms, self.base),
            factor_percent: said.factor_percent.unwrap_or(self.factor_percent),
            cap: span(said.cap_ms, self.cap),
            jitter_percent: said.jitter_percent.unwrap_or(self.jitter_percent),
            total: said.total_ms.map(Duration::from_millis).or(self.total),
            non_retryable: said.non_retryable.clone().unwrap_or(self.non_retryable),
        }
    }

    /// The delay after the `failures`-th failure of the job's own work: base · factorⁿ⁻¹ plus jitter, capped.
    pub fn backoff(&self, failures: u32, jitter: Jitter) -> Duration {
        let delay = self.grown(failures.saturating_sub(1));
        (delay + jitter.up_to(delay.mul_f64(f64::from(self.jitter_percent) / 100.0))).min(self.cap)
    }

    /// In whole milliseconds, so that a factor of 1 changes nothing.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age are exact in a double")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the cap")]
    fn grown(&self, steps: u32) -> Duration {
        let factor = f64::from(self.factor_percent) / 100.0;
        let (base, cap) = (self.base.as_millis() as f64, self.cap.as_millis() as f64);
        // A power that overflows is infinite, and the cap applies to it too.
        let grown = (base * factor.powi(i32::try_from(steps).unwrap_or(i32::MAX))).min(cap);
        Duration::from_millis(grown.round() as u64)
    }

    /// The delay after the platform lost an attempt. The first loss retries almost at once, or after `turn` where many
    /// attempts were lost at once. An attempt that is lost again and again backs off like any failure, measured from its
    /// turn.
    pub fn infra_backoff(&self, losses: u32, turn: Duration, jitter: Jitter) -> Duration {
        match losses {
            0 | 1 if turn < LOSS_SPREAD => jitter.up_to(LOSS_SPREAD),
            0 | 1 => turn,
            again => turn + self.backoff(again - 1, jitter),
        }
    }

    /// Whether an attempt may start at `due_at` in a life that began at `began_at`.
    pub fn in_time(&self, began_at: Timestamp, due_at: Timestamp) -> bool {
        self.total.is_none_or(|total| due_at <= began_at + total)
    }

    pub fn retries(&self, code: &str) -> bool {
        !self.non_retryable.contains(code)
    }
}
