//! A server that speaks TLS only and asks for certificates.

use lockgate_nats::{ConnectionHealth, NatsBus, Options, examine};
use lockgate_testbed::{Nats, Papers};
use lockgate_tls::{Clear, FileNames, Tls, TlsPaths};

use super::common::entropy;

const NAMES: FileNames = FileNames { ca: "NATS_TLS_CA", cert: "NATS_TLS_CERT", key: "NATS_TLS_KEY" };

fn tls(authority: &Papers, client: Option<&Papers>) -> Tls {
    let shown = client.map(Papers::client);
    let (cert, key) = shown.map(|pair| (pair.cert, pair.key)).unzip();
    TlsPaths { ca: Some(authority.ca()), cert, key }.read(NAMES).expect("good files")
}

fn options(url: String, tls: &Tls) -> Options {
    Options::new(vec![url], "test").secured(tls, Clear::HereOnly).expect("a good address")
}

async fn refused(url: String, tls: &Tls) -> String {
    examine(&options(url, tls)).await.expect_err("refused").to_string()
}

#[tokio::test]
async fn a_bus_over_tls_is_for_those_who_believe_each_other() {
    let (papers, strangers) = (Papers::new().expect("made"), Papers::new().expect("made"));
    let server = Nats::start_tls(&papers).expect("started");
    let good = tls(&papers, Some(&papers));
    let bus = NatsBus::connect(&options(server.tls_url(), &good), entropy()).await.expect("valid");
    assert_eq!(bus.health(), ConnectionHealth::Connected);
    assert!(examine(&options(server.tls_url(), &good)).await.is_ok());

    let error = refused(server.tls_url(), &tls(&strangers, Some(&papers))).await;
    assert!(error.contains("name the right one with NATS_TLS_CA"), "{error}");
    let error = refused(server.tls_url().replace("localhost", "127.0.0.1"), &good).await;
    assert!(error.contains("write a name of the certificate into the address"), "{error}");
    let error = refused(server.tls_url(), &tls(&papers, None)).await;
    assert!(error.contains("give NATS_TLS_CERT and NATS_TLS_KEY"), "{error}");
}
