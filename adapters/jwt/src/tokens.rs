//! Turns a token into an identity.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::access::{CredentialId, Identity};
use lockgate_core::time::Timestamp;
use lockgate_ports::{TokenError, Tokens};

use crate::claims::Claims;
use crate::file::FileKeys;
use crate::head::Parts;
use crate::key::VerifyingKey;
use crate::keyset::{KeyMatch, KeySet};
use crate::remote::RemoteKeys;
use crate::settings::{JwtSettings, KeySource, SettingsError};

/// Accepts the tokens of one issuer.
pub struct JwtTokens {
    settings: JwtSettings,
    keys: TokenKeys,
}

enum TokenKeys {
    File(FileKeys),
    Remote(RemoteKeys),
}

impl JwtTokens {
    /// A file is read now. An address is fetched with the first token, so that an unreachable issuer does not prevent a
    /// start.
    pub fn new(settings: JwtSettings) -> Result<Self, SettingsError> {
        for (name, text) in [("issuer", &settings.issuer), ("audience", &settings.audience)] {
            if text.trim().is_empty() {
                return Err(SettingsError::Empty(name));
            }
        }
        let keys = match &settings.keys {
            KeySource::File(path) => TokenKeys::File(FileKeys::open(path.clone())?),
            KeySource::Url(url) => TokenKeys::Remote(RemoteKeys::new(url, settings.ca.clone())?),
        };
        Ok(Self { settings, keys })
    }

    async fn keys(&self, now: Timestamp) -> Result<Arc<KeySet>, TokenError> {
        match &self.keys {
            TokenKeys::File(keys) => Ok(keys.current(now).await),
            TokenKeys::Remote(keys) => keys.current(now).await,
        }
    }

    fn judge(&self, parts: &Parts<'_>, key: &VerifyingKey, now: Timestamp) -> Result<Identity, TokenError> {
        if !key.has_signed(parts.message, parts.signature) {
            return Err(TokenError::Untrusted);
        }
        let JwtSettings { issuer, audience, leeway, .. } = &self.settings;
        let claims = Claims::parse(&parts.payload()?)?;
        claims.check_purpose(issuer, audience)?;
        claims.check_times(now, *leeway)?;
        let via = format!("jwt:{}", key.id.as_deref().unwrap_or(issuer));
        claims.identity(CredentialId(via.into()))
    }
}

#[async_trait]
impl Tokens for JwtTokens {
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Identity, TokenError> {
        let parts = Parts::of(token)?;
        let mut keys = self.keys(now).await?;
        if let (KeyMatch::Unknown, TokenKeys::Remote(remote)) = (keys.find(&parts.header), &self.keys) {
            keys = remote.renewed(now).await?;
        }
        match keys.find(&parts.header) {
            KeyMatch::Key(key) => self.judge(&parts, key, now),
            KeyMatch::Mismatch | KeyMatch::Unknown => Err(TokenError::Untrusted),
        }
    }
}
