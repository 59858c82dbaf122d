//! Ways out: sinks outside of us that outbox rows are delivered to.

use async_trait::async_trait;

use crate::store::OutboxRow;

#[async_trait]
pub trait Outlet: Send + Sync {
    /// Whether rows for this sink go out here.
    fn serves(&self, sink: &str) -> bool;

    /// Why nothing can be delivered now, if that is known without trying.
    fn away(&self) -> Option<String>;

    /// Delivers rows for sinks that it serves: those of a job in the order of their ids, so that none overtakes one that
    /// failed. A row that is delivered again can be recognised by its receiver.
    async fn deliver(&self, rows: Vec<OutboxRow>) -> Delivered;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Acknowledged by their sink.
    pub done: Vec<i64>,
    /// What went wrong, for the first row of each job that did. Its later rows were not tried: they stay behind it.
    pub failed: Vec<(i64, String)>,
}
