//! Named leases of leader-only loops.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreError;

#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the lease if it is free, expired, or lasts longer than `ttl` by more than
    /// [`LEASE_AHEAD_MAX`](super::LEASE_AHEAD_MAX); renews it if `holder` has it. The epoch grows with every new holder.
    /// None while another process holds it.
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<u64>, StoreError>;

    /// Gives up the lease at once, if `holder` has it.
    async fn release(&self, name: &str, holder: &str) -> Result<(), StoreError>;

    /// Every lease that was ever taken, by name.
    async fn leases(&self) -> Result<Vec<LeaseRow>, StoreError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRow {
    pub name: String,
    /// None after the lease was given up.
    pub holder: Option<String>,
    pub epoch: u64,
    /// The remaining time by the Store's clock; negative once it has expired.
    pub left_ms: i64,
}

impl LeaseRow {
    /// Whether a process holds the lease.
    pub fn is_held(&self) -> bool {
        self.holder.is_some() && self.left_ms > 0
    }
}
