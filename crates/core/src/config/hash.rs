//! Names for texts: what is the same has the same name.

use std::sync::Arc;

use sha2::{Digest, Sha256};

/// `kind:` and the hash of the text.
pub(crate) fn snapshot(kind: &str, text: &str) -> Arc<str> {
    format!("{kind}:{}", sha256(text.as_bytes())).into()
}

/// In hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
