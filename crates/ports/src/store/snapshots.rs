//! Configuration in force: immutable texts by content hash, and one versioned row that names the active one.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::ActorId;
use lockgate_core::pools::{ALL_OPEN, BUILTIN_DEFAULT};
use lockgate_core::quotas::BUILTIN_QUOTAS;
use lockgate_core::time::Timestamp;
use lockgate_core::timeouts::BUILTIN_TIMEOUTS;
use lockgate_core::verdict::BUILTIN_ALLOW;

use super::StoreError;

#[async_trait]
pub trait Snapshots: Send + Sync {
    /// S-7: stores the text and activates it, in one commit with its audit row, if `expected` is still the active version
    /// (0: none ever was). From then on no dispatch under another policy or routing can be committed. Returns the new
    /// version.
    async fn activate(&self, change: Activation) -> Result<Result<u64, Outdated>, StoreError>;

    /// The active snapshot.
    async fn active(&self, kind: SnapshotKind) -> Result<Option<Active>, StoreError>;

    /// Texts that were ever active, the latest activation of each first.
    async fn snapshots(&self, kind: SnapshotKind, limit: usize) -> Result<Vec<SnapshotRow>, StoreError>;

    /// One text by its id.
    async fn snapshot(&self, kind: SnapshotKind, id: &str) -> Result<Option<Arc<str>>, StoreError>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SnapshotKind {
    Policy,
    Pools,
    Timeouts,
    PoolStates,
    Quotas,
}

impl SnapshotKind {
    pub const ALL: [Self; 5] = [Self::Policy, Self::Pools, Self::Timeouts, Self::PoolStates, Self::Quotas];

    /// The snapshot in force before anything was activated.
    pub const fn builtin(self) -> &'static str {
        match self {
            Self::Policy => BUILTIN_ALLOW,
            Self::Pools => BUILTIN_DEFAULT,
            Self::Timeouts => BUILTIN_TIMEOUTS,
            Self::PoolStates => ALL_OPEN,
            Self::Quotas => BUILTIN_QUOTAS,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Pools => "pools",
            Self::Timeouts => "timeouts",
            Self::PoolStates => "pool_states",
            Self::Quotas => "quotas",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Activation {
    pub kind: SnapshotKind,
    pub id: Arc<str>,
    pub text: Arc<str>,
    pub actor: ActorId,
    pub expected: u64,
    pub audit: AuditEntry,
}

/// Another activation came first: read it and decide again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version {in_force} is in force")]
pub struct Outdated {
    pub in_force: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Active {
    pub version: u64,
    pub id: Arc<str>,
    pub text: Arc<str>,
    pub actor: ActorId,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRow {
    pub id: Arc<str>,
    /// Its latest activation.
    pub version: u64,
    pub actor: ActorId,
    pub at: Timestamp,
}
