//! The Store's suite, on SQLite.

use std::sync::Arc;

use lockgate_ports::Clock;
use lockgate_ports::conformance::store::StoreHarness;
use lockgate_ports::memory::ManualClock;
use lockgate_sqlite::SqliteStore;

fn harness() -> StoreHarness {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let store = SqliteStore::open(folder.path(), Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    StoreHarness::new(Arc::new(store), clock, folder)
}

lockgate_ports::store_conformance! { harness }
lockgate_ports::store_agrees_with_memory! { harness, cases: 24 }
