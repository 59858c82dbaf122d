//! Outbox rows arrive in order, once for whoever looks at message ids.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use async_trait::async_trait;
use lockgate_core::request::Json;
use lockgate_nats::{Health, Relay, Transport};
use lockgate_ports::{OutboxEntry, OutboxRow, StoreError, Totals, Upkeep};
use lockgate_testbed::Nats;
use parking_lot::Mutex;

use crate::common::{entropy, options, server, until};

fn row(id: i64, job: &str, sink: &str) -> OutboxRow {
    let entry = OutboxEntry { sink: sink.into(), body: Json::trusted(format!("{id}")) };
    OutboxRow { id, job_id: job.into(), entry }
}

async fn relay(nats: &Nats) -> (Arc<Transport>, Relay) {
    let transport = Arc::new(Transport::connect(&options(nats), entropy()).await.expect("the options are fine"));
    (Arc::clone(&transport), Relay::new(transport))
}

/// A stream of somebody who listens to `events.>`.
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
    let rows = || {
        vec![
            row(4, "b", "nats:events.x"),
            row(1, "a", "nats:events.x"),
            row(2, "a", "webhook"),
            row(3, "a", "nats:events.y"),
        ]
    };
    let relayed = relay.publish(rows()).await;
    assert_eq!(relayed.failed, []);
    assert_eq!(relayed.done, [1, 4, 3], "the rows of other sinks are left alone");
    let bodies = stored(&stream).await;
    let place = |body: &str| bodies.iter().position(|stored| stored == body);
    assert!(place("1") < place("3"), "{bodies:?}");
    assert_eq!(relay.publish(rows()).await.done.len(), 3, "a row that is there already is acknowledged");
    assert_eq!(stored(&stream).await.len(), 3);
    let message = stream.get_raw_message(1).await.expect("stored");
    let id = message.headers.get("Nats-Msg-Id").map(ToString::to_string);
    assert!(id.is_some_and(|id| id.starts_with("test:outbox:")));
}

#[tokio::test]
async fn nothing_overtakes_a_row_of_its_job_that_failed() {
    let nats = server();
    let stream = events(&nats).await;
    let (_, relay) = relay(&nats).await;
    let rows = vec![row(1, "a", "nats:nowhere"), row(2, "a", "nats:events.x"), row(3, "b", "nats:events.x")];
    let relayed = relay.publish(rows).await;
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
    let relayed = relay.publish(vec![row(1, "a", "nats:"), row(2, "b", "nats:a b"), row(3, "c", "nats:events.x")]).await;
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
    let relayed = relay.publish(rows).await;
    assert_eq!((relayed.done.len(), relayed.failed.len()), (5_000, 0));
    assert_eq!(stream.get_info().await.expect("NATS answers").state.messages, 5_000);
}

#[derive(Default)]
struct Outbox(Mutex<Vec<OutboxRow>>);

#[async_trait]
impl Upkeep for Outbox {
    async fn outbox(&self, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        Ok(self.0.lock().iter().take(limit).cloned().collect())
    }

    async fn outbox_done(&self, ids: &[i64]) -> Result<(), StoreError> {
        self.0.lock().retain(|row| !ids.contains(&row.id));
        Ok(())
    }

    async fn prune(&self, _: Duration, _: usize) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        Ok(Totals::default())
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[tokio::test]
async fn rows_stay_until_they_are_acknowledged() {
    let mut nats = server();
    events(&nats).await;
    let (transport, relay) = relay(&nats).await;
    let outbox = Outbox::default();
    outbox.0.lock().extend([row(1, "a", "nats:events.x"), row(2, "a", "webhook"), row(3, "b", "nats:events.x")]);
    nats.kill();
    until("the loss is noticed", async || transport.health() != Health::Connected).await;
    let relayed = relay.drain(&outbox, 100).await.expect("the store is there");
    assert_eq!((relayed.done.len(), relayed.failed.len()), (0, 2));
    assert_eq!(outbox.0.lock().len(), 3);
    nats.restart().expect("NATS starts again");
    until("the connection is back", async || transport.health() == Health::Connected).await;
    until("the rows are relayed", async || {
        relay.drain(&outbox, 100).await.expect("the store is there");
        outbox.0.lock().len() == 1
    })
    .await;
    assert_eq!(&*outbox.0.lock()[0].entry.sink, "webhook");
}
