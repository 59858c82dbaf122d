//! Tokens that an attacker has tampered with.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lockgate_ports::TokenError;
use serde_json::{Value, json};

use crate::support::{FromFile, Signer, claims, claims_with, jwks};

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Another header or other claims over the signature of a good token.
fn patched(token: &str, header: Option<&Value>, payload: Option<&Value>) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    if let Some(header) = header {
        parts[0] = encoded(header);
    }
    if let Some(payload) = payload {
        parts[1] = encoded(payload);
    }
    parts.join(".")
}

#[tokio::test]
async fn nothing_that_was_tampered_with_is_believed_and_nothing_of_it_is_repeated() {
    let (rs, es, hs) = (Signer::rs256(Some("rs")), Signer::es256(Some("es")), Signer::hs256(Some("hs"), &[7; 32]));
    let keys = FromFile::new(&jwks(&[&rs, &es, &hs]));
    let good = rs.sign(&claims());
    let stranger = Signer::es256(Some("es"));
    let public_as_secret = Signer::hs256(Some("rs"), rs.pem.as_bytes());
    let admin = claims_with(&json!({ "roles": ["admin"] }));
    let cases = [
        ("no algorithm", patched(&good, Some(&json!({ "alg": "none", "kid": "rs" })), None)),
        ("no algorithm, no signature", format!("{}.{}.", encoded(&json!({ "alg": "none" })), encoded(&claims()))),
        ("none in other letters", patched(&good, Some(&json!({ "alg": "NoNe", "kid": "rs" })), None)),
        ("an algorithm we do not use", patched(&good, Some(&json!({ "alg": "RS512", "kid": "rs" })), None)),
        ("the public key as a secret", public_as_secret.sign(&claims())),
        ("the public key as a secret, no name", public_as_secret.sign_as(&claims(), None)),
        ("a secret under the name of another key", hs.sign_as(&claims(), Some("rs"))),
        ("a key under the name of another", es.sign_as(&claims(), Some("hs"))),
        ("a key that nobody knows", stranger.sign_as(&claims(), Some("es9"))),
        ("a stranger's key under a known name", stranger.sign(&claims())),
        ("other claims", patched(&good, None, Some(&admin))),
        ("another header", patched(&good, Some(&json!({ "alg": "RS256", "kid": "rs", "x": 1 })), None)),
        ("no signature", good.rsplit_once('.').map(|(rest, _)| format!("{rest}.")).unwrap()),
        ("half a signature", good[..good.len() - 40].to_owned()),
        (
            "an extension that must be understood",
            patched(&good, Some(&json!({ "alg": "RS256", "kid": "rs", "crit": ["b64"], "b64": false })), None),
        ),
        ("its own key", patched(&stranger.sign(&claims()), Some(&json!({ "alg": "ES256", "jwk": stranger.jwk() })), None)),
    ];
    assert!(keys.verify(&good).await.is_ok());
    for (name, token) in cases {
        let error = keys.verify(&token).await.expect_err(name);
        assert_eq!(error, TokenError::Untrusted, "{name}");
        assert_repeats_nothing(&error, &token);
    }
}

#[tokio::test]
async fn what_is_no_token_is_malformed() {
    let hs = Signer::hs256(None, &[7; 32]);
    let keys = FromFile::new(&jwks(&[&hs]));
    let good = hs.sign(&claims());
    let twice = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","alg":"none"}"#) + good.trim_start_matches(|c| c != '.');
    let long = hs.sign(&claims_with(&json!({ "note": "x".repeat(8 * 1024) })));
    let cases = [
        ("empty", String::new()),
        ("one part", "abc".to_owned()),
        ("two parts", "abc.def".to_owned()),
        ("four parts", format!("{good}.x")),
        ("five parts, as of an encrypted one", "a.b.c.d.e".to_owned()),
        ("header not in base64url", format!("!{good}")),
        ("header with padding", good.replacen('.', "=.", 1)),
        ("header without algorithm", patched(&good, Some(&json!({ "typ": "JWT" })), None)),
        ("header twice the same field", twice),
        ("too long", long),
    ];
    for (name, token) in cases {
        let error = keys.verify(&token).await.expect_err(name);
        assert!(matches!(error, TokenError::Malformed(_)), "{name}: {error:?}");
        assert_repeats_nothing(&error, &token);
    }
}

#[tokio::test]
async fn one_bit_anywhere_makes_a_token_worthless() {
    let ed = Signer::eddsa(Some("ed"));
    let keys = FromFile::new(&jwks(&[&ed]));
    let good = ed.sign(&claims());
    for at in 0..good.len() {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let token = String::from_utf8(bytes).unwrap();
        assert!(keys.verify(&token).await.is_err(), "byte {at}");
    }
}

/// No piece of a token that is long enough to mean something stands in the text.
fn assert_repeats_nothing(error: &TokenError, token: &str) {
    let text = format!("{error} {error:?}");
    for piece in token.split('.').filter(|piece| piece.len() >= 8) {
        for at in 0..=piece.len() - 8 {
            assert!(!text.contains(piece.get(at..at + 8).unwrap_or("\0")), "{text} repeats the token");
        }
    }
}
