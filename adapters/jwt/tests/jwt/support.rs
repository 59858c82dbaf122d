//! Keys made for the test, and an issuer that signs with them.

use std::sync::LazyLock;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use lockgate_core::access::Identity;
use lockgate_core::time::Timestamp;
use lockgate_jwt::{JwtSettings, JwtTokens, KeySource};
use lockgate_ports::{TokenError, Tokens};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

pub(crate) const ISSUER: &str = "https://id.example";
pub(crate) const AUDIENCE: &str = "lockgate";
/// Seconds since 1970 at which all tests begin.
pub(crate) const NOW: i64 = 1_800_000_000;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis((NOW + seconds) * 1_000)
}

/// One key of an issuer, private half included.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) kid: Option<&'static str>,
    pub(crate) algorithm: Algorithm,
    encoding: EncodingKey,
    jwk: Jwk,
    pub(crate) pem: String,
}

/// Making an RSA key takes long enough to do it once.
static RSA: LazyLock<rcgen::KeyPair> = LazyLock::new(|| rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap());

impl Signer {
    pub(crate) fn rs256(kid: Option<&'static str>) -> Self {
        let encoding = EncodingKey::from_rsa_pem(RSA.serialize_pem().as_bytes()).unwrap();
        let decoding = DecodingKey::from_rsa_pem(RSA.public_key_pem().as_bytes()).unwrap();
        Self::new(kid, Algorithm::RS256, encoding, &decoding, RSA.public_key_pem())
    }

    pub(crate) fn es256(kid: Option<&'static str>) -> Self {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let encoding = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes()).unwrap();
        let decoding = DecodingKey::from_ec_pem(pair.public_key_pem().as_bytes()).unwrap();
        Self::new(kid, Algorithm::ES256, encoding, &decoding, pair.public_key_pem())
    }

    pub(crate) fn eddsa(kid: Option<&'static str>) -> Self {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let encoding = EncodingKey::from_ed_pem(pair.serialize_pem().as_bytes()).unwrap();
        let decoding = DecodingKey::from_ed_pem(pair.public_key_pem().as_bytes()).unwrap();
        Self::new(kid, Algorithm::EdDSA, encoding, &decoding, pair.public_key_pem())
    }

    pub(crate) fn hs256(kid: Option<&'static str>, secret: &[u8]) -> Self {
        let decoding = DecodingKey::from_secret(secret);
        Self::new(kid, Algorithm::HS256, EncodingKey::from_secret(secret), &decoding, String::new())
    }

    fn new(
        kid: Option<&'static str>,
        algorithm: Algorithm,
        encoding: EncodingKey,
        decoding: &DecodingKey,
        pem: String,
    ) -> Self {
        let mut jwk = Jwk::from_decoding_key(decoding, Some(algorithm)).unwrap();
        jwk.common.key_id = kid.map(str::to_owned);
        Self { kid, algorithm, encoding, jwk, pem }
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_as(claims, self.kid)
    }

    /// Under the name of another key.
    pub(crate) fn sign_as(&self, claims: &Value, kid: Option<&str>) -> String {
        let header = Header { kid: kid.map(str::to_owned), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.encoding).unwrap()
    }

    pub(crate) fn jwk(&self) -> Value {
        serde_json::to_value(&self.jwk).unwrap()
    }
}

pub(crate) fn jwks(signers: &[&Signer]) -> String {
    json!({ "keys": signers.iter().map(|signer| signer.jwk()).collect::<Vec<_>>() }).to_string()
}

/// What a good token says.
pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "tenant": "acme", "roles": ["submitter"],
        "exp": NOW + 600, "nbf": NOW - 10, "iat": NOW - 10,
    })
}

/// The good claims with some changed; null takes one out.
pub(crate) fn claims_with(changes: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

/// Tokens checked with the keys of a file, which lives as long.
pub(crate) struct FromFile {
    pub(crate) tokens: JwtTokens,
    pub(crate) file: NamedTempFile,
}

impl FromFile {
    pub(crate) fn new(text: &str) -> Self {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let tokens = JwtTokens::new(settings(KeySource::File(file.path().to_owned()))).unwrap();
        Self { tokens, file }
    }

    pub(crate) async fn verify(&self, token: &str) -> Result<Identity, TokenError> {
        self.tokens.verify(token, at(0)).await
    }
}

pub(crate) fn settings(keys: KeySource) -> JwtSettings {
    JwtSettings::new(ISSUER, AUDIENCE, keys)
}
