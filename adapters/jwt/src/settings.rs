//! The operator's settings about the issuer.

use std::path::PathBuf;
use std::time::Duration;

use lockgate_tls::TlsError;

use crate::keyset::KeysError;

const LEEWAY_DEFAULT: Duration = Duration::from_secs(30);

/// The issuer whose tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtSettings {
    /// The required `iss`.
    pub issuer: String,
    /// The required member of `aud`.
    pub audience: String,
    /// How far the issuer's clock and this one may differ.
    pub leeway: Duration,
    pub keys: KeySource,
    /// PEM authorities trusted instead of the public ones for an `https` key address.
    pub ca: Option<PathBuf>,
}

/// The source of the issuer's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A JWK set, one JWK or one PEM public key. Reloaded when it changes. The only source allowed for secrets (HS256).
    File(PathBuf),
    /// The address of a JWK set: `https`, or `http` on this machine.
    Url(String),
}

impl JwtSettings {
    /// With a leeway of 30 s and the public authorities.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>, keys: KeySource) -> Self {
        Self { issuer: issuer.into(), audience: audience.into(), leeway: LEEWAY_DEFAULT, keys, ca: None }
    }
}

/// Why tokens cannot be verified with these settings.
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
