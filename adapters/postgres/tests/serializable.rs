//! The Store's suite at SERIALIZABLE, with a server that wants transactions repeated: what CockroachDB does all the time.

mod proxy;
mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockgate_conformance::store::StoreHarness;
use lockgate_postgres::{ConnectOptions, Isolation, PostgresStore};
use proxy::Proxy;
use stage::{Stage, server, spoils};

async fn harness() -> StoreHarness {
    static HARNESSES: AtomicU64 = AtomicU64::new(1);
    let stage = Stage::new().await;
    let proxy = Proxy::start(server().port()).await;
    let options =
        ConnectOptions { isolation: Isolation::Serializable, config: proxy.config(&stage.config), ..stage.patient() };
    let store = PostgresStore::connect(options).await.unwrap();
    // Each test meets its first failure somewhere else.
    proxy.refuse_ever_less(1 + HARNESSES.fetch_add(1, Ordering::Relaxed) * 7 % 31);
    StoreHarness::new(Arc::new(store), Arc::clone(&stage.clock), proxy).spoiling(spoils(&stage.config))
}

lockgate_conformance::store_conformance! { async harness }
lockgate_conformance::store_agrees_with_memory! { async harness, cases: 3 }
