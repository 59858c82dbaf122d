//! From claims to an identity, and the times between which they hold.

use std::collections::BTreeSet;

use lockgate_core::access::{Reach, Role};
use lockgate_core::ids::PoolName;
use lockgate_ports::{TokenError, Tokens};
use serde_json::{Value, json};

use crate::support::{FromFile, NOW, Signer, at, claims, claims_with, jwks};

fn setup() -> (Signer, FromFile) {
    let signer = Signer::es256(Some("k1"));
    let keys = FromFile::new(&jwks(&[&signer]));
    (signer, keys)
}

#[tokio::test]
async fn good_tokens_of_the_four_algorithms_are_believed() {
    let signers = [
        Signer::hs256(Some("hs"), &[7; 32]),
        Signer::rs256(Some("rs")),
        Signer::es256(Some("es")),
        Signer::eddsa(Some("ed")),
    ];
    let keys = FromFile::new(&jwks(&signers.each_ref()));
    for signer in &signers {
        let identity = keys.verify(&signer.sign(&claims())).await.unwrap();
        assert_eq!(identity.actor.as_str(), "ann");
        assert_eq!(identity.grant.reach, Reach::Tenant("acme".into()));
        assert_eq!(identity.grant.roles, BTreeSet::from([Role::Submitter]));
        assert!(identity.grant.pools.is_empty() && identity.actor_type.is_none());
        assert_eq!(identity.via.as_str(), format!("jwt:{}", signer.kid.unwrap()));
    }
}

#[tokio::test]
async fn a_token_that_names_no_key_is_checked_with_the_only_one_of_its_algorithm() {
    let (es, ed) = (Signer::es256(Some("es")), Signer::eddsa(Some("ed")));
    let keys = FromFile::new(&jwks(&[&es, &ed]));
    assert_eq!(keys.verify(&es.sign_as(&claims(), None)).await.unwrap().via.as_str(), "jwt:es");
    let other = Signer::es256(Some("es2"));
    let keys = FromFile::new(&jwks(&[&es, &other]));
    assert_eq!(keys.verify(&es.sign_as(&claims(), None)).await, Err(TokenError::Untrusted), "of two there is no telling");
}

#[tokio::test]
async fn every_claim_finds_its_place() {
    let (signer, keys) = setup();
    let said = json!({ "tenant": "*", "roles": "worker", "pools": ["gpu", "cpu"], "actor_type": "agent",
        "aud": ["other", "lockgate"] });
    let identity = keys.verify(&signer.sign(&claims_with(&said))).await.unwrap();
    assert_eq!(identity.grant.reach, Reach::Everyone);
    assert_eq!(identity.grant.roles, BTreeSet::from([Role::Worker]));
    assert_eq!(identity.grant.pools, BTreeSet::from([PoolName::from("cpu"), PoolName::from("gpu")]));
    assert_eq!(identity.actor_type.as_deref(), Some("agent"));
}

#[tokio::test]
async fn payloads_are_for_those_whose_token_says_so() {
    let (signer, keys) = setup();
    let cases = [
        (json!({ "roles": ["viewer"] }), false),
        (json!({ "roles": ["viewer"], "payloads": true }), true),
        (json!({ "roles": "viewer approver" }), false),
        (json!({ "roles": ["operator"], "payloads": false }), false),
    ];
    for (said, expected) in cases {
        let identity = keys.verify(&signer.sign(&claims_with(&said))).await.unwrap();
        assert_eq!(identity.grant.payloads, expected, "{said}");
    }
}

#[tokio::test]
async fn a_token_that_does_not_say_who_comes_is_refused_and_the_claim_is_named() {
    let (signer, keys) = setup();
    let cases = [
        (json!({ "sub": null }), "sub"),
        (json!({ "sub": 5 }), "sub"),
        (json!({ "sub": "a b" }), "sub"),
        (json!({ "sub": "" }), "sub"),
        (json!({ "tenant": null }), "tenant"),
        (json!({ "tenant": ["acme"] }), "tenant"),
        (json!({ "tenant": "a*" }), "tenant"),
        (json!({ "roles": null }), "roles"),
        (json!({ "roles": [] }), "roles"),
        (json!({ "roles": "" }), "roles"),
        (json!({ "roles": {} }), "roles"),
        (json!({ "roles": ["viewer", 1] }), "roles"),
        (json!({ "roles": ["root"] }), "role root"),
        (json!({ "roles": ["viewer", "a b"] }), "a role of its roles"),
        (json!({ "pools": "gpu" }), "pools"),
        (json!({ "pools": [] }), "pools"),
        (json!({ "pools": [1] }), "pools"),
        (json!({ "pools": ["a/b"] }), "pools"),
        (json!({ "payloads": "yes" }), "payloads"),
        (json!({ "actor_type": "a b" }), "actor_type"),
    ];
    for (said, named) in cases {
        let Err(TokenError::Nameless(text)) = keys.verify(&signer.sign(&claims_with(&said))).await else {
            panic!("{said} must be refused");
        };
        assert!(text.contains(named), "{named} is missing in: {text}");
    }
}

#[tokio::test]
async fn times_are_kept_to_with_the_leeway_and_by_the_callers_clock() {
    let (signer, keys) = setup();
    // (claims, seconds from now, believed)
    let cases = [
        (json!({ "exp": NOW }), 29, true),
        (json!({ "exp": NOW }), 30, false),
        (json!({ "exp": f64::from(i32::MAX) * 10.0 }), 1_000, true),
        (json!({ "exp": (NOW * 2) as f64 + 0.5 }), 0, true),
        (json!({ "exp": -1 }), 0, false),
        (json!({ "nbf": NOW + 31 }), 0, false),
        (json!({ "nbf": NOW + 30 }), 0, true),
        (json!({ "nbf": null }), 0, true),
        (json!({ "iat": NOW + 31 }), 0, false),
        (json!({ "iat": NOW + 31 }), 1, true),
    ];
    for (said, later, believed) in cases {
        let answer = keys.tokens.verify(&signer.sign(&claims_with(&said)), at(later)).await;
        match believed {
            true => assert!(answer.is_ok(), "{said} at {later}: {answer:?}"),
            false => assert_eq!(answer, Err(TokenError::Expired), "{said} at {later}"),
        }
    }
}

#[tokio::test]
async fn a_token_without_an_end_or_with_times_that_are_none_is_malformed() {
    let (signer, keys) = setup();
    let cases = [json!({ "exp": null }), json!({ "exp": "tomorrow" }), json!({ "nbf": "now" }), json!({ "iat": [] })];
    for said in cases {
        let answer = keys.verify(&signer.sign(&claims_with(&said))).await;
        assert!(matches!(answer, Err(TokenError::Malformed(_))), "{said}: {answer:?}");
    }
    let list = keys.verify(&signer.sign(&Value::Array(Vec::new()))).await;
    assert!(matches!(list, Err(TokenError::Malformed(_))));
}

#[tokio::test]
async fn tokens_of_others_and_for_others_are_told_apart() {
    let (signer, keys) = setup();
    let cases = [
        (json!({ "iss": "https://evil.example" }), "issuer"),
        (json!({ "iss": null }), "issuer"),
        (json!({ "iss": ["https://id.example"] }), "issuer"),
        (json!({ "aud": "other" }), "audience"),
        (json!({ "aud": ["other", 5] }), "audience"),
        (json!({ "aud": [] }), "audience"),
        (json!({ "aud": null }), "audience"),
    ];
    for (said, what) in cases {
        assert_eq!(keys.verify(&signer.sign(&claims_with(&said))).await, Err(TokenError::NotForUs(what)), "{said}");
    }
}
