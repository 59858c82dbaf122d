//! A cluster whose servers speak TLS only and ask for certificates.

use lockgate_testbed::{CertificatePair, Nats, Papers, Postgres, Redis};

use super::super::harness::{Server, binary};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_over_tls_runs_jobs_and_the_doctor_says_how_it_is_connected() {
    let papers = Papers::new().expect("papers");
    let postgres = Postgres::start_tls(&papers).expect("PostgreSQL");
    let (redis, nats) = (Redis::start_tls(&papers).expect("Redis"), Nats::start_tls(&papers).expect("NATS"));
    let CertificatePair { cert, key } = papers.client();
    let mut words: Vec<String> = Vec::new();
    for (server, url) in [("database", postgres.tls_url()), ("redis", redis.tls_url()), ("nats", nats.tls_url())] {
        words.extend([format!("--{server}-url"), url]);
        for (file, path) in [("ca", &papers.ca()), ("cert", &cert), ("key", &key)] {
            words.extend([format!("--{server}-tls-{file}"), path.display().to_string()]);
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let server = Server::start(&words).await;
    let echoed = server.cli(&["submit", "job.echo", "--wait"]).await;
    assert!(echoed.status.success(), "{echoed:?}");

    let doctor = binary().arg("doctor").args(&words).output().await.expect("it runs");
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert_eq!(text.matches("TLS, both sides").count(), 3, "{text}");
    // The three words about Redis' files, each with its file.
    let at = words.iter().position(|word| *word == "--redis-tls-ca").expect("given");
    let fewer = [&words[..at], &words[at + 6..]].concat();
    let doctor = binary().arg("doctor").args(fewer).output().await.expect("it runs");
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(text.contains("REDIS_TLS_CA"), "the variable to set is named: {text}");
}
