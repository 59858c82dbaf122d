//! What the kernel said about one attempt.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The five answers of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny,
    RequireApproval,
    Throttle,
    AllowWithConstraints,
}

/// A decision with its grounds, stored with the attempt it was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    /// The rule that decided.
    pub rule: Arc<str>,
    pub reason: Arc<str>,
    /// The policy snapshot it was made under; an older one is judged again before dispatch.
    pub snapshot: Arc<str>,
}

/// The answer for one attempt, or the fact that none could be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    Decided(Arc<Verdict>),
    /// The kernel did not answer. Fail closed: the job waits.
    Unavailable,
}
