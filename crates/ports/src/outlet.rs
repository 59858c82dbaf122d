//! Outlets: deliver outbox rows to sinks outside of Lockgate.

use async_trait::async_trait;

use crate::store::OutboxRow;

#[async_trait]
pub trait Outlet: Send + Sync {
    /// Whether this outlet delivers rows for the sink.
    fn serves(&self, sink: &str) -> bool;

    /// Why nothing can be delivered now, if that is known without trying.
    fn away(&self) -> Option<String>;

    /// Delivers rows: those of a job in the order of their ids, so that none overtakes one that failed. The receiver can
    /// recognise a row that is delivered again.
    async fn deliver(&self, rows: Vec<OutboxRow>) -> Delivered;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Rows that their sink acknowledged.
    pub done: Vec<i64>,
    /// For each job with a failure, its first failed row and the error. Its later rows were not tried, so that they stay
    /// behind it.
    pub failed: Vec<(i64, String)>,
}
