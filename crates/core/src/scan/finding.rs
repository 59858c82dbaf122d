//! What a scan reports, and what it keeps to itself.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Bytes of a finding's hash: enough to tell findings apart, half of what would be needed to confirm a guess offline.
const HASH_BYTES: usize = 16;

/// Ordered by how much it matters when two findings share a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    Secrets,
    Pii,
    Injection,
    Pattern,
}

impl FindingKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::Pii => "pii",
            Self::Injection => "injection",
            Self::Pattern => "pattern",
        }
    }
}

/// One place in a text. It never holds the text itself, so it may be stored, logged and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    pub rule: Arc<str>,
    /// In bytes of the scanned text.
    pub offset: usize,
    pub length: usize,
    /// Equal for equal matched text under one key, in hex.
    pub hash: String,
}

impl Finding {
    pub const fn end(&self) -> usize {
        self.offset + self.length
    }
}

/// All that one scan found, by offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanReport {
    pub findings: Vec<Finding>,
    /// There was more than a report holds. Redacting by it would leave the rest in place: hold the text back instead.
    pub truncated: bool,
}

/// The key of the hashes. Without one, a hash of a card number or a weak password could be looked up in a table.
#[derive(Clone)]
pub struct FindingKey([u8; 32]);

impl FindingKey {
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Two nested hashes, both keyed: a single keyed prefix could be extended by whoever knows one digest.
    pub(super) fn hash(&self, matched: &str) -> String {
        let inner = Sha256::new().chain_update(self.0).chain_update(matched).finalize();
        let outer = Sha256::new().chain_update(self.0).chain_update(inner).finalize();
        crate::hex::write(&outer[..HASH_BYTES])
    }
}

impl fmt::Debug for FindingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FindingKey(hidden)")
    }
}
