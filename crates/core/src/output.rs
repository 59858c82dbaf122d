//! What policy says about a result.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::request::Json;
use crate::scan::Finding;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputDecision {
    Allow,
    Quarantine,
    /// Quarantine by another name, kept for the record.
    Deny,
    Redact,
}

impl OutputDecision {
    pub const ALL: [Self; 4] = [Self::Allow, Self::Quarantine, Self::Deny, Self::Redact];

    /// Whether nothing comes out.
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
    /// The copy that may come out, for `redact`. Without one the result is quarantined.
    #[serde(skip)]
    pub redacted: Option<Json>,
}

/// What the check of the metadata says, before the commit that ends the attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputStep {
    /// No rule wants to see this result.
    #[default]
    Pass,
    /// The content must be scanned. Until then the result is out, unless it is held.
    Scan {
        hold: bool,
    },
    Decided(Arc<OutputVerdict>),
    /// Nobody could check it, and the fail mode lets it out.
    Unchecked {
        why: Arc<str>,
    },
}
