//! One verification key and its single algorithm.

use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use jsonwebtoken::{AlgorithmFamily, DecodingKeyKind};

/// A secret shorter than the digest could be guessed from one token (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;
/// RSA from 2,048 bits (RFC 7518, 3.3) to 8,192, above which a verification takes too long.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
const EC_POINT_BYTES: usize = 65;
const ED_POINT_BYTES: usize = 32;

pub(crate) struct VerifyingKey {
    pub(crate) id: Option<Arc<str>>,
    pub(crate) algorithm: Algorithm,
    decoding: DecodingKey,
}

impl VerifyingKey {
    /// The error says why the key cannot be used; it is for the operator.
    pub(crate) fn from_jwk(jwk: &Jwk) -> Result<Self, &'static str> {
        let (algorithm, named) = match &jwk.algorithm {
            AlgorithmParameters::OctetKey(_) => (Algorithm::HS256, KeyAlgorithm::HS256),
            AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
            AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P256 => {
                (Algorithm::ES256, KeyAlgorithm::ES256)
            }
            AlgorithmParameters::OctetKeyPair(ed) if ed.curve == EllipticCurve::Ed25519 => {
                (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
            }
            _ => return Err("is of a kind that is not used here"),
        };
        let common = &jwk.common;
        if common.key_algorithm.is_some_and(|said| said != named) {
            return Err("is for an algorithm that is not used here");
        }
        let verifies = common.key_operations.as_ref().is_none_or(|list| list.contains(&KeyOperations::Verify));
        if common.public_key_use.as_ref().is_some_and(|what| *what != PublicKeyUse::Signature) || !verifies {
            return Err("is not for checking signatures");
        }
        let decoding = DecodingKey::from_jwk(jwk).map_err(|_| "is not in base64url")?;
        check_size(&decoding)?;
        Ok(Self { id: common.key_id.as_deref().map(Into::into), algorithm, decoding })
    }

    /// A public key without a name: it verifies tokens that name no key or an unknown one.
    pub(crate) fn from_pem(pem: &[u8]) -> Result<Self, &'static str> {
        let readers = [DecodingKey::from_rsa_pem, DecodingKey::from_ec_pem, DecodingKey::from_ed_pem];
        let decoding =
            readers.into_iter().find_map(|read| read(pem).ok()).ok_or("is no RSA, P-256 or Ed25519 public key")?;
        let jwk = Jwk::from_decoding_key(&decoding, None).map_err(|_| "is no RSA, P-256 or Ed25519 public key")?;
        Self::from_jwk(&jwk)
    }

    /// Whether this key signed the message. In constant time for secrets.
    pub(crate) fn has_signed(&self, message: &str, signature: &str) -> bool {
        crypto::verify(signature, message.as_bytes(), &self.decoding, self.algorithm).unwrap_or(false)
    }

    pub(crate) fn is_secret(&self) -> bool {
        self.decoding.family() == AlgorithmFamily::Hmac
    }
}

fn check_size(key: &DecodingKey) -> Result<(), &'static str> {
    let bytes = match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, .. } => n.iter().skip_while(|byte| **byte == 0).count(),
        DecodingKeyKind::SecretOrDer(bytes) => bytes.len(),
    };
    match key.family() {
        AlgorithmFamily::Hmac if bytes < SECRET_BYTES_MIN => Err("is a secret shorter than 32 bytes"),
        AlgorithmFamily::Rsa if !MODULUS_BYTES.contains(&bytes) => Err("is RSA of fewer than 2048 or more than 8192 bits"),
        AlgorithmFamily::Ec if bytes != EC_POINT_BYTES => Err("is no point on P-256"),
        AlgorithmFamily::Ed if bytes != ED_POINT_BYTES => Err("is no Ed25519 key"),
        _ => Ok(()),
    }
}
