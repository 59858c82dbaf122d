//! Splits a token into its three parts and reads its header.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use lockgate_ports::TokenError;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The longest accepted token. Request headers are limited too, and every byte costs work before the signature is verified.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// The parts of a token, none of it verified yet.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) header: Header,
    /// The signed text.
    pub(crate) message: &'a str,
    pub(crate) signature: &'a str,
    payload: &'a str,
}

/// The header's claims about the signature. Only used to find the key.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) algorithm: Algorithm,
    pub(crate) key_id: Option<String>,
}

#[derive(Deserialize)]
struct RawHeader {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// Critical extensions: none is supported, so a token with any is refused.
    #[serde(default)]
    crit: Option<IgnoredAny>,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(token: &'a str) -> Result<Self, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Malformed("it is longer than 8 KiB"));
        }
        let parts = token.rsplit_once('.').and_then(|(message, signature)| {
            let (header, payload) = message.split_once('.')?;
            (!payload.contains('.')).then_some((header, payload, message, signature))
        });
        let Some((header, payload, message, signature)) = parts else {
            return Err(TokenError::Malformed("it must be three parts with dots between them"));
        };
        Ok(Self { header: Header::of(header)?, message, signature, payload })
    }

    /// The claims as JSON bytes.
    pub(crate) fn payload(&self) -> Result<Vec<u8>, TokenError> {
        URL_SAFE_NO_PAD.decode(self.payload).map_err(|_| TokenError::Malformed("its claims are not in base64url"))
    }
}

impl Header {
    fn of(text: &str) -> Result<Self, TokenError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed("its header is not in base64url"))?;
        let raw: RawHeader =
            serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed("its header is no JSON with an alg"))?;
        if raw.crit.is_some() {
            return Err(TokenError::Untrusted);
        }
        let algorithm = match raw.alg.as_str() {
            "HS256" => Algorithm::HS256,
            "RS256" => Algorithm::RS256,
            "ES256" => Algorithm::ES256,
            "EdDSA" => Algorithm::EdDSA,
            _ => return Err(TokenError::Untrusted),
        };
        Ok(Self { algorithm, key_id: raw.kid })
    }
}
