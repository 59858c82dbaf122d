//! Renews attempt tokens after the Store was restored to an earlier state, and a second timeline begins.
//!
//! Workers of the first timeline may live on. They hold tokens minted before the restored state and handed out after it, and
//! the restored Store would hand out these tokens again. So every token is replaced: whatever those workers report is about
//! an attempt that no longer counts, and no two workers hold equal tokens.

use sha2::{Digest, Sha256};

use super::Life;
use crate::hex;
use crate::ids::AttemptToken;

impl Life {
    /// The commit also raises the job's version, so that a decision made before the restore does not apply.
    pub fn renew_tokens(&mut self, salt: &[u8; 16]) {
        self.attempt.token = other(&self.attempt.token, salt);
        for gone in self.lost.iter_mut().chain(&mut self.taken).chain(&mut self.late) {
            gone.token = other(&gone.token, salt);
        }
    }
}

/// Derives a token that is as hard to guess as the salt.
fn other(token: &AttemptToken, salt: &[u8; 16]) -> AttemptToken {
    let digest = Sha256::new().chain_update(salt).chain_update(token.as_str()).finalize();
    AttemptToken::new(hex::write(&digest[..16]))
}
