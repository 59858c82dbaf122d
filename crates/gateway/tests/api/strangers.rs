//! Those who show no credential: what they may ask, and how little of the server they can take.

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::support::Closed;

#[tokio::test]
async fn strangers_are_told_how_the_server_is_and_send_no_more_than_a_name() {
    let server = Closed::start().await;
    let mut health = HealthClient::new(server.channel().await);
    let long = HealthCheckRequest { service: "x".repeat(2_000) };
    assert_eq!(health.check(long.clone()).await.expect_err("too long").code(), Code::OutOfRange);
    assert_eq!(health.watch(long).await.expect_err("too long").code(), Code::OutOfRange);
    let named = HealthCheckRequest { service: "lockgate.v1.Scheduler".to_owned() };
    health.check(named.clone()).await.expect("an answer");
    let mut watched = health.watch(named).await.expect("a stream").into_inner();
    watched.message().await.expect("an unbroken stream").expect("a status");
}
