//! Keys from a file: its forms, its faults, its changes.

use std::fs::File;
use std::time::{Duration, SystemTime};

use lockgate_jwt::{JwtSettings, JwtTokens, KeySource};
use lockgate_ports::{TokenError, Tokens};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::support::{AUDIENCE, FromFile, ISSUER, Signer, at, claims, jwks, settings};

#[tokio::test]
async fn a_pem_public_key_checks_tokens_whatever_key_they_name() {
    for signer in [Signer::rs256(None), Signer::es256(None), Signer::eddsa(None)] {
        let keys = FromFile::new(&signer.pem);
        for kid in [None, Some("whatever")] {
            let identity = keys.verify(&signer.sign_as(&claims(), kid)).await.unwrap();
            assert_eq!(identity.via.as_str(), format!("jwt:{ISSUER}"));
        }
        let confused = Signer::hs256(None, signer.pem.as_bytes());
        assert_eq!(keys.verify(&confused.sign(&claims())).await, Err(TokenError::Untrusted));
    }
}

#[tokio::test]
async fn one_jwk_is_a_set_of_one() {
    let signer = Signer::hs256(Some("secret-1"), &[9; 32]);
    let keys = FromFile::new(&signer.jwk().to_string());
    assert_eq!(keys.verify(&signer.sign(&claims())).await.unwrap().via.as_str(), "jwt:secret-1");
}

#[tokio::test]
async fn keys_of_other_kinds_beside_a_good_one_do_no_harm() {
    let signer = Signer::es256(Some("es"));
    let mut encrypts = Signer::rs256(Some("enc")).jwk();
    encrypts["use"] = json!("enc");
    let mut wide = Signer::rs256(Some("rs512")).jwk();
    wide["alg"] = json!("RS512");
    let strange = json!({ "kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA", "kid": "pq" });
    let curve = json!({ "kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "kid": "btc" });
    let keys = FromFile::new(&json!({ "keys": [encrypts, wide, strange, curve, "text", signer.jwk()] }).to_string());
    assert!(keys.verify(&signer.sign(&claims())).await.is_ok());
    for kid in ["enc", "rs512"] {
        let token = Signer::rs256(Some(kid)).sign(&claims());
        assert_eq!(keys.verify(&token).await, Err(TokenError::Untrusted), "{kid}");
    }
}

#[test]
fn a_file_without_good_keys_is_refused_and_the_text_says_what_to_give() {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let certificate = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap().cert.pem();
    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap().public_key_pem();
    let short = Signer::hs256(None, b"short").jwk();
    let small = json!({ "kty": "RSA", "n": "AQAB".repeat(40), "e": "AQAB" });
    let cases = [
        (String::new(), "neither a JWK set nor a PEM"),
        ("{}".to_owned(), "neither a JWK set nor a PEM"),
        ("just-a-secret".to_owned(), "neither a JWK set nor a PEM"),
        (json!({ "keys": [] }).to_string(), "no key for"),
        (pair.serialize_pem(), "private key; give the public one"),
        (certificate, "certificate; give its public key"),
        (format!("{}{}", pair.public_key_pem(), pair.public_key_pem()), "several PEM texts"),
        (p384, "of a kind that is not used here"),
        (json!({ "keys": [short] }).to_string(), "key 1 is a secret shorter than 32 bytes"),
        (small.to_string(), "2048"),
    ];
    for (text, expected) in cases {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let error = JwtTokens::new(settings(KeySource::File(file.path().to_owned()))).err().unwrap().to_string();
        assert!(error.contains(expected), "{expected} is missing in: {error}");
        assert!(error.contains(&file.path().display().to_string()), "{error}");
    }
    let missing = JwtTokens::new(settings(KeySource::File("/no/such/file".into()))).err().unwrap().to_string();
    assert!(missing.contains("/no/such/file"), "{missing}");
}

#[test]
fn an_issuer_and_an_audience_must_be_said() {
    let keys = || KeySource::Url("https://id.example/keys".to_owned());
    assert!(JwtTokens::new(settings(keys())).is_ok());
    let error = JwtTokens::new(JwtSettings::new(" ", AUDIENCE, keys())).err().unwrap().to_string();
    assert!(error.contains("issuer"), "{error}");
    let error = JwtTokens::new(JwtSettings::new(ISSUER, "", keys())).err().unwrap().to_string();
    assert!(error.contains("audience"), "{error}");
}

/// Replaces the text; the time of change is moved too, since a test is faster than the clock of a file system.
fn rewrite(keys: &FromFile, text: &str, later: u64) {
    std::fs::write(keys.file.path(), text).unwrap();
    let file = File::options().write(true).open(keys.file.path()).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(later)).unwrap();
}

#[tokio::test]
async fn a_changed_file_is_noticed_within_a_second() {
    let (old, new) = (Signer::es256(Some("old")), Signer::es256(Some("new")));
    let keys = FromFile::new(&jwks(&[&old]));
    let (old_token, new_token) = (old.sign(&claims()), new.sign(&claims()));
    assert!(keys.tokens.verify(&old_token, at(0)).await.is_ok());
    rewrite(&keys, &jwks(&[&new]), 1);
    assert!(keys.tokens.verify(&old_token, at(0)).await.is_ok(), "looked at most once a second");
    assert!(keys.tokens.verify(&new_token, at(1)).await.is_ok());
    assert_eq!(keys.tokens.verify(&old_token, at(1)).await, Err(TokenError::Untrusted));
    rewrite(&keys, &jwks(&[&old]), 2);
    assert!(keys.tokens.verify(&old_token, at(0)).await.is_ok(), "a clock that was set back is a reason to look");
}

#[tokio::test]
async fn a_spoilt_or_missing_file_leaves_the_keys_as_they_were() {
    let signer = Signer::es256(Some("k"));
    let keys = FromFile::new(&jwks(&[&signer]));
    let token = signer.sign(&claims());
    rewrite(&keys, "nonsense", 1);
    assert!(keys.tokens.verify(&token, at(2)).await.is_ok());
    std::fs::remove_file(keys.file.path()).unwrap();
    assert!(keys.tokens.verify(&token, at(4)).await.is_ok());
    let new = Signer::es256(Some("k2"));
    rewrite(&keys, &jwks(&[&new]), 2);
    assert!(keys.tokens.verify(&new.sign(&claims()), at(6)).await.is_ok());
}
