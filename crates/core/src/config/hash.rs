//! Content hashes as names: equal texts have equal names.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::hex;

/// `kind:` and the hash of the text.
pub(crate) fn snapshot(kind: &str, text: &str) -> Arc<str> {
    format!("{kind}:{}", sha256(text.as_bytes())).into()
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::write(&Sha256::digest(bytes))
}
