//! Outbox rows arrive in order, once for a reader that compares message ids.

use std::sync::Arc;

use async_nats::jetstream;
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_nats::{ConnectionHealth, DeliveryTerms, Relay, Transport};
use lockgate_ports::{OutboxEntry, OutboxRow, Outlet};
use lockgate_testbed::Nats;

use crate::common::{entropy, options, server, until};

fn row(id: i64, job: &str, sink: &str) -> OutboxRow {
    let entry = OutboxEntry { sink: sink.into(), body: Json::trusted(format!("{id}")) };
    OutboxRow { id, job_id: job.into(), at: Timestamp::from_millis(1_000 + id), entry }
}

async fn relay(nats: &Nats) -> (Arc<Transport>, Relay) {
    let transport = Arc::new(Transport::connect(&options(nats), entropy()).await.expect("the options are fine"));
    (Arc::clone(&transport), Relay::new(transport, DeliveryTerms::default()))
}

/// The stream of a client that listens to `events.>`.
async fn events(nats: &Nats) -> jetstream::stream::Stream {
    let jetstream = jetstream::new(async_nats::connect(nats.url()).await.expect("NATS answers"));
    let config =
        jetstream::stream::Config { name: "EVENTS".into(), subjects: vec!["events.>".into()], ..Default::default() };
    jetstream.create_stream(config).await.expect("created")
}

async fn stored(stream: &jetstream::stream::Stream) -> Vec<String> {
    let last = stream.get_info().await.expect("NATS answers").state.last_sequence;
    let mut bodies = Vec::new();
    for sequence in 1..=last {
        let message = stream.get_raw_message(sequence).await.expect("stored");
        bodies.push(String::from_utf8(message.payload.to_vec()).expect("text"));
    }
    bodies
}

#[tokio::test]
async fn rows_of_a_job_arrive_in_order_and_once() {
    let nats = server();
    let stream = events(&nats).await;
    let (_, relay) = relay(&nats).await;
    let rows = || vec![row(4, "b", "nats:events.x"), row(1, "a", "nats:events.x"), row(3, "a", "nats:events.y")];
    let relayed = relay.deliver(rows()).await;
    assert_eq!(relayed.failed, []);
    assert_eq!(relayed.done, [1, 4, 3]);
    assert!(relay.serves("nats:events.x") && !relay.serves("webhook:x"));
    let bodies = stored(&stream).await;
    let place = |body: &str| bodies.iter().position(|stored| stored == body);
    assert!(place("1") < place("3"), "{bodies:?}");
    assert_eq!(relay.deliver(rows()).await.done.len(), 3, "a row that is there already is acknowledged");
    assert_eq!(stored(&stream).await.len(), 3);
    let message = stream.get_raw_message(1).await.expect("stored");
    let id = message.headers.get("Nats-Msg-Id").map(ToString::to_string);
    assert!(id.is_some_and(|id| ["test:outbox:1:1001", "test:outbox:4:1004"].contains(&id.as_str())));
    assert_eq!(message.headers.get("content-type").map(ToString::to_string).as_deref(), Some("application/json"));
}

#[tokio::test]
async fn nothing_overtakes_a_row_of_its_job_that_failed() {
    let nats = server();
    let stream = events(&nats).await;
    let (_, relay) = relay(&nats).await;
    let rows = vec![row(1, "a", "nats:nowhere"), row(2, "a", "nats:events.x"), row(3, "b", "nats:events.x")];
    let relayed = relay.deliver(rows).await;
    assert_eq!(relayed.done, [3]);
    assert_eq!(relayed.failed.len(), 1);
    assert!(relayed.failed[0].0 == 1 && relayed.failed[0].1.contains("nowhere"), "{relayed:?}");
    assert_eq!(stored(&stream).await, ["3"]);
}

#[tokio::test]
async fn a_subject_that_cannot_be_is_an_error_of_its_row() {
    let nats = server();
    events(&nats).await;
    let (_, relay) = relay(&nats).await;
    let relayed = relay.deliver(vec![row(1, "a", "nats:"), row(2, "b", "nats:a b"), row(3, "c", "nats:events.x")]).await;
    assert_eq!(relayed.done, [3]);
    assert_eq!(relayed.failed.len(), 2);
}

/// Thousands at once are more than may wait for their acknowledgements: they take turns.
#[tokio::test]
async fn many_rows_are_published_side_by_side() {
    let nats = server();
    let stream = events(&nats).await;
    let (_, relay) = relay(&nats).await;
    let rows = (0..5_000).map(|n| row(n, &format!("job-{}", n % 2_500), "nats:events.x")).collect();
    let relayed = relay.deliver(rows).await;
    assert_eq!((relayed.done.len(), relayed.failed.len()), (5_000, 0));
    assert_eq!(stream.get_info().await.expect("NATS answers").state.messages, 5_000);
}

#[tokio::test]
async fn nothing_is_delivered_while_nats_is_away_and_all_of_it_after() {
    let mut nats = server();
    events(&nats).await;
    let (transport, relay) = relay(&nats).await;
    let rows = || vec![row(1, "a", "nats:events.x"), row(3, "b", "nats:events.x")];
    nats.kill();
    until("the loss is noticed", async || transport.health() != ConnectionHealth::Connected).await;
    assert!(relay.away().is_some());
    let relayed = relay.deliver(rows()).await;
    assert_eq!((relayed.done.len(), relayed.failed.len()), (0, 2));
    nats.restart().expect("NATS starts again");
    until("the connection is back", async || relay.away().is_none()).await;
    until("the rows are relayed", async || relay.deliver(rows()).await.done.len() == 2).await;
}

/// No operator made the stream, and a server that was wiped has forgotten it.
#[tokio::test]
async fn the_stream_of_dead_letters_is_made_whenever_it_is_gone() {
    let nats = server();
    let (_, relay) = relay(&nats).await;
    let jetstream = jetstream::new(async_nats::connect(nats.url()).await.expect("NATS answers"));
    assert_eq!(relay.deliver(vec![row(1, "a", Relay::DEAD_LETTERS)]).await.done, [1]);
    let stream = jetstream.get_stream("LOCKGATE_DLQ").await.expect("made");
    assert_eq!(stored(&stream).await, ["1"]);
    jetstream.delete_stream("LOCKGATE_DLQ").await.expect("deleted behind our back");
    until("it is made again", async || relay.deliver(vec![row(2, "a", Relay::DEAD_LETTERS)]).await.done == [2]).await;
    let stream = jetstream.get_stream("LOCKGATE_DLQ").await.expect("made again");
    assert_eq!(stored(&stream).await, ["2"]);
}
