//! Governance on a disk that fails: configuration in force and the audit trail.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::audit::{AuditEntry, AuditRow, Block};
use lockgate_ports::{Activation, Active, AuditStore, Outdated, SnapshotKind, SnapshotRow, Snapshots, StoreError};

use crate::store::FaultyStore;

#[async_trait]
impl Snapshots for FaultyStore {
    async fn activate(&self, change: Activation) -> Result<Result<u64, Outdated>, StoreError> {
        self.before().await?;
        if self.is_late(50) {
            let witness = self.witness.clone();
            return Err(self.land_late(async move { witness.activate(change).await }));
        }
        let outcome = self.witness.activate(change).await;
        self.after().await?;
        outcome
    }

    async fn active(&self, kind: SnapshotKind) -> Result<Option<Active>, StoreError> {
        self.before().await?;
        self.disk.active(kind).await
    }

    async fn snapshots(&self, kind: SnapshotKind, limit: usize) -> Result<Vec<SnapshotRow>, StoreError> {
        self.before().await?;
        self.disk.snapshots(kind, limit).await
    }

    async fn snapshot(&self, kind: SnapshotKind, id: &str) -> Result<Option<Arc<str>>, StoreError> {
        self.before().await?;
        self.disk.snapshot(kind, id).await
    }
}

#[async_trait]
impl AuditStore for FaultyStore {
    async fn audit(&self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        self.before().await?;
        self.disk.audit(after, limit).await.map(|rows| self.planted.audited(rows))
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.before().await?;
        let outcome = self.disk.append_audit(entries).await;
        self.after().await?;
        outcome
    }

    async fn blocks(&self, after: u64, limit: usize) -> Result<Vec<Block>, StoreError> {
        self.before().await?;
        self.disk.blocks(after, limit).await
    }

    async fn head(&self) -> Result<Option<Block>, StoreError> {
        self.before().await?;
        self.disk.head().await
    }

    async fn seal(&self, block: &Block) -> Result<bool, StoreError> {
        self.before().await?;
        let outcome = self.disk.seal(block).await;
        self.after().await?;
        outcome
    }
}
