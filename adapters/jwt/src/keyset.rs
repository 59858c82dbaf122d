//! The keys of an issuer.

use std::fmt;

use jsonwebtoken::Algorithm;
use jsonwebtoken::jwk::Jwk;
use serde::Deserialize;
use serde_json::Value;

use crate::head::Header;
use crate::key::VerifyingKey;

pub(crate) struct KeySet {
    keys: Vec<VerifyingKey>,
}

/// The source of keys, which decides what kinds are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    File,
    /// A document at an address is public, so a shared secret there is refused.
    Address,
}

/// The result of searching a key for a token's header.
pub(crate) enum KeyMatch<'a> {
    Key(&'a VerifyingKey),
    /// A key of that name exists for another algorithm: likely an attack.
    Mismatch,
    Unknown,
}

/// Why a text contains no usable keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeysError {
    NotKeys,
    PrivateKey,
    Certificate,
    SeveralPem,
    /// What is wrong with each key.
    NoneUsable(Vec<String>),
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotKeys => f.write_str("is neither a JWK set nor a PEM public key"),
            Self::PrivateKey => f.write_str("is a private key; give the public one, the private one belongs to the issuer"),
            Self::Certificate => f.write_str("is a certificate; give its public key (openssl x509 -pubkey -noout)"),
            Self::SeveralPem => f.write_str("has several PEM texts; give one public key, or a JWK set with all of them"),
            Self::NoneUsable(reasons) => {
                write!(f, "has no key for HS256, RS256, ES256 or EdDSA: {}", reasons.join(", "))
            }
        }
    }
}

impl std::error::Error for KeysError {}

/// Keys are decoded one by one, because an issuer may publish kinds that are unknown here.
#[derive(Deserialize)]
#[serde(untagged)]
enum JwksDocument {
    Set { keys: Vec<Value> },
    One(Value),
}

impl KeySet {
    pub(crate) fn parse(text: &str, origin: Origin) -> Result<Self, KeysError> {
        let text = text.trim();
        if text.starts_with("-----BEGIN") {
            return Self::of_pem(text);
        }
        let members = match serde_json::from_str(text).map_err(|_| KeysError::NotKeys)? {
            JwksDocument::Set { keys } => keys,
            JwksDocument::One(key) if key.get("kty").is_some() => vec![key],
            JwksDocument::One(_) => return Err(KeysError::NotKeys),
        };
        let (mut keys, mut reasons) = (Vec::new(), Vec::new());
        for (at, member) in members.into_iter().enumerate() {
            match read(member, origin) {
                Ok(key) => keys.push(key),
                Err(reason) => reasons.push(format!("key {} {reason}", at + 1)),
            }
        }
        if keys.is_empty() { Err(KeysError::NoneUsable(reasons)) } else { Ok(Self { keys }) }
    }

    fn of_pem(text: &str) -> Result<Self, KeysError> {
        if text.contains("PRIVATE KEY-----") {
            return Err(KeysError::PrivateKey);
        }
        if text.contains("BEGIN CERTIFICATE") {
            return Err(KeysError::Certificate);
        }
        if text.matches("-----BEGIN").count() > 1 {
            return Err(KeysError::SeveralPem);
        }
        let key =
            VerifyingKey::from_pem(text.as_bytes()).map_err(|reason| KeysError::NoneUsable(vec![format!("it {reason}")]))?;
        Ok(Self { keys: vec![key] })
    }

    /// A key is found by name and algorithm. A token without a key name, or with an unknown one, is verified with the only
    /// nameless (or only) key of its algorithm. With several it is refused: trying them all would let any client cause work.
    pub(crate) fn find(&self, header: &Header) -> KeyMatch<'_> {
        let Some(id) = header.key_id.as_deref() else { return only(self.of(header.algorithm)) };
        let mut namesakes = self.keys.iter().filter(|key| key.id.as_deref() == Some(id)).peekable();
        if namesakes.peek().is_none() {
            return only(self.of(header.algorithm).filter(|key| key.id.is_none()));
        }
        namesakes.find(|key| key.algorithm == header.algorithm).map_or(KeyMatch::Mismatch, KeyMatch::Key)
    }

    fn of(&self, algorithm: Algorithm) -> impl Iterator<Item = &VerifyingKey> {
        self.keys.iter().filter(move |key| key.algorithm == algorithm)
    }
}

fn only<'a>(mut keys: impl Iterator<Item = &'a VerifyingKey>) -> KeyMatch<'a> {
    match (keys.next(), keys.next()) {
        (Some(key), None) => KeyMatch::Key(key),
        _ => KeyMatch::Unknown,
    }
}

fn read(member: Value, origin: Origin) -> Result<VerifyingKey, &'static str> {
    let jwk: Jwk = serde_json::from_value(member).map_err(|_| "is no JWK")?;
    let key = VerifyingKey::from_jwk(&jwk)?;
    if key.is_secret() && origin == Origin::Address {
        return Err("is a secret that anybody can fetch");
    }
    Ok(key)
}
