//! Named leases for leader-only loops.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreError;

#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the lease if it is free or expired, renews it if `holder` has it. The epoch grows with every new holder.
    /// None while somebody else holds it.
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<u64>, StoreError>;

    /// Gives the lease up at once, if `holder` has it.
    async fn release(&self, name: &str, holder: &str) -> Result<(), StoreError>;
}
