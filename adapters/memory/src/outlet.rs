//! A sink that remembers what it was given.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use lockgate_ports::outlet::{Delivered, Outlet};
use lockgate_ports::store::OutboxRow;

/// Serves sinks whose name begins with `nats:`; can be away.
#[derive(Default)]
pub struct MemoryOutlet {
    taken: Mutex<Vec<OutboxRow>>,
    away: Mutex<Option<String>>,
    refusing: AtomicBool,
}

impl MemoryOutlet {
    /// Everything that was delivered, in order.
    pub fn taken(&self) -> Vec<OutboxRow> {
        self.taken.lock().clone()
    }

    /// Whether it takes nothing although it is there.
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
