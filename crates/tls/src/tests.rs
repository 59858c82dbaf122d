use std::io;
use std::path::PathBuf;

use rcgen::{CertificateParams, KeyPair};
use rustls::{AlertDescription, CertificateError};
use tempfile::TempDir;

use super::*;

const NAMES: FileNames = FileNames { ca: "X_TLS_CA", cert: "X_TLS_CERT", key: "X_TLS_KEY" };

struct Shelf(TempDir);

impl Shelf {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn put(&self, name: &str, text: &str) -> Option<PathBuf> {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    }
}

/// A certificate and its key.
fn pair() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    (CertificateParams::default().self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[test]
fn what_is_wrong_with_a_file_is_said_by_the_name_of_its_variable() {
    let shelf = Shelf::new();
    let (cert, key) = pair();
    let (good, good_key) = (shelf.put("cert", &cert), shelf.put("key", &key));
    let (none, other) = (shelf.put("none", "nothing"), shelf.put("other", &pair().1));
    let missing = Some(PathBuf::from("/no/such/file"));
    let cases = [
        (TlsPaths { ca: missing, ..TlsPaths::default() }, "X_TLS_CA /no/such/file: "),
        (TlsPaths { ca: none.clone(), ..TlsPaths::default() }, "there is no certificate in it"),
        (TlsPaths { cert: good.clone(), ..TlsPaths::default() }, "X_TLS_CERT without X_TLS_KEY"),
        (TlsPaths { key: good_key.clone(), ..TlsPaths::default() }, "X_TLS_KEY without X_TLS_CERT"),
        (TlsPaths { cert: good.clone(), key: none, ..TlsPaths::default() }, "there is no private key in it"),
        (TlsPaths { cert: good.clone(), key: other, ..TlsPaths::default() }, "X_TLS_KEY is not the key of the certificate"),
    ];
    for (files, expected) in cases {
        let error = files.read(NAMES).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let whole = TlsPaths { ca: good.clone(), cert: good, key: good_key }.read(NAMES).unwrap();
    assert!(whole.has_authority() && whole.shows_certificate());
    let printed = format!("{whole:?}");
    assert!(!printed.contains("PRIVATE") && !printed.contains("BEGIN"), "{printed}");
    assert!(!TlsPaths::default().read(NAMES).unwrap().is_given(), "the public authorities need no file");
}

#[test]
fn a_failed_handshake_says_what_to_do() {
    let tls = TlsPaths::default().read(NAMES).unwrap();
    let wrapped = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
    let cases = [
        (rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer), "name the right one with X_TLS_CA"),
        (rustls::Error::InvalidCertificate(CertificateError::NotValidForName), "write a name of the certificate"),
        (rustls::Error::InvalidCertificate(CertificateError::Expired), "is not good"),
        (rustls::Error::AlertReceived(AlertDescription::CertificateRequired), "give X_TLS_CERT and X_TLS_KEY"),
        (rustls::Error::AlertReceived(AlertDescription::BadCertificate), "it asks its clients for certificates"),
        (rustls::Error::AlertReceived(AlertDescription::UnknownCA), "does not believe the certificate that we show"),
    ];
    for (error, expected) in cases {
        let told = tls.explain(&wrapped(error)).unwrap();
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    assert!(tls.explain(&reset).unwrap().contains("if it asks its clients for certificates"));
    assert_eq!(tls.explain(&io::Error::from(io::ErrorKind::ConnectionRefused)), None, "nothing to do with TLS");
}

#[test]
fn this_machine_is_known_by_its_loopback_names_only() {
    for here in ["localhost", "LocalHost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"] {
        assert!(is_here(here), "{here}");
    }
    for elsewhere in ["", "localhost.example", "127.0.0.1.example", "10.0.0.1", "0.0.0.0", "db"] {
        assert!(!is_here(elsewhere), "{elsewhere}");
    }
}
