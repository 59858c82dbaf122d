//! What doorbells do while NATS is away.

use std::time::Duration;

use futures::FutureExt;
use lockgate_nats::{ConnectionHealth, NatsBus, Options};
use lockgate_ports::{Bell, Bus, Ear};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::common::{PATIENCE, bus, entropy, options, server, until};

fn large_ring() -> Vec<Bell> {
    (0..100_000).map(|n| Bell::Job(format!("{n:036}").into())).collect()
}

async fn hears(ear: &Ear) {
    timeout(PATIENCE, ear.heard()).await.expect("a ring must be heard");
}

async fn is_away(bus: &NatsBus) {
    until("the loss is noticed", async || bus.health() != ConnectionHealth::Connected).await;
}

async fn is_back(bus: &NatsBus) {
    until("the connection is back", async || bus.health() == ConnectionHealth::Connected).await;
}

#[tokio::test]
async fn everyone_is_rung_once_when_a_server_is_back() {
    let mut nats = server();
    let (near, far) = (bus(&nats).await, bus(&nats).await);
    let (lanes, job) = (far.listen(Bell::Lanes), far.listen(Bell::Job("a".into())));
    let mut overheard = far.overhear();
    nats.kill();
    is_away(&near).await;
    is_away(&far).await;
    near.ring(vec![Bell::Lanes]).await;
    assert_eq!(near.counters().dropped, 1);
    assert!(lanes.heard().now_or_never().is_none());
    nats.restart().expect("NATS starts again");

    hears(&lanes).await;
    hears(&job).await;
    let batch = timeout(PATIENCE, overheard.next()).await.expect("a batch");
    assert!(batch.is_empty(), "nobody knows what was missed");
    assert!(lanes.heard().now_or_never().is_none(), "once is enough");

    is_back(&near).await;
    near.ring(vec![Bell::Job("a".into())]).await;
    hears(&job).await;
}

#[tokio::test]
async fn a_wiped_server_carries_rings_as_before() {
    let mut nats = server();
    let (near, far) = (bus(&nats).await, bus(&nats).await);
    nats.wipe().expect("NATS starts again");
    let lanes = far.listen(Bell::Lanes);
    hears(&lanes).await;
    is_back(&near).await;
    let received = far.counters().received;
    near.ring(vec![Bell::Lanes]).await;
    hears(&lanes).await;
    assert_eq!(far.counters().received, received + 1);
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_nobody() {
    let nats = server();
    let (near, far) = (bus(&nats).await, bus(&nats).await);
    let (own, other) = (near.listen(Bell::Lanes), far.listen(Bell::Lanes));
    nats.pause();
    // More than all buffers on the way hold.
    while near.counters().dropped == 0 {
        near.ring(large_ring()).now_or_never().expect("a ring never waits");
        tokio::task::yield_now().await;
    }
    near.ring(vec![Bell::Lanes]).now_or_never().expect("a ring never waits");
    hears(&own).await;
    nats.resume();
    is_back(&near).await;
    until("rings get through again", async || {
        near.ring(vec![Bell::Lanes]).await;
        timeout(Duration::from_millis(100), other.heard()).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_bus_starts_without_its_server_and_finds_it_later() {
    let mut nats = server();
    nats.kill();
    let early = NatsBus::connect(&options(&nats), entropy()).await.expect("the options are fine");
    let ConnectionHealth::Away(why) = early.health() else { panic!("nobody is there") };
    assert!(!why.is_empty());
    let lanes = early.listen(Bell::Lanes);
    early.ring(vec![Bell::Lanes]).await;
    hears(&lanes).await;
    nats.restart().expect("NATS starts");
    hears(&lanes).await;
    assert_eq!(early.health(), ConnectionHealth::Connected);
    bus(&nats).await.ring(vec![Bell::Lanes]).await;
    hears(&lanes).await;
}

#[tokio::test]
async fn installations_on_one_server_do_not_hear_each_other() {
    let nats = server();
    let near = bus(&nats).await;
    let others = Options { installation: "other".to_owned(), ..options(&nats) };
    let stranger = NatsBus::connect(&others, entropy()).await.expect("the options are fine");
    let friend = bus(&nats).await;
    let heard = friend.listen(Bell::Lanes);
    near.ring(vec![Bell::Lanes]).await;
    hears(&heard).await;
    assert_eq!(stranger.counters().received, 0);
}

#[tokio::test]
async fn words_of_a_newer_release_ring_everyone() {
    let nats = server();
    let bus = bus(&nats).await;
    let (lanes, job) = (bus.listen(Bell::Lanes), bus.listen(Bell::Job("a".into())));
    let newer = async_nats::connect(nats.url()).await.expect("NATS answers");
    newer.publish("lockgate.test.bell", vec![9, 9, 9].into()).await.expect("sent");
    hears(&lanes).await;
    hears(&job).await;
}

#[tokio::test]
async fn the_login_in_an_address_is_told_to_the_server() {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = server.local_addr().expect("bound");
    let options = Options::new(vec![format!("nats://ann:p%40ss@{address}")], "test");
    let connecting = tokio::spawn(async move { NatsBus::connect(&options, entropy()).await });
    let (mut stream, _) = server.accept().await.expect("a client");
    stream.write_all(b"INFO {\"max_payload\":1048576,\"headers\":true}\r\n").await.expect("told");
    let mut words = BufReader::new(stream).lines();
    let first = timeout(PATIENCE, words.next_line()).await.expect("words").expect("words").expect("words");
    assert!(first.starts_with("CONNECT"), "{first}");
    assert!(first.contains(r#""user":"ann""#) && first.contains(r#""pass":"p@ss""#), "{first}");
    connecting.abort();
}
