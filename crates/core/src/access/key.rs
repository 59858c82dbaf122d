//! API keys: `lgk_<id>_<secret>`, both in hex. The id is looked up, the secret is compared.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{CredentialId, CredentialKind};
use crate::hex;

/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;
const ID_BYTES: usize = 8;
const PREFIX: &str = "lgk_";

/// A key as its owner holds it. Shown once, kept nowhere, and never printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: CredentialId,
    secret: [u8; SECRET_BYTES],
}

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an API key: those look like lgk_<16 digits>_<64 digits>")]
pub struct KeyError;

/// The id of an installation's first key: there can be only one.
const FIRST: [u8; ID_BYTES] = [0; ID_BYTES];

impl ApiKey {
    /// What [`ApiKey::new`] takes.
    pub const RANDOM_BYTES: usize = ID_BYTES + SECRET_BYTES;

    /// A key of so much randomness.
    pub fn new(random: [u8; Self::RANDOM_BYTES]) -> Self {
        let (id, rest) = random.split_at(ID_BYTES);
        let mut secret = [0; SECRET_BYTES];
        secret.copy_from_slice(rest);
        Self { id: CredentialId(hex::write(id).into()), secret }
    }

    /// The same secret under the id of the first key.
    pub fn first(key: &Self) -> Self {
        Self { id: CredentialId(hex::write(&FIRST).into()), secret: key.secret }
    }

    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (id, secret) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(KeyError)?;
        // One key has one text: an id in another case would be another credential.
        let is_id = hex::read::<ID_BYTES>(id).is_some() && !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let secret = hex::read(secret).filter(|_| is_id).ok_or(KeyError)?;
        Ok(Self { id: CredentialId(id.into()), secret })
    }

    /// Whether a text claims to be a key, so that it is not taken for a token.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The whole text, for its owner.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, hex::write(&self.secret))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_…", self.id)
    }
}

/// The installation's own secret, without which digests cannot be tried out.
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

impl DigestKey {
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn digest(&self, key: &ApiKey) -> [u8; 32] {
        self.of(key).finalize().into_bytes().into()
    }

    /// In constant time.
    pub fn matches(&self, key: &ApiKey, kind: &CredentialKind) -> bool {
        match kind {
            CredentialKind::Key { digest } => self.of(key).verify_slice(digest).is_ok(),
            CredentialKind::Certificate => false,
        }
    }

    /// The id is digested too: a stored digest is good for its own row only.
    fn of(&self, key: &ApiKey) -> Hmac<Sha256> {
        // HMAC takes keys of every length; the other arm cannot be reached.
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
