//! Jobs that call a server that is out for a while, and the metrics of a server in use.

use std::net::SocketAddr;
use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::JobState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::harness::{Server, all_jobs, job, submit, until_idle};

/// Closes every connection without an answer until then; afterwards it answers.
async fn out_until(well_from: Instant) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if Instant::now() < well_from {
                continue;
            }
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
            });
        }
    });
    address
}

/// `LOCKGATE_SOAK_OUTAGE_SECONDS` long, 8 s without it. The breaker opens at 10 failures of 20 calls and rests for 5 s, then 10.
#[tokio::test]
async fn jobs_that_call_a_host_which_is_out_for_a_while_wait_for_it_and_none_dies() {
    let seconds = std::env::var_os("LOCKGATE_SOAK_OUTAGE_SECONDS").and_then(|n| n.to_str()?.parse().ok()).unwrap_or(8);
    let address = out_until(Instant::now() + Duration::from_secs(seconds)).await;
    let server = Server::start(&["--allow-private-addresses"]).await;
    let mut client = server.client().await;
    let payload = format!(r#"{{"url":"http://{address}/"}}"#);
    let jobs = (0..40).map(|n| v1::NewJob { max_attempts: Some(2), ..job(&format!("call-{n}"), "job.http_call", &payload) });
    submit(&mut client, jobs.collect()).await.expect("submitted");
    until_idle(&mut client).await;
    let jobs = all_jobs(&mut client).await;
    let bad: Vec<&v1::Job> = jobs.iter().filter(|job| job.state() != JobState::Succeeded).collect();
    assert!(bad.is_empty(), "{} of {} jobs died: {bad:?}", bad.len(), jobs.len());
    let failures: u32 = jobs.iter().map(|job| job.failures).sum();
    println!("an outage of {seconds} s: 40 of 40 jobs succeeded, {failures} attempts spent");
    assert!(failures < 20, "only calls before the breaker opened spend attempts: {failures}");
    assert!(server.number("lockgate_worker_breaker_opens_total").await >= 1.0);
    assert!(server.number("lockgate_worker_breaker_refused_total").await >= 1.0);
    assert_eq!(server.number("lockgate_worker_breakers_open").await, 0.0);
}

#[tokio::test]
async fn every_attempt_of_the_shortest_jobs_is_measured() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    submit(&mut client, (0..480).map(|n| job(&format!("noop-{n}"), "job.noop", "null")).collect()).await.expect("submitted");
    until_idle(&mut client).await;
    let measured = server.number("lockgate_task_run_seconds_count").await;
    assert_eq!(measured, 480.0, "measured {measured} of 480 attempts");
    assert_eq!(server.number("lockgate_enqueue_to_start_seconds_count").await, 480.0);
}
