//! Verdicts of the output policy on results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::request::Json;
use crate::scan::Finding;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputDecision {
    Allow,
    Quarantine,
    /// Treated like quarantine; the policy's own word is kept for the record.
    Deny,
    Redact,
}

impl OutputDecision {
    pub const ALL: [Self; 4] = [Self::Allow, Self::Quarantine, Self::Deny, Self::Redact];

    /// Whether the result is not exposed.
    pub const fn withholds(self) -> bool {
        matches!(self, Self::Quarantine | Self::Deny)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Quarantine => "quarantine",
            Self::Deny => "deny",
            Self::Redact => "redact",
        }
    }
}

/// A decision about one result, with its grounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputVerdict {
    pub decision: OutputDecision,
    pub rule: Arc<str>,
    pub reason: Arc<str>,
    pub snapshot: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The copy that may be exposed, for `redact`. Without it the result is quarantined.
    #[serde(skip)]
    pub redacted: Option<Json>,
}

/// The outcome of the metadata check, made before the commit that ends the attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputStep {
    /// No rule applies to this result.
    #[default]
    Pass,
    /// The content must be scanned. The result is exposed meanwhile, unless it is held.
    Scan {
        hold: bool,
    },
    Decided(Arc<OutputVerdict>),
    /// No scanner answered, and the fail mode lets the result out.
    Unchecked {
        why: Arc<str>,
    },
}
