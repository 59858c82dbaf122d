//! API keys: `lgk_<id>_<secret>`, both in hex. A key is looked up by its id and verified by its secret.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{CredentialId, CredentialKind};
use crate::hex;

/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;
const ID_BYTES: usize = 8;
const PREFIX: &str = "lgk_";

/// A key as its owner holds it. It is shown once and never stored, and its `Debug` hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: CredentialId,
    secret: [u8; SECRET_BYTES],
}

/// The text is not an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an API key: those look like lgk_<16 digits>_<64 digits>")]
pub struct KeyError;

/// The id of an installation's first key: a fixed id, so that there can be only one.
const FIRST: [u8; ID_BYTES] = [0; ID_BYTES];

impl ApiKey {
    /// The number of random bytes that [`ApiKey::new`] takes.
    pub const RANDOM_BYTES: usize = ID_BYTES + SECRET_BYTES;

    /// Makes a key from random bytes.
    pub fn new(random: [u8; Self::RANDOM_BYTES]) -> Self {
        let (id, rest) = random.split_at(ID_BYTES);
        let mut secret = [0; SECRET_BYTES];
        secret.copy_from_slice(rest);
        Self { id: CredentialId(hex::write(id).into()), secret }
    }

    /// The secret of `key` under the id of the first key.
    pub fn first(key: &Self) -> Self {
        Self { id: CredentialId(hex::write(&FIRST).into()), secret: key.secret }
    }

    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (id, secret) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(KeyError)?;
        // A key has exactly one text: an id in upper case would be another credential.
        let is_id = hex::read::<ID_BYTES>(id).is_some() && !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let secret = hex::read(secret).filter(|_| is_id).ok_or(KeyError)?;
        Ok(Self { id: CredentialId(id.into()), secret })
    }

    /// Whether a text is meant as a key, so that a malformed one is not taken for an issuer's token.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The key as text, for its owner.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, hex::write(&self.secret))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_…", self.id)
    }
}

/// The installation's secret for digests. Without it, a stolen digest cannot be used to test guesses.
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

impl DigestKey {
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn digest(&self, key: &ApiKey) -> [u8; 32] {
        self.of(key).finalize().into_bytes().into()
    }

    /// Compares in constant time.
    pub fn matches(&self, key: &ApiKey, kind: &CredentialKind) -> bool {
        match kind {
            CredentialKind::Key { digest } => self.of(key).verify_slice(digest).is_ok(),
            CredentialKind::Certificate => false,
        }
    }

    /// The id is digested too, so that a stored digest is valid only in its own row.
    fn of(&self, key: &ApiKey) -> Hmac<Sha256> {
        // HMAC accepts keys of every length, so the fallback is never used.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| Hmac::new(&Default::default()));
        mac.update(key.id.as_str().as_bytes());
        mac.update(&key.secret);
        mac
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey(…)")
    }
}
