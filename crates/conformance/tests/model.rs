//! The reference Store passes its own suite.

use std::sync::Arc;

use lockgate_conformance::store::{Spoilt, StoreHarness};
use lockgate_model::{ManualClock, MemoryStore};
use lockgate_ports::Clock;

fn harness() -> StoreHarness {
    let clock = Arc::new(ManualClock::default());
    let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let spoilt = store.clone();
    StoreHarness::new(Arc::new(store), clock, ()).spoiling(move |row| {
        match row {
            Spoilt::Job(id) => spoilt.spoil([id]),
            Spoilt::Text { job, old, new } => spoilt.rewrite(&job, old, new).expect("read again"),
            Spoilt::Schedule { tenant, name } => spoilt.spoil_schedules([(tenant, name)]),
        }
        Box::pin(std::future::ready(()))
    })
}

lockgate_conformance::store_conformance! { harness }
