//! After the Store was brought back to an earlier state.

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;

use super::StoreError;

#[async_trait]
pub trait Timelines: Send + Sync {
    /// makes every token of live jobs anew, because workers of the other timeline may hold the old ones; then adds the
    /// audit row. How many jobs there are.
    ///
    /// None, and nothing is changed, while the lease of an edge runs: somebody is at work. Whoever finds no audit row after a
    /// crash asks again; making tokens anew twice does no harm.
    async fn begin_timeline(&self, salt: [u8; 16], audit: AuditEntry) -> Result<Option<u64>, StoreError>;
}
