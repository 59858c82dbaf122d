//! A server that speaks TLS only and asks for certificates.

use std::time::Duration;

use lockgate_core::time::Timestamp;
use lockgate_ports::Counters;
use lockgate_redis::{Options, RedisCounters, RedisLanes, examine};
use lockgate_testbed::{Papers, Redis};
use lockgate_tls::{Clear, FileNames, Tls, TlsPaths};

const NAMES: FileNames = FileNames { ca: "REDIS_TLS_CA", cert: "REDIS_TLS_CERT", key: "REDIS_TLS_KEY" };

fn tls(authority: &Papers, client: Option<&Papers>) -> Tls {
    let shown = client.map(Papers::client);
    let (cert, key) = shown.map(|pair| (pair.cert, pair.key)).unzip();
    TlsPaths { ca: Some(authority.ca()), cert, key }.read(NAMES).unwrap()
}

fn options(url: String, tls: &Tls) -> Options {
    let patient = Options { response_timeout: Duration::from_secs(10), ..Options::new(url, "default") };
    patient.secured(tls, Clear::HereOnly).unwrap()
}

async fn refused(url: String, tls: &Tls) -> String {
    let options = options(url, tls);
    let lanes = RedisLanes::connect(&options).await.err().expect("refused").to_string();
    let looked = examine(&options, || Timestamp::from_millis(0)).await.expect_err("refused").to_string();
    assert!(looked.contains("_TLS_C") || looked == lanes, "{looked}");
    lanes
}

#[tokio::test]
async fn lanes_and_counters_over_tls_are_for_those_who_believe_each_other() {
    let (papers, strangers) = (Papers::new().unwrap(), Papers::new().unwrap());
    let server = Redis::start_tls(&papers).unwrap();
    let good = tls(&papers, Some(&papers));
    let options = options(server.tls_url(), &good);
    RedisLanes::connect(&options).await.unwrap();
    RedisCounters::connect(&options).await.unwrap().add("seen", 1).await.unwrap();

    let error = refused(server.tls_url(), &tls(&strangers, Some(&papers))).await;
    assert!(error.contains("name the right one with REDIS_TLS_CA"), "{error}");
    let error = refused(server.tls_url().replace("localhost", "127.0.0.1"), &good).await;
    assert!(error.contains("write a name of the certificate into the address"), "{error}");
    let error = refused(server.tls_url(), &tls(&papers, None)).await;
    assert!(error.contains("give REDIS_TLS_CERT and REDIS_TLS_KEY"), "{error}");
}
