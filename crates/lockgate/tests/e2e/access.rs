//! Credentials and TLS as their users meet them.

use std::path::Path;

use jsonwebtoken::{EncodingKey, Header, encode};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::harness::Server;

async fn as_whom(server: &Server, key: &str, arguments: &[&str]) -> std::process::Output {
    let mut words = vec!["--api-key", key];
    words.extend(arguments);
    server.cli(&words).await
}

async fn said(server: &Server, key: &str, arguments: &[&str]) -> String {
    let output = as_whom(server, key, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

fn admin_key(server: &Server) -> String {
    let path = server.banner["admin_key_file"].as_str().expect("the first start tells where the key is");
    std::fs::read_to_string(path).expect("readable").trim().to_owned()
}

const ECHO: [&str; 3] = ["submit", "job.echo", "--wait"];

#[tokio::test]
async fn a_closed_server_answers_those_with_a_credential() {
    let mut server = Server::start(&["--auth"]).await;
    let admin = admin_key(&server);
    let nobody = server.cli(&["jobs"]).await;
    assert_eq!(nobody.status.code(), Some(1), "{nobody:?}");
    let text = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(text.contains("a credential is missing") && text.contains("LOCKGATE_API_KEY"), "{text}");
    // The built-in worker came in by itself.
    said(&server, &admin, &ECHO).await;

    let viewer = said(&server, &admin, &["auth", "key", "create", "ann", "--role", "viewer"]).await;
    assert!(said(&server, &viewer, &["auth", "whoami"]).await.contains("viewer"));
    said(&server, &viewer, &["jobs"]).await;
    let refused = as_whom(&server, &viewer, &ECHO).await;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("needs the role submitter or operator or admin"), "{text}");

    server.restart().await;
    assert_eq!(server.banner["admin_key_file"], Value::Null, "only the first start makes a key");
    said(&server, &admin, &ECHO).await;
    let id = viewer.split('_').nth(1).expect("an id");
    said(&server, &admin, &["auth", "key", "revoke", id]).await;
    assert!(!as_whom(&server, &viewer, &["jobs"]).await.status.success());

    let listed = said(&server, &admin, &["--json", "auth", "key", "list", "--all"]).await;
    for key in [&admin, &viewer] {
        let secret = key.rsplit('_').next().expect("a secret");
        assert!(!listed.contains(secret) && !server.banner.to_string().contains(secret));
        assert!(!holds(server.folder(), secret.as_bytes()), "a secret is in the data folder");
    }
}

#[tokio::test]
async fn what_a_credential_may_not_see_is_said_to_be_hidden() {
    let server = Server::start(&["--auth"]).await;
    let key = said(&server, &admin_key(&server), &["auth", "key", "create", "ann", "--role", "submitter"]).await;
    let words = [&ECHO[..], &["--job-id", "a", "--payload", "[1]"]].concat();
    let waited = as_whom(&server, &key, &words).await;
    assert!(waited.status.success() && waited.stdout.is_empty(), "no result is not a result of null: {waited:?}");
    assert!(String::from_utf8_lossy(&waited.stderr).contains("its result is hidden"), "{waited:?}");
    assert!(said(&server, &key, &["get", "a"]).await.contains("hidden, and so are environment and result"));
    let json: Value = serde_json::from_str(&said(&server, &key, &["--json", "get", "a"]).await).expect("JSON");
    assert_eq!((&json["payload_hidden"], &json["result"]), (&json!(true), &Value::Null));
}

#[tokio::test]
async fn the_last_administrator_stays_and_who_has_the_machine_makes_another_key() {
    let mut server = Server::start(&["--auth"]).await;
    let lost = admin_key(&server);
    let refused = as_whom(&server, &lost, &["auth", "key", "revoke", "0000000000000000"]).await;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("the last key of an administrator"), "{text}");

    // The key is lost; nothing of it is left but its row.
    let first = server.banner["admin_key_file"].as_str().expect("a file").to_owned();
    std::fs::remove_file(&first).expect("removed");
    server.stop().await;
    server.ask_for(&["--auth", "--new-admin-key"]);
    server.start_again().await;
    let new = admin_key(&server);
    assert_ne!(new, lost);
    said(&server, &new, &["auth", "key", "revoke", "0000000000000000"]).await;
    assert!(!as_whom(&server, &lost, &["jobs"]).await.status.success());
    assert!(said(&server, &new, &["auth", "whoami"]).await.contains("every tenant"));
    let made = said(&server, &new, &["--json", "audit", "list"]).await;
    let id = new.split('_').nth(1).expect("an id");
    assert!(made.contains("credential_created") && made.contains(id), "its making is on record: {made}");
}

#[tokio::test]
async fn approving_unseen_takes_a_word_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policy.yaml");
    let rule = "{id: ask, match: {topics: [job.noop]}, decision: require_approval, reason: look first}";
    std::fs::write(&path, format!("version: 1\ndefault: {{decision: allow}}\nrules:\n  - {rule}\n")).expect("written");
    let server = Server::start(&["--auth", "--policy", &path.display().to_string()]).await;
    let admin = admin_key(&server);
    let blind = said(&server, &admin, &["auth", "key", "create", "bob", "--role", "approver"]).await;
    said(&server, &admin, &["submit", "job.noop", "--job-id", "a", "--payload", "[\"plum\"]"]).await;
    let shown = said(&server, &blind, &["approvals", "show", "a"]).await;
    assert!(shown.contains("hidden from this credential") && !shown.contains("plum"), "{shown}");
    let refused = as_whom(&server, &blind, &["approvals", "approve", "a"]).await;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("does not show the payload"), "{text}");
    said(&server, &blind, &["approvals", "approve", "a", "--acknowledge-hidden"]).await;
    server.wait_for_output(&["--api-key", &admin, "get", "a"], "SUCCEEDED").await;
}

/// Whether a file other than the one made for the administrator has these bytes.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.is_file() && path.file_name().is_some_and(|name| name != "admin.key")).any(|path| {
        let content = std::fs::read(path).expect("readable");
        content.windows(bytes.len()).any(|part| part == bytes)
    })
}

#[tokio::test]
async fn a_worker_elsewhere_comes_in_with_its_own_key() {
    let server = Server::start(&["--auth", "--no-worker"]).await;
    let admin = admin_key(&server);
    let key = said(&server, &admin, &["auth", "key", "create", "w", "--role", "worker", "--pool", "default"]).await;
    let _worker = server.worker("w-1", 4, &["--api-key", &key]);
    said(&server, &admin, &ECHO).await;
    let mut stranger = server.worker("w-2", 4, &["--api-key", &admin]);
    let ended = stranger.wait().await.expect("a status");
    assert!(!ended.success(), "an administrator is no worker");
}

#[tokio::test]
async fn tokens_of_a_trusted_issuer_are_taken() {
    let secret = "a secret of at least thirty-two bytes, for certain";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.json");
    let key = json!({ "kty": "oct", "alg": "HS256", "kid": "k1", "k": base64url(secret.as_bytes()) });
    std::fs::write(&path, json!({ "keys": [key] }).to_string()).expect("written");
    let keys = path.display().to_string();
    let server =
        Server::start(&["--auth", "--jwt-issuer", "https://id.example", "--jwt-audience", "lockgate", "--jwt-keys", &keys])
            .await;
    let claims = |audience: &str| {
        json!({ "iss": "https://id.example", "aud": audience, "sub": "ann", "exp": 4_102_444_800_u64, "tenant": "acme",
            "roles": ["submitter"], "payloads": true })
    };
    let header = Header { kid: Some("k1".to_owned()), ..Header::default() };
    let signed = |claims: &Value| encode(&header, claims, &EncodingKey::from_secret(secret.as_bytes())).expect("signed");
    let me = said(&server, &signed(&claims("lockgate")), &["--json", "auth", "whoami"]).await;
    let me: Value = serde_json::from_str(&me).expect("JSON");
    assert_eq!((&me["actor"], &me["tenant"]), (&json!("ann"), &json!("acme")));
    said(&server, &signed(&claims("lockgate")), &ECHO).await;
    let refused = as_whom(&server, &signed(&claims("somebody-else")), &["jobs"]).await;
    assert!(String::from_utf8_lossy(&refused.stderr).contains("issued for somebody else"), "{refused:?}");
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |group: u32, at: u32| char::from(DIGITS[(group >> (18 - 6 * at) & 63) as usize]);
    bytes
        .chunks(3)
        .flat_map(|chunk| {
            let group = chunk.iter().enumerate().fold(0, |group, (n, byte)| group | u32::from(*byte) << (16 - 8 * n));
            (0..=u32::try_from(chunk.len()).expect("at most 3")).map(move |at| digit(group, at))
        })
        .collect()
}

#[tokio::test]
async fn the_api_speaks_tls_and_knows_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    certificates(folder.path());
    let (cert, key, ca) = (at("server.pem"), at("server.key"), at("ca.pem"));
    let server = Server::start(&["--auth", "--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca]).await;
    assert!(server.api.starts_with("https://"), "{}", server.api);
    let admin = admin_key(&server);
    let (client, client_key) = (at("client.pem"), at("client.key"));
    let trusted = |more: &[&'static str]| {
        let mut words = vec!["--tls-ca".to_owned(), ca.clone()];
        words.extend(more.iter().map(ToString::to_string));
        words
    };
    let run = async |words: Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        server.cli(&words).await
    };
    let with_key = |more: &[&'static str]| {
        [trusted(&[]), vec!["--api-key".into(), admin.clone()], trusted(more)[2..].to_vec()].concat()
    };
    assert!(run(with_key(&ECHO)).await.status.success());
    let untrusted = server.cli(&["--api-key", &admin, "jobs"]).await;
    assert_eq!(untrusted.status.code(), Some(3), "an unknown authority: {untrusted:?}");

    let bearer = |more: &[&'static str]| {
        let shown = vec!["--client-cert".into(), client.clone(), "--client-key".into(), client_key.clone()];
        [trusted(&[]), shown, trusted(more)[2..].to_vec()].concat()
    };
    assert!(!run(bearer(&["jobs"])).await.status.success(), "nobody said yet whom it lets in");
    let bind = ["auth", "certificate", "bind", "dns:client.example", "--name", "robot", "--role", "submitter"];
    assert!(run(with_key(&bind)).await.status.success());
    let me = run(bearer(&["auth", "whoami"])).await;
    assert!(String::from_utf8_lossy(&me.stdout).contains("robot"), "{me:?}");
}

#[tokio::test]
async fn a_kernel_that_asks_for_certificates_judges_for_those_who_show_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    certificates(folder.path());
    let (cert, key, ca) = (at("server.pem"), at("server.key"), at("ca.pem"));
    let listener = ["--auth", "--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca];
    let kernel = Server::start(&[&["--roles", "kernel"], &listener[..]].concat()).await;
    let admin = admin_key(&kernel);
    let bind = ["auth", "certificate", "bind", "dns:client.example", "--name", "governed", "--role", "scheduler"];
    let bound = kernel.cli(&[&["--tls-ca", &ca, "--api-key", &admin], &bind[..]].concat()).await;
    assert!(bound.status.success(), "{bound:?}");

    let remote = ["--safety-kernel", &kernel.api, "--safety-kernel-retry", "1s", "--safety-kernel-ca", &ca];
    let (client, client_key) = (at("client.pem"), at("client.key"));
    let shown = ["--safety-kernel-cert", &client, "--safety-kernel-tls-key", &client_key];
    let governed = Server::start(&[&remote[..], &shown].concat()).await;
    let echoed = governed.cli(&ECHO).await;
    assert!(echoed.status.success(), "{echoed:?}");

    let nobody = Server::start(&remote).await;
    let submitted = nobody.cli(&["submit", "job.echo", "--job-id", "waits"]).await;
    assert!(submitted.status.success(), "{submitted:?}");
    nobody.wait_for_output(&["why", "waits"], "Safety kernel unavailable").await;
}

/// An authority, and what it vouches for.
fn certificates(folder: &Path) {
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("written");
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::new(Vec::new()).expect("parameters");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    write("ca.pem", ca.self_signed(&ca_key).expect("signed").pem());
    let issuer = Issuer::new(ca, ca_key);
    let uses = [
        ("server", "127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth),
        ("client", "client.example", ExtendedKeyUsagePurpose::ClientAuth),
    ];
    for (name, host, purpose) in uses {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
        params.extended_key_usages = vec![purpose];
        write(&format!("{name}.pem"), params.signed_by(&key, &issuer).expect("signed").pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
}
