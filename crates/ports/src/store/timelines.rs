//! A new timeline after the Store was restored to an earlier state.

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;

use super::StoreError;

#[async_trait]
pub trait Timelines: Send + Sync {
    /// replaces every token of live jobs, because workers of the other timeline may hold the old ones; then adds the
    /// audit row. Returns how many jobs there are.
    ///
    /// None, and nothing is changed, while the lease of an edge is running, because a process is still at work. A caller
    /// that finds no audit row after a crash repeats the call; replacing tokens twice does no harm.
    async fn begin_timeline(&self, salt: [u8; 16], audit: AuditEntry) -> Result<Option<u64>, StoreError>;
}
