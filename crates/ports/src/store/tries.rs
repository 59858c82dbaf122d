//! How often placing was tried for what no worker can take, kept over restarts.

use std::sync::Arc;

use async_trait::async_trait;

use super::StoreError;

#[async_trait]
pub trait Tries: Send + Sync {
    /// Keeps this text in place of the one before. One process at a time counts for all, and what it counts is worth no more than
    /// a later count: the last one to write wins.
    async fn keep_tries(&self, text: &str) -> Result<(), StoreError>;

    /// The text that was kept last.
    async fn kept_tries(&self) -> Result<Option<Arc<str>>, StoreError>;
}
