//! A worker that shows who it is, over TLS.

use std::path::PathBuf;

use lockgate_worker::{Payload, Tls, Worker, WorkerError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tonic::Status;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::edge::{Edge, Manners};
use crate::running::Running;

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, folder: TempDir::new().unwrap() }
    }

    /// Certificate and key for a name.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        (cert.pem(), key.serialize_pem())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A server that talks only to clients with a certificate of this authority.
    async fn edge(&self) -> Edge {
        let (cert, key) = self.issue("127.0.0.1");
        let config = ServerTlsConfig::new()
            .identity(Identity::from_pem(cert, key))
            .client_ca_root(Certificate::from_pem(self.issuer.pem()));
        Edge::start_with(config).await
    }
}

fn worker(url: String) -> Worker {
    Worker::connect(url).handle("echo", |_, payload: Payload| async { Ok(payload) })
}

#[tokio::test]
async fn a_worker_attaches_over_tls_with_its_certificate_and_its_credential() {
    let authority = Authority::new();
    let mut edge = authority.edge().await;
    let (cert, key) = authority.issue("worker.example");
    let tls = Tls {
        ca: Some(authority.file("ca.pem", &authority.issuer.pem())),
        identity: Some((authority.file("cert.pem", &cert), authority.file("key.pem", &key))),
    };
    let url = format!("https://{}", edge.address);
    let _running = Running::start(worker(url).credential("lgk_1_2").tls(tls));
    let attached = edge.accept().await;
    assert_eq!(attached.headers.get("authorization").unwrap(), "Bearer lgk_1_2");
}

#[tokio::test]
async fn without_a_credential_no_header_is_sent() {
    let mut edge = Edge::start(Manners::default()).await;
    let _running = Running::start(worker(edge.url()));
    assert!(edge.accept().await.headers.get("authorization").is_none());
}

#[tokio::test]
async fn a_credential_that_is_not_accepted_ends_the_worker_even_after_a_welcome() {
    let statuses = [
        (Status::unauthenticated("the key has expired"), "an API key or a token that is still good"),
        (Status::permission_denied("not for this pool"), "the role worker for its pool"),
    ];
    for (status, advice) in statuses {
        let mut edge = Edge::start(Manners::default()).await;
        let running = Running::start(worker(edge.url()).credential("lgk_1_2"));
        drop(edge.accept().await);
        edge.refuse(status.clone()).await;
        let error = running.ended().await.unwrap_err();
        assert!(matches!(&error, WorkerError::Refused(refused) if refused.code() == status.code()), "{error:?}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(status.message()) && text.contains(advice), "{text}");
        assert!(!text.contains("lgk_1_2"), "{text}");
    }
}

#[tokio::test]
async fn a_credential_is_never_sent_in_the_clear_over_a_network() {
    let running = Running::start(worker("http://192.0.2.1:8080".to_owned()).credential("lgk_1_2"));
    let error = running.ended().await.unwrap_err().to_string();
    assert!(error.contains("https://") && !error.contains("lgk_1_2"), "{error}");
}
