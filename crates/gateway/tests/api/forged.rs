//! Credentials that were good once, or never: none of them opens any method or route.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use lockgate_jwt::{JwtSettings, JwtTokens, KeySource};
use lockgate_ports::Clock;
use serde_json::{Value, json};

use crate::access_matrix::{Door, MATRIX, Of, knock};
use crate::support::Closed;

/// Whose tokens are believed.
struct Issuer {
    pair: rcgen::KeyPair,
    file: tempfile::NamedTempFile,
}

impl Issuer {
    fn new() -> Self {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a pair");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), pair.public_key_pem()).expect("written");
        Self { pair, file }
    }

    fn tokens(&self) -> JwtTokens {
        JwtTokens::new(JwtSettings::new("https://id.example", "lockgate", KeySource::File(self.file.path().into())))
            .expect("good")
    }

    fn sign(&self, claims: &Value) -> String {
        let key = EncodingKey::from_rsa_pem(self.pair.serialize_pem().as_bytes()).expect("a key");
        encode(&Header::new(Algorithm::RS256), claims, &key).expect("signed")
    }

    /// Everybody has the public key: whoever takes it for a secret believes everybody.
    fn confuse(&self, claims: &Value) -> String {
        let key = EncodingKey::from_secret(self.pair.public_key_pem().as_bytes());
        encode(&Header::new(Algorithm::HS256), claims, &key).expect("signed")
    }
}

fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    claims[name] = value;
    claims
}

/// A key whose time is over, and one that was taken back.
async fn ended_keys(server: &Closed) -> [String; 2] {
    let body = json!({ "actor": "late", "roles": ["admin"], "lasts_ms": 60_000 });
    let late = server.post_as(&server.admin_key, "/v1/keys", &body).await.json["key"].as_str().expect("a key").to_owned();
    server.clock.advance(Duration::from_secs(61));
    let revoked = server.key("admin", None).await;
    let id = revoked.split('_').nth(1).expect("an id").to_owned();
    let ended = server.post_as(&server.admin_key, &format!("/v1/credentials/{id}/revoke"), &json!({})).await;
    assert_eq!(ended.json["ended"], true, "{ended:?}");
    [late, revoked]
}

#[tokio::test]
async fn what_is_expired_revoked_or_forged_opens_no_method_and_no_route() {
    let issuer = Issuer::new();
    let server = Closed::trusting(Arc::new(issuer.tokens())).await;
    let [late, revoked] = ended_keys(&server).await;
    let now = server.clock.now().as_millis() / 1_000;
    let claims = json!({
        "iss": "https://id.example", "aud": "lockgate", "sub": "ann", "tenant": "acme", "roles": ["admin"], "payloads": true,
        "exp": now + 600,
    });
    let good = issuer.sign(&claims);
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let bad = [
        ("expired key", late),
        ("revoked key", revoked),
        ("expired token", issuer.sign(&with(&claims, "exp", json!(now - 600)))),
        ("wrong audience", issuer.sign(&with(&claims, "aud", json!("another")))),
        ("wrong issuer", issuer.sign(&with(&claims, "iss", json!("https://evil.example")))),
        ("no algorithm", format!("{}.{}.", part(&json!({ "alg": "none" })), part(&claims))),
        ("key confusion", issuer.confuse(&claims)),
        ("a stranger's key", Issuer::new().sign(&claims)),
    ];
    for (row, of, bus_submits) in MATRIX {
        // What is refused below would be let in if it were believed.
        let expected = if of == Of::Own && bus_submits.contains('A') { Door::Open } else { Door::Forbidden };
        assert_eq!(knock(&server, row, Some(&good), None).await, expected, "a good token: {row}");
        for (name, credential) in &bad {
            let door = knock(&server, row, Some(credential), None).await;
            assert!(matches!(door, Door::Unknown | Door::Braked), "{name}: {row}: {door:?}");
        }
    }
}
