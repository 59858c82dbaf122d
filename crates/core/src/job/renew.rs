//! A new timeline: the Store was brought back to an earlier state, and what happened since then happened elsewhere.
//!
//! Workers of the other timeline may live on. They hold tokens that were minted before the earlier state and given out after it,
//! and the same tokens would be given out again. So every token is made anew: whatever those workers report is of an attempt that
//! no longer counts, and no worker holds the token of another.

use sha2::{Digest, Sha256};

use super::Life;
use crate::hex;
use crate::ids::AttemptToken;

impl Life {
    /// The commit moves the job's version too, so that a step decided before does not apply.
    pub fn renew_tokens(&mut self, salt: &[u8; 16]) {
        self.attempt.token = other(&self.attempt.token, salt);
        for gone in self.lost.iter_mut().chain(&mut self.taken).chain(&mut self.late) {
            gone.token = other(&gone.token, salt);
        }
    }
}

/// As unguessable as the salt is.
fn other(token: &AttemptToken, salt: &[u8; 16]) -> AttemptToken {
    let digest = Sha256::new().chain_update(salt).chain_update(token.as_str()).finalize();
    AttemptToken::new(hex::write(&digest[..16]))
}
