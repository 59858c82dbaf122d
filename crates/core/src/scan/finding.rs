//! The findings of a scan, without the text that was found.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Bytes of a finding's hash: enough to tell findings apart, and half of what would confirm a guess offline.
const HASH_BYTES: usize = 16;

/// Ordered by importance, which decides when two findings overlap.
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
    /// An offset in bytes of the scanned text.
    pub offset: usize,
    pub length: usize,
    /// Equal for equal matched texts under one key, in hex.
    pub hash: String,
}

impl Finding {
    pub const fn end(&self) -> usize {
        self.offset + self.length
    }
}

/// All findings of one scan, by offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanReport {
    pub findings: Vec<Finding>,
    /// The text had more findings than a report holds. Redacting by this report would leave the others in place: withhold
    /// the text instead.
    pub truncated: bool,
}

/// The key of the hashes. Without a key, the hash of a card number or a weak password could be looked up in a table.
#[derive(Clone)]
pub struct FindingKey([u8; 32]);

impl FindingKey {
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Two nested keyed hashes: a single hash with a key prefix could be extended without the key (length extension).
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
