//! What an operator says about the issuer.

use std::path::PathBuf;
use std::time::Duration;

use lockgate_tls::TlsError;

use crate::keyset::KeysError;

const LEEWAY_DEFAULT: Duration = Duration::from_secs(30);

/// Whose tokens are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtSettings {
    /// What `iss` must be.
    pub issuer: String,
    /// What `aud` must have in it.
    pub audience: String,
    /// How far the issuer's clock and ours may be apart.
    pub leeway: Duration,
    pub keys: KeySource,
    /// Authorities, PEM, that are believed instead of the public ones where the keys have an `https` address.
    pub ca: Option<PathBuf>,
}

/// Where the issuer's keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A JWK set, one JWK or one PEM public key. Read again when it changes. Secrets, for HS256, can stand here only.
    File(PathBuf),
    /// The address of a JWK set: `https`, or `http` on this machine.
    Url(String),
}

impl JwtSettings {
    /// With a leeway of 30 s, and the public authorities.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>, keys: KeySource) -> Self {
        Self { issuer: issuer.into(), audience: audience.into(), leeway: LEEWAY_DEFAULT, keys, ca: None }
    }
}

/// Why tokens cannot be checked with these settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the {0} of tokens must be said: otherwise everybody's tokens would be good here")]
    Empty(&'static str),
    #[error("token keys {}: {error}; give a file that this process may read", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("token keys {}: {error}", path.display())]
    Keys { path: PathBuf, error: KeysError },
    #[error("token keys: {0:?} must be an https address (or http on this machine) without user name")]
    Url(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
}
