//! Faults on purpose around the built-in handlers.

use std::time::Duration;

use lockgate_proto::v1::Assignment;
use lockgate_proto::v1::result::Outcome;
use lockgate_worker::Worker;
use lockgate_worker::handlers::{Builtin, Chance, Faults, Slow};

use crate::edge::{Attached, Edge, Manners, job};
use crate::running::Running;

fn always() -> Chance {
    Chance::new(1.0).unwrap()
}

async fn suffering(faults: Faults) -> (Attached, Running, Edge) {
    let mut edge = Edge::start(Manners::default()).await;
    let builtin = Builtin { allow_exec: true, faults: Some(faults), ..Builtin::default() };
    let running = Running::start(builtin.register(Worker::connect(edge.url())));
    let stream = edge.accept().await;
    (stream, running, edge)
}

#[tokio::test]
async fn an_injected_error_is_retryable_and_says_what_it_is_whatever_the_handler() {
    let (mut stream, _running, _edge) = suffering(Faults { error: always(), ..Faults::default() }).await;
    let topics = stream.hello.topics.clone();
    assert!(topics.contains(&"job.exec".to_owned()) && topics.contains(&"job.http_call".to_owned()), "{topics:?}");
    stream.assign(topics.iter().map(|topic| job(topic, topic, "null")));
    let ends = stream.results(topics.len()).await;
    for (topic, end) in &ends {
        let injected = matches!(end, Outcome::FailedRetryable(failed) if failed.error.starts_with("injected"));
        assert!(injected, "{topic}: {end:?}");
    }
}

#[tokio::test]
async fn what_hangs_ends_with_its_timeout_or_when_it_is_stopped() {
    let (mut stream, _running, _edge) = suffering(Faults { hang: always(), ..Faults::default() }).await;
    stream.assign([Assignment { timeout_ms: 20, ..job("timed", "job.noop", "") }]);
    assert!(matches!(stream.result().await, Outcome::TimedOut(_)));
    stream.ack("timed");
    stream.assign([job("stopped", "job.noop", "")]);
    stream.started(&["stopped"]).await;
    stream.stop("stopped");
    stream.beat("the end of what hung", |beat| beat.inventory.iter().all(|held| held.token != "stopped")).await;
}

#[tokio::test]
async fn what_is_slow_goes_on_afterwards() {
    let slow = Slow { chance: always(), up_to: Duration::from_millis(5) };
    let (mut stream, _running, _edge) = suffering(Faults { slow: Some(slow), ..Faults::default() }).await;
    stream.assign([job("echo", "job.echo", "1")]);
    assert!(matches!(stream.result().await, Outcome::Succeeded(done) if done.result_json == "1"));
}
