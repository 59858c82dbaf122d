//! What the doors do while something is away.

use std::sync::Arc;
use std::time::Duration;

use lockgate_nats::{DeliveryTerms, MemoryGuard};

use crate::common::engine::FakeEngine;
use crate::common::stage::{SUBMIT, Stage, jobs};
use crate::common::until;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn an_outage_costs_no_delivery() {
    let terms = DeliveryTerms { ack_wait: 2 * SECOND, max_deliver: 6, ..DeliveryTerms::default() };
    let stage = Stage::new(FakeEngine::new(), terms).await;
    stage.engine.set_away(true);
    let subjects = stage.open().await;
    stage.send(None, jobs(&["a"])).await;
    // At least 125 ms each: longer than JetStream waits for an acknowledgement.
    stage.engine.was_called(30).await;
    let consumer = stage.consumer().await;
    assert_eq!((consumer.num_redelivered, consumer.delivered.consumer_sequence), (0, 1));
    assert_eq!(subjects.counters().held, 1);
    stage.engine.set_away(false);
    stage.engine.has(&["a"]).await;
    stage.is_empty().await;
    assert_eq!(subjects.counters().dead, 0);
}

#[tokio::test]
async fn a_message_that_waits_does_not_keep_the_others_out() {
    let stage = Stage::new(FakeEngine::new(), DeliveryTerms::default()).await;
    let subjects = stage.open().await;
    stage.send(None, jobs(&["later"])).await;
    until("it is in hand", async || subjects.counters().held == 1).await;
    // More than one request brings.
    for n in 0..600 {
        stage.send(None, jobs(&[&format!("j{n}")])).await;
    }
    until("the others are committed", async || stage.engine.jobs().len() == 600).await;
    assert_eq!(subjects.counters().held, 1);
}

#[tokio::test]
async fn what_is_in_hand_at_a_stop_is_taken_by_others_at_once() {
    let stage = Stage::new(FakeEngine::new(), DeliveryTerms::default()).await;
    stage.engine.set_away(true);
    let subjects = stage.open().await;
    stage.send(None, jobs(&["a"])).await;
    until("it is in hand", async || subjects.counters().held == 1).await;
    subjects.stop().await;
    stage.engine.set_away(false);
    let _others = stage.open().await;
    stage.engine.has(&["a"]).await;
    stage.is_empty().await;
}

#[tokio::test]
async fn what_a_dead_process_had_comes_again_and_what_kills_us_each_time_does_not() {
    let terms = DeliveryTerms { ack_wait: SECOND, max_deliver: 7, ..DeliveryTerms::default() };
    let stage = Stage::new(FakeEngine::closed(), terms).await;
    stage.open().await.stop().await;
    stage.send(Some("killer"), jobs(&["a"])).await;
    for delivery in 1..=2 {
        let subjects = stage.open().await;
        stage.engine.was_called(delivery).await;
        drop(subjects);
    }
    let subjects = stage.open().await;
    until("it is buried", async || subjects.counters().dead == 1).await;
    let (headers, _) = stage.dead_letter().await;
    assert!(headers.get("x-lockgate-reason").is_some_and(|why| why.as_str().contains("delivered 3 times")), "{headers:?}");
    assert_eq!(stage.engine.calls(), 2);
    stage.is_empty().await;
}

#[tokio::test]
async fn a_message_is_not_terminated_before_its_dead_letter_is_stored() {
    let stage = Stage::new(FakeEngine::new(), DeliveryTerms::default()).await;
    let subjects = stage.open().await;
    let jetstream = stage.jetstream();
    jetstream.delete_stream("LOCKGATE_DLQ").await.expect("deleted");
    stage.send(Some("m-1"), vec![0xff]).await;
    until("the stream of dead letters is made again", async || jetstream.get_stream("LOCKGATE_DLQ").await.is_ok()).await;
    assert_eq!(stage.stream("LOCKGATE_SUBMIT").await.state.messages, 1);
    until("it is buried", async || subjects.counters().dead == 1).await;
    stage.dead_letter().await;
    stage.is_empty().await;
}

#[tokio::test]
async fn a_restarted_server_gives_what_it_stored() {
    let mut stage = Stage::new(FakeEngine::new(), DeliveryTerms::default()).await;
    stage.engine.set_away(true);
    let subjects = stage.open().await;
    stage.send(None, jobs(&["a"])).await;
    until("it is in hand", async || subjects.counters().held == 1).await;
    stage.nats.restart().expect("NATS starts again");
    stage.engine.set_away(false);
    stage.engine.has(&["a"]).await;
    stage.has_streams().await;
    stage.is_empty().await;
    stage.ask(SUBMIT, None, jobs(&["b"])).await;
}

#[tokio::test]
async fn a_wiped_server_gets_its_streams_again() {
    let mut stage = Stage::new(FakeEngine::new(), DeliveryTerms::default()).await;
    let _doors = stage.open().await;
    stage.ask(SUBMIT, None, jobs(&["a"])).await;
    stage.nats.wipe().expect("NATS starts again");
    stage.has_streams().await;
    stage.send(None, jobs(&["b"])).await;
    stage.engine.has(&["b"]).await;
    stage.ask(SUBMIT, None, jobs(&["c"])).await;
    stage.is_empty().await;
}

#[tokio::test]
async fn a_stream_that_somebody_deleted_is_made_again() {
    let stage = Stage::new(FakeEngine::new(), DeliveryTerms::default()).await;
    let _doors = stage.open().await;
    let jetstream = stage.jetstream();
    jetstream.delete_stream("LOCKGATE_SUBMIT").await.expect("deleted");
    stage.has_streams().await;
    stage.send(None, jobs(&["a"])).await;
    stage.engine.has(&["a"]).await;
}

#[tokio::test]
async fn a_deleted_stream_is_made_again_beside_a_message_that_waits() {
    let stage = Stage::new(FakeEngine::new(), DeliveryTerms::default()).await;
    let subjects = stage.open().await;
    stage.send(None, jobs(&["later"])).await;
    until("it is in hand", async || subjects.counters().held == 1).await;
    stage.jetstream().delete_stream("LOCKGATE_SUBMIT").await.expect("deleted");
    stage.has_streams().await;
    stage.send(None, jobs(&["a"])).await;
    stage.engine.has(&["a"]).await;
    assert_eq!(subjects.counters().held, 1);
}

#[tokio::test]
async fn doors_open_before_their_server_does() {
    let mut stage = Stage::new(FakeEngine::new(), DeliveryTerms::default()).await;
    stage.nats.kill();
    let _doors = stage.open_without_server(Arc::new(MemoryGuard::default())).await;
    stage.nats.restart().expect("NATS starts");
    stage.has_streams().await;
    stage.ask(SUBMIT, None, jobs(&["a"])).await;
}
