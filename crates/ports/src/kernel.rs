//! Verdicts on attempts.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::request::JobRequest;
use lockgate_core::verdict::Judgement;

#[async_trait]
pub trait Kernel: Send + Sync {
    /// One judgement per request, in order. Failing to decide is an answer too, never an error.
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement>;

    /// The policy in force. A verdict made under another one is asked for again before dispatch.
    fn snapshot(&self) -> Arc<str>;
}
