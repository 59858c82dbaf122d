//! Names for the texts of configuration files.

use std::sync::Arc;

use sha2::{Digest, Sha256};

/// `kind:` and the hash of the text: equal text, equal snapshot.
pub(crate) fn snapshot(kind: &str, text: &str) -> Arc<str> {
    let hash: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}:{hash}").into()
}
