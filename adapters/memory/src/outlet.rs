//! An outlet that records what it delivered, for tests.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use lockgate_ports::outlet::{Delivered, Outlet};
use lockgate_ports::store::OutboxRow;

/// Serves sinks whose name begins with `nats:`. Tests can make it unreachable.
#[derive(Default)]
pub struct MemoryOutlet {
    taken: Mutex<Vec<OutboxRow>>,
    away: Mutex<Option<String>>,
    refusing: AtomicBool,
}

impl MemoryOutlet {
    /// Every delivered row, in order.
    pub fn taken(&self) -> Vec<OutboxRow> {
        self.taken.lock().clone()
    }

    /// Makes it refuse rows although it is reachable.
    pub fn set_refusing(&self, refusing: bool) {
        self.refusing.store(refusing, Ordering::Relaxed);
    }

    pub fn set_away(&self, why: Option<&str>) {
        *self.away.lock() = why.map(str::to_owned);
    }
}

#[async_trait]
impl Outlet for MemoryOutlet {
    fn serves(&self, sink: &str) -> bool {
        sink.starts_with("nats:")
    }

    fn away(&self) -> Option<String> {
        self.away.lock().clone()
    }

    async fn deliver(&self, rows: Vec<OutboxRow>) -> Delivered {
        if self.refusing.load(Ordering::Relaxed) {
            let failed = rows.iter().map(|row| (row.id, "refused".to_owned())).collect();
            return Delivered { done: Vec::new(), failed };
        }
        let done = rows.iter().map(|row| row.id).collect();
        self.taken.lock().extend(rows);
        Delivered { done, failed: Vec::new() }
    }
}
