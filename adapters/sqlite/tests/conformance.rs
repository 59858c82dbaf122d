//! The Store's suite, on SQLite.

use std::sync::Arc;

use lockgate_ports::Clock;
use lockgate_ports::conformance::store::{Spoiling, Spoilt, StoreHarness};
use lockgate_ports::memory::ManualClock;
use lockgate_sqlite::SqliteStore;

fn harness() -> StoreHarness {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let store = SqliteStore::open(folder.path(), Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    let database = folder.path().join("lockgate.db");
    let spoil = move |row: Spoilt| -> Spoiling {
        let conn = rusqlite::Connection::open(&database).unwrap();
        match row {
            Spoilt::Job(id) => {
                for table in ["jobs_hot", "jobs_done"] {
                    let sql = format!("UPDATE {table} SET life = '?' WHERE seq = (SELECT seq FROM jobs WHERE job_id = ?1)");
                    conn.execute(&sql, [id.as_str()]).unwrap();
                }
            }
            Spoilt::Schedule { tenant, name } => {
                let sql = "UPDATE schedules SET body = '?' WHERE tenant = ?1 AND name = ?2";
                conn.execute(sql, [tenant.as_str(), &*name]).unwrap();
            }
        }
        Box::pin(std::future::ready(()))
    };
    StoreHarness::new(Arc::new(store), clock, folder).spoiling(spoil)
}

lockgate_ports::store_conformance! { harness }
lockgate_ports::store_agrees_with_memory! { harness, cases: 24 }
