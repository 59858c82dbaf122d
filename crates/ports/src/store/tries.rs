//! How often placement was tried for jobs that no worker can take, kept over restarts.

use std::sync::Arc;

use async_trait::async_trait;

use super::StoreError;

#[async_trait]
pub trait Tries: Send + Sync {
    /// Stores this text in place of the previous one. One process at a time counts for all, and an older count is worth no
    /// more than a newer one, so the last writer wins.
    async fn keep_tries(&self, text: &str) -> Result<(), StoreError>;

    /// The text stored last.
    async fn kept_tries(&self) -> Result<Option<Arc<str>>, StoreError>;
}
