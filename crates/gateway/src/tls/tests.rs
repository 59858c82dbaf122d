use std::path::Path;

use super::*;
use crate::certificates::{Authority, Folder, Pair};

fn loaded(folder: &Folder, pair: &Pair) -> ListenerTls {
    let (cert, key) = folder.write_pair(pair);
    ListenerTls::load(cert, key, None).unwrap()
}

/// What is in force, to tell one from another.
fn in_force(tls: &ListenerTls) -> Arc<ServerConfig> {
    tls.shared.current.lock().config.clone()
}

#[test]
fn files_that_cannot_be_used_are_named_with_what_to_give_instead() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let (cert, key) = folder.write_pair(&authority.server());
    let other_key = folder.write("other.pem", &authority.server().key);
    let empty = folder.write("empty.pem", "");
    let missing = Path::new("/no/such/file").to_owned();
    let cases = [
        (ListenerTls::load(missing.clone(), key.clone(), None), "/no/such/file", "may read"),
        (ListenerTls::load(cert.clone(), missing.clone(), None), "/no/such/file", "may read"),
        (ListenerTls::load(cert.clone(), key.clone(), Some(missing)), "/no/such/file", "may read"),
        (ListenerTls::load(empty.clone(), key.clone(), None), "empty.pem", "give a PEM file with the server's own first"),
        (ListenerTls::load(key.clone(), key.clone(), None), "key.pem", "no certificate"),
        (ListenerTls::load(cert.clone(), empty.clone(), None), "empty.pem", "not encrypted"),
        (ListenerTls::load(cert.clone(), other_key, None), "other.pem", "made together"),
        (ListenerTls::load(cert.clone(), key.clone(), Some(empty)), "empty.pem", "sign those of clients"),
    ];
    for (result, file, advice) in cases {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(file) && error.contains(advice), "{file}, {advice}: {error}");
    }
    assert!(ListenerTls::load(cert.clone(), key, Some(cert)).is_ok());
}

#[test]
fn nothing_of_a_key_is_printed() {
    let (folder, pair) = (Folder::new(), Authority::new().server());
    let text = format!("{:?}", loaded(&folder, &pair));
    assert!(text.contains("cert.pem") && !text.contains("BEGIN"), "{text}");
}

#[test]
fn the_answer_to_a_plain_request_is_as_long_as_it_says() {
    let text = std::str::from_utf8(PLAIN_ANSWER).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with(&format!("content-length: {}", body.len())), "{} bytes", body.len());
}

#[tokio::test(start_paused = true)]
async fn new_files_are_taken_up_within_seconds_and_bad_ones_are_not() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let tls = loaded(&folder, &authority.server());
    let watching = tokio::spawn(tls.clone().watch());
    let first = in_force(&tls);

    // Half of a new pair, as it looks while somebody replaces one file after the other.
    let renewed = authority.server();
    folder.write("cert.pem", &format!("{}\n", renewed.cert));
    sleep(LOOK_EVERY * 2).await;
    assert!(Arc::ptr_eq(&first, &in_force(&tls)), "a key that does not belong to the certificate is not used");

    folder.write("key.pem", &format!("{}\n", renewed.key));
    sleep(LOOK_EVERY * 2).await;
    let second = in_force(&tls);
    assert!(!Arc::ptr_eq(&first, &second));
    sleep(LOOK_EVERY * 2).await;
    assert!(Arc::ptr_eq(&second, &in_force(&tls)), "files that stay the same are not read again");
    watching.abort();
}
