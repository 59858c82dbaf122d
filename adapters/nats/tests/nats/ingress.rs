//! Messages come in, are committed, and are answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use lockgate_nats::{DeliveryTerms, DuplicateGuard, GuardAway, MemoryGuard, MessageStanding};
use lockgate_proto::v1;
use prost::Message;

use crate::common::engine::FakeEngine;
use crate::common::stage::{RESULT, SUBMIT, Stage, error_code, headers, jobs, on_topic, submitted};
use crate::common::until;

async fn stage() -> Stage {
    Stage::new(FakeEngine::new(), DeliveryTerms::default()).await
}

#[tokio::test]
async fn a_question_is_answered_after_the_commit_and_never_before() {
    let stage = Stage::new(FakeEngine::closed(), DeliveryTerms::default()).await;
    let subjects = stage.open().await;
    let mut answer = Box::pin(stage.ask(SUBMIT, None, jobs(&["a", "b"])));
    tokio::select! {
        biased;
        _ = &mut answer => panic!("nothing is committed yet"),
        () = stage.engine.was_called(1) => {}
    }
    assert!((&mut answer).now_or_never().is_none());
    stage.engine.open();
    let answer = answer.await;
    assert_eq!(submitted(&answer).into_iter().map(|(id, _)| id).collect::<Vec<_>>(), ["a", "b"]);
    stage.is_empty().await;
    assert_eq!(subjects.counters().answered, 1);
    assert_eq!(subjects.counters().dead, 0);
}

#[tokio::test]
async fn the_copy_of_an_answered_question_is_not_taken_again() {
    let stage = stage().await;
    let subjects = stage.open().await;
    for n in 0..20 {
        stage.ask(SUBMIT, None, jobs(&[&format!("job-{n}")])).await;
    }
    stage.is_empty().await;
    until("every copy is counted", async || subjects.counters().doubled + subjects.counters().committed == 20).await;
    let total: usize = stage.engine.jobs().values().sum();
    assert_eq!(total as u64, 20 + subjects.counters().committed, "the guard saves the second look");
    assert!(subjects.counters().doubled > 0, "{:?}", subjects.counters());
}

#[tokio::test]
async fn what_is_sent_without_a_question_is_committed() {
    let stage = stage().await;
    let subjects = stage.open().await;
    stage.send(None, jobs(&["a", "b"])).await;
    stage.engine.has(&["a", "b"]).await;
    stage.is_empty().await;
    until("it is counted", async || subjects.counters().committed == 1).await;
}

#[tokio::test]
async fn what_is_sent_while_nobody_is_there_is_committed_later() {
    let stage = stage().await;
    stage.open().await.stop().await;
    stage.send(None, jobs(&["a"])).await;
    let _doors = stage.open().await;
    stage.engine.has(&["a"]).await;
    stage.is_empty().await;
}

#[tokio::test]
async fn nothing_stays_in_the_hands_of_a_process_that_stopped() {
    let stage = stage().await;
    for round in 0..5 {
        let subjects = stage.open().await;
        let sending = async {
            for n in 0..400 {
                stage.send(None, jobs(&[&format!("{round}-{n}")])).await;
            }
        };
        let stopping = async {
            stage.engine.has(&[&format!("{round}-100")]).await;
            subjects.stop().await;
        };
        futures::join!(sending, stopping);
        // Else they would wait for minutes.
        until("all that was given to it is dealt with", async || stage.consumer().await.num_ack_pending == 0).await;
    }
    let _doors = stage.open().await;
    stage.is_empty().await;
    assert_eq!(stage.engine.jobs().len(), 5 * 400);
}

#[tokio::test]
async fn a_question_asked_again_is_answered_again() {
    let stage = stage().await;
    let _doors = stage.open().await;
    let first = submitted(&stage.ask(SUBMIT, Some("m-1"), jobs(&[""])).await);
    // JetStream drops the second one: it has seen the id.
    let second = submitted(&stage.ask(SUBMIT, Some("m-1"), jobs(&[""])).await);
    assert_eq!(first[0].0, second[0].0, "the message id made the key");
    assert!(second[0].1, "nothing new was made");
    stage.is_empty().await;
}

#[tokio::test]
async fn results_are_acknowledged_by_token() {
    let stage = stage().await;
    let _doors = stage.open().await;
    let result =
        |token: &str| v1::Result { job_id: "a".into(), token: token.into(), outcome: None, ..v1::Result::default() };
    let report = v1::WorkerMessage { results: vec![result("t-1"), result("t-2")], ..v1::WorkerMessage::default() };
    let answer = stage.ask(RESULT, None, report.encode_to_vec()).await;
    let answer = v1::ServerMessage::decode(answer.payload).expect("an answer to a report");
    assert_eq!(answer.acks.iter().map(|ack| ack.token.as_str()).collect::<Vec<_>>(), ["t-1", "t-2"]);
    assert!(stage.engine.tokens().len() >= 2);
}

#[tokio::test]
async fn results_for_one_process_are_answered_there_and_kept_for_all() {
    let stage = stage().await;
    let subjects = stage.open().await;
    let result = v1::Result { job_id: "a".into(), token: "t-1".into(), outcome: None, ..v1::Result::default() };
    let report = v1::WorkerMessage { results: vec![result], ..v1::WorkerMessage::default() }.encode_to_vec();
    let here = stage.ask("sys.job.result.here", Some("t-1:result"), report.clone()).await;
    assert_eq!(v1::ServerMessage::decode(here.payload).expect("an answer").acks.len(), 1);
    subjects.stop().await;
    // Its process is gone: the next process takes it from the stream.
    let result = v1::Result { job_id: "b".into(), token: "t-2".into(), outcome: None, ..v1::Result::default() };
    let late = v1::WorkerMessage { results: vec![result], ..v1::WorkerMessage::default() }.encode_to_vec();
    stage.client.publish("sys.job.result.elsewhere", late.into()).await.expect("sent");
    let _doors = stage.open().await;
    until("it is committed", async || stage.engine.tokens().contains(&"t-2".to_owned())).await;
    until("the stream is empty", async || stage.stream("LOCKGATE_RESULT").await.state.messages == 0).await;
}

#[tokio::test]
async fn the_sender_is_who_the_headers_say() {
    let stage = stage().await;
    let _doors = stage.open().await;
    let mut headers = headers(None);
    headers.insert("x-lockgate-tenant", "acme");
    headers.insert("x-lockgate-actor", "ann");
    stage.client.request_with_headers(SUBMIT, headers, jobs(&["a"]).into()).await.expect("an answer");
    assert_eq!(stage.engine.callers()[0], "acme/ann");
}

#[tokio::test]
async fn who_asks_hears_why_not() {
    let stage = stage().await;
    let subjects = stage.open().await;
    let unreadable = stage.ask(SUBMIT, None, vec![0xff]).await;
    assert_eq!(error_code(&unreadable), Some("400"));
    let unnamed = stage.ask(SUBMIT, None, jobs(&[""])).await;
    assert_eq!(error_code(&unnamed), Some("400"));
    let poison = stage.ask(SUBMIT, None, on_topic("poison", &["a"])).await;
    assert_eq!(error_code(&poison), Some("400"));
    stage.engine.set_away(true);
    let away = stage.ask(SUBMIT, None, jobs(&["b"])).await;
    assert_eq!(error_code(&away), Some("503"));
    assert_eq!(subjects.counters().answered, 4);
    // The stream has it, too.
    stage.engine.set_away(false);
    stage.engine.has(&["b"]).await;
    stage.is_empty().await;
}

#[tokio::test]
async fn what_can_never_be_taken_is_a_dead_letter() {
    let stage = stage().await;
    let subjects = stage.open().await;
    let cases = [
        ("m-1", vec![0xff], "SubmitJobsRequest"),
        ("m-2", on_topic("poison", &["a"]), "this is poison"),
        ("m-3", on_topic("bad", &["b"]), "job 0: the topic is bad"),
    ];
    for (n, (id, payload, reason)) in cases.into_iter().enumerate() {
        stage.send(Some(id), payload.clone()).await;
        until("it is buried", async || subjects.counters().dead == n as u64 + 1).await;
        let (headers, body) = stage.dead_letter().await;
        assert_eq!(body, payload, "as it came");
        assert!(headers.get("x-lockgate-reason").is_some_and(|why| why.as_str().contains(reason)), "{headers:?}");
        assert_eq!(headers.get("x-lockgate-subject").map(|subject| subject.as_str()), Some(SUBMIT));
        assert_eq!(headers.get("Nats-Msg-Id").map(ToString::to_string), Some(format!("dead:{SUBMIT}:{id}")));
    }
    stage.is_empty().await;
    assert_eq!(stage.engine.jobs(), BTreeMap::new());
}

#[tokio::test]
async fn what_the_sender_asks_of_the_stream_does_not_keep_it_from_being_a_dead_letter() {
    let stage = stage().await;
    let subjects = stage.open().await;
    let mut headers = headers(Some("m-1"));
    headers.insert("Nats-Expected-Stream", "LOCKGATE_SUBMIT");
    headers.insert("x-mine", "kept");
    stage.client.publish_with_headers(SUBMIT, headers, on_topic("poison", &["a"]).into()).await.expect("sent");
    stage.client.flush().await.expect("sent");
    until("it is buried", async || subjects.counters().dead == 1).await;
    let (headers, _) = stage.dead_letter().await;
    assert_eq!(headers.get("x-mine").map(|mine| mine.as_str()), Some("kept"), "{headers:?}");
    assert!(headers.get("Nats-Expected-Stream").is_none(), "{headers:?}");
    stage.is_empty().await;
}

#[tokio::test]
async fn a_message_that_is_known_to_be_done_is_not_taken() {
    let stage = stage().await;
    let guard = Arc::new(MemoryGuard::default());
    guard.finish(&[format!("{SUBMIT}:m-1")]).await.expect("memory");
    let subjects = stage.open_with(guard).await;
    stage.send(Some("m-1"), jobs(&["a"])).await;
    stage.is_empty().await;
    until("it is counted", async || subjects.counters().doubled == 1).await;
    assert_eq!(stage.engine.calls(), 0);
}

#[tokio::test]
async fn a_message_that_somebody_has_is_taken_when_they_give_it_back() {
    let stage = stage().await;
    let guard = Arc::new(MemoryGuard::default());
    let id = [format!("{SUBMIT}:m-1")];
    assert_eq!(guard.begin(&id).await.expect("memory"), [MessageStanding::Mine]);
    let subjects = stage.open_with(Arc::<MemoryGuard>::clone(&guard)).await;
    stage.send(Some("m-1"), jobs(&["a"])).await;
    until("it is in hand", async || subjects.counters().held == 1).await;
    assert_eq!(stage.engine.calls(), 0);
    guard.release(&id).await.expect("memory");
    stage.engine.has(&["a"]).await;
    until("nothing is in hand", async || subjects.counters().held == 0).await;
}

struct AwayGuard;

#[async_trait]
impl DuplicateGuard for AwayGuard {
    async fn begin(&self, _: &[String]) -> Result<Vec<MessageStanding>, GuardAway> {
        Err(GuardAway("out".into()))
    }

    async fn finish(&self, _: &[String]) -> Result<(), GuardAway> {
        Err(GuardAway("out".into()))
    }

    async fn release(&self, _: &[String]) -> Result<(), GuardAway> {
        Err(GuardAway("out".into()))
    }
}

#[tokio::test]
async fn without_the_guard_the_engine_recognises_what_comes_twice() {
    let stage = stage().await;
    let _doors = stage.open_with(Arc::new(AwayGuard)).await;
    stage.ask(SUBMIT, None, jobs(&["a"])).await;
    stage.send(None, jobs(&["b"])).await;
    stage.engine.has(&["a", "b"]).await;
    stage.is_empty().await;
}

#[tokio::test]
async fn what_comes_during_a_commit_is_the_next_batch() {
    let stage = Stage::new(FakeEngine::closed(), DeliveryTerms::default()).await;
    let subjects = stage.open().await;
    stage.send(None, jobs(&["first"])).await;
    stage.engine.was_called(1).await;
    for n in 0..1_000 {
        stage.client.publish(SUBMIT, jobs(&[&format!("job-{n}")]).into()).await.expect("sent");
    }
    until("all are stored", async || stage.stream("LOCKGATE_SUBMIT").await.state.last_sequence == 1_001).await;
    stage.engine.open();
    until("all are committed", async || subjects.counters().committed == 1_001).await;
    stage.is_empty().await;
    assert!(stage.engine.calls() < 50, "{} commits", stage.engine.calls());
}

#[tokio::test]
async fn messages_larger_than_one_request_takes_are_all_committed() {
    let stage = Stage::new(FakeEngine::closed(), DeliveryTerms::default()).await;
    let subjects = stage.open().await;
    let large = |n: usize| {
        let job =
            v1::NewJob { job_id: format!("job-{n}"), payload_json: vec![b'1'; 800_000].into(), ..v1::NewJob::default() };
        v1::SubmitJobsRequest { jobs: vec![job] }.encode_to_vec()
    };
    for n in 0..60 {
        stage.client.publish(SUBMIT, large(n).into()).await.expect("sent");
    }
    stage.engine.open();
    until("all are committed", async || subjects.counters().committed == 60).await;
    stage.is_empty().await;
}

/// As two installations on one server that keep out of each other's way: each hears every question, and answers it once.
#[tokio::test]
async fn every_queue_group_has_each_question_and_one_process_of_it_answers() {
    let stage = stage().await;
    let own = [stage.open().await, stage.open().await];
    let other = stage.open_in("other").await;
    for n in 0..20 {
        stage.ask(SUBMIT, None, jobs(&[&format!("job-{n}")])).await;
    }
    let answered = || (own.iter().map(|subjects| subjects.counters().answered).sum::<u64>(), other.counters().answered);
    until("both groups have answered", async || answered() >= (20, 20)).await;
    stage.is_empty().await;
    assert_eq!(answered(), (20, 20));
}
