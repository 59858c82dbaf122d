//! The audit trail. Commits write their own rows; these calls read and seal them.

use async_trait::async_trait;
use lockgate_core::audit::{AuditEntry, AuditRow, Block};

use super::StoreError;

#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Rows after a number, oldest first.
    async fn audit(&self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError>;

    /// Adds rows about acts that have no commit of their own.
    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError>;

    /// Blocks after a number, oldest first.
    async fn blocks(&self, after: u64, limit: usize) -> Result<Vec<Block>, StoreError>;

    /// The latest block.
    async fn head(&self) -> Result<Option<Block>, StoreError>;

    /// S-6: adds the block if the block before it is still the head. False if another process sealed first.
    async fn seal(&self, block: &Block) -> Result<bool, StoreError>;
}
