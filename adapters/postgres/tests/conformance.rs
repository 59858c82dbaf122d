//! The Store's suite, on PostgreSQL as an installation runs it.

mod stage;

use std::sync::Arc;

use lockgate_conformance::store::StoreHarness;
use lockgate_postgres::PostgresStore;
use stage::{Stage, spoils};

async fn harness() -> StoreHarness {
    let stage = Stage::new().await;
    let store = PostgresStore::connect(stage.patient()).await.unwrap();
    StoreHarness::new(Arc::new(store), Arc::clone(&stage.clock), ()).spoiling(spoils(&stage.config))
}

lockgate_conformance::store_conformance! { async harness }
lockgate_conformance::store_agrees_with_memory! { async harness, cases: 8 }
