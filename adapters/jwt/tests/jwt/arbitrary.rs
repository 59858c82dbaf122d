//! Whatever comes: no panic, no belief.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lockgate_ports::Tokens;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{FromFile, Signer, at, claims, jwks};

fn judged(keys: &FromFile, token: &str) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(keys.tokens.verify(token, at(0))).is_ok()
}

fn keys() -> FromFile {
    FromFile::new(&jwks(&[&Signer::hs256(Some("hs"), &[7; 32]), &Signer::es256(Some("es"))]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_text_is_never_believed(text in any::<String>(), dotted in "[A-Za-z0-9_.-]{0,200}") {
        let keys = keys();
        prop_assert!(!judged(&keys, &text));
        prop_assert!(!judged(&keys, &dotted));
    }

    #[test]
    fn well_formed_tokens_with_arbitrary_insides_are_never_believed(
        alg in "HS256|ES256|RS256|EdDSA|none|[a-zA-Z0-9]{0,8}",
        kid in prop::option::of("hs|es|.{0,12}"),
        payload in any::<Vec<u8>>(),
        signature in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let header = part(json!({ "alg": alg, "kid": kid }).to_string().as_bytes());
        let keys = keys();
        let nonsense = [header.clone(), part(&payload), part(&signature)].join(".");
        prop_assert!(!judged(&keys, &nonsense));
        let forged = [header, part(claims().to_string().as_bytes()), part(&signature)].join(".");
        prop_assert!(!judged(&keys, &forged));
    }

    #[test]
    fn signed_nonsense_does_not_panic(payload in any::<Vec<u8>>(), exp in any::<f64>()) {
        let signer = Signer::hs256(Some("hs"), &[7; 32]);
        let text = String::from_utf8_lossy(&payload).into_owned();
        let token = signer.sign(&json!({ "iss": text, "aud": text, "sub": text, "exp": exp, "roles": text }));
        prop_assert!(!judged(&keys(), &token));
    }
}
