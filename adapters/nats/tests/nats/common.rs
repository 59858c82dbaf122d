//! A server and buses on it.

pub(crate) mod engine;
pub(crate) mod stage;

use std::sync::Arc;
use std::time::Duration;

use lockgate_model::SeededEntropy;
use lockgate_nats::{ConnectionHealth, NatsBus, Options};
use lockgate_ports::Entropy;
use lockgate_testbed::Nats;

/// A limit for what must happen, long enough for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn server() -> Nats {
    Nats::start().expect("NATS starts")
}

pub(crate) fn options(nats: &Nats) -> Options {
    Options::new(vec![nats.url()], "test")
}

pub(crate) fn entropy() -> Arc<dyn Entropy> {
    Arc::new(SeededEntropy::new(7))
}

pub(crate) async fn bus(nats: &Nats) -> NatsBus {
    let bus = NatsBus::connect(&options(nats), entropy()).await.expect("the options are fine");
    assert_eq!(bus.health(), ConnectionHealth::Connected);
    bus
}

/// Asks until the answer is yes.
pub(crate) async fn until(what: &str, mut yes: impl AsyncFnMut() -> bool) {
    let mut again = tokio::time::interval(Duration::from_millis(5));
    let asking = async {
        while !yes().await {
            again.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"));
}
