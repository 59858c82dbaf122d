//! The audit trail. Rows come with the commits they are about; here they are read and sealed.

use async_trait::async_trait;
use lockgate_core::audit::{AuditEntry, AuditRow, Block};

use super::StoreError;

#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Rows after a number, oldest first.
    async fn audit(&self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError>;

    /// Adds rows about something that has no commit of its own.
    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError>;

    /// Blocks after a number, oldest first.
    async fn blocks(&self, after: u64, limit: usize) -> Result<Vec<Block>, StoreError>;

    /// The latest block.
    async fn head(&self) -> Result<Option<Block>, StoreError>;

    /// S-6: adds the block if the one before it is still the head. False when it is not: another process sealed first.
    async fn seal(&self, block: &Block) -> Result<bool, StoreError>;
}
