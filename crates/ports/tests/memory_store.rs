//! The reference Store passes its own suite.

use std::sync::Arc;

use lockgate_ports::Clock;
use lockgate_ports::conformance::store::{Spoilt, StoreHarness};
use lockgate_ports::memory::{ManualClock, MemoryStore};

fn harness() -> StoreHarness {
    let clock = Arc::new(ManualClock::default());
    let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let spoilt = store.clone();
    StoreHarness::new(Arc::new(store), clock, ()).spoiling(move |row| {
        match row {
            Spoilt::Job(id) => spoilt.spoil([id]),
            Spoilt::Schedule { tenant, name } => spoilt.spoil_schedules([(tenant, name)]),
        }
        Box::pin(std::future::ready(()))
    })
}

lockgate_ports::store_conformance! { harness }
