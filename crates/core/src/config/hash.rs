//! Names for texts: what is the same has the same name.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::hex;

/// `kind:` and the hash of the text.
pub(crate) fn snapshot(kind: &str, text: &str) -> Arc<str> {
    format!("{kind}:{}", sha256(text.as_bytes())).into()
}

/// In hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::write(&Sha256::digest(bytes))
}
