//! A worker that changes how many jobs it runs at once.

use std::time::Duration;

use lockgate_core::job::Outcome;
use lockgate_core::request::Json;

use super::stage::{Hand, Stage, job};

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_given_as_much_as_it_has_slots_for_now() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 2).await;
    for _ in 0..6 {
        stage.submit(job("t")).await;
    }
    let mut held = worker.take_many(2).await;
    worker.slots = Some(4);
    worker.beat().await;
    held.extend(worker.take_many(2).await);
    worker.slots = Some(1);
    worker.beat().await;
    for assignment in held.drain(..3) {
        worker.report(&assignment, done()).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(worker.inbound_now().is_none(), "it still holds one, and has one slot");
    worker.report(&held[0], done()).await;
    worker.take().await;
    let slots = || stage.engine.workers().iter().map(|view| view.profile.slots).collect::<Vec<_>>();
    assert_eq!(slots(), [1]);
    assert_eq!(stage.number("lockgate_worker_slots_changed_total"), 2.0, "up once and down once");
    for nonsense in [0, 1_000_000] {
        worker.slots = Some(nonsense);
        worker.beat().await;
        assert_eq!(slots(), [1]);
    }
}
