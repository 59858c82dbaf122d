//! A server that speaks TLS only and asks for certificates.

use lockgate_ports::Upkeep;
use lockgate_postgres::{ConnectOptions, PostgresStore, migrate};
use lockgate_testbed::{Papers, Postgres};
use lockgate_tls::{Clear, FileNames, Tls, TlsPaths};

use super::stage::server;

const NAMES: FileNames = FileNames { ca: "DATABASE_TLS_CA", cert: "DATABASE_TLS_CERT", key: "DATABASE_TLS_KEY" };

fn tls(authority: &Papers, client: Option<&Papers>) -> Tls {
    let shown = client.map(Papers::client);
    let (cert, key) = shown.map(|pair| (pair.cert, pair.key)).unzip();
    TlsPaths { ca: Some(authority.ca()), cert, key }.read(NAMES).unwrap()
}

async fn refused(url: &str, tls: &Tls) -> String {
    match ConnectOptions::of(url, tls, Clear::HereOnly).await {
        Ok(_) => panic!("{url} was taken"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_store_over_tls_is_for_those_who_believe_each_other() {
    let (papers, strangers) = (Papers::new().unwrap(), Papers::new().unwrap());
    let server = Postgres::start_tls(&papers).unwrap();
    let good = tls(&papers, Some(&papers));
    let options = ConnectOptions::of(&server.tls_url(), &good, Clear::HereOnly).await.unwrap();
    migrate(&options).await.unwrap();
    PostgresStore::connect(options).await.unwrap().check().await.unwrap();

    let error = refused(&server.tls_url(), &tls(&strangers, Some(&papers))).await;
    assert!(error.contains("name the right one with DATABASE_TLS_CA"), "{error}");
    let by_number = server.tls_url().replace("localhost", "127.0.0.1");
    let error = refused(&by_number, &good).await;
    assert!(error.contains("write a name of the certificate into the address"), "{error}");
    let any_name = by_number.replace("verify-full", "verify-ca");
    assert!(ConnectOptions::of(&any_name, &good, Clear::HereOnly).await.is_ok(), "told in words to take any name");
    let error = refused(&any_name, &tls(&strangers, Some(&papers))).await;
    assert!(error.contains("DATABASE_TLS_CA"), "any name is not any authority: {error}");

    let error = refused(&server.tls_url(), &tls(&papers, None)).await;
    assert!(error.contains("client certificate"), "{error}");
    let error = refused(&server.tls_url(), &tls(&papers, Some(&strangers))).await;
    assert!(error.contains("DATABASE_TLS_CERT"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to_where_tls_is_asked_for() {
    let public = TlsPaths::default().read(NAMES).unwrap();
    let url = format!("postgres://lockgate@127.0.0.1:{}/postgres?sslmode=require", server().port());
    let error = refused(&url, &public).await;
    assert!(error.contains("server does not support TLS"), "{error}");
}
