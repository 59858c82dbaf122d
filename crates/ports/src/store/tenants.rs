//! What tenants take, and forgetting one.

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::TenantId;

use super::StoreError;

#[async_trait]
pub trait TenantStore: Send + Sync {
    /// S-9: what each tenant takes, in the order asked; nothing for a tenant nobody has heard of. Counts kept up to date by the
    /// Store in the commits that change them, not scanned for.
    async fn usage(&self, tenants: &[TenantId]) -> Result<Vec<Usage>, StoreError>;

    /// Tenants by name after `after`, with what they take. Those that take nothing are left out.
    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<(TenantId, Usage)>, StoreError>;

    /// S-10: deletes ended jobs and runs of a tenant, in any order, at most `limit` (and at least one) of each a call, with all that
    /// belongs to them: request, result, events, attempts, logs, dead letter, idempotency keys, outbox rows; nodes and news of
    /// runs. When no job and no run is left, its schedules, its DAG definitions, the keys that remain and, `limit` a call, its
    /// slots go too.
    ///
    /// Live jobs and runs are left alone and counted, and so is what belongs to a run that goes on: its ended jobs and the
    /// runs inside of it. Call again until `done`, or until nothing but that is left.
    ///
    /// Audit rows stay: the chain must verify. `audit` is written by the call that deletes the last of it, in the same
    /// commit. A tenant of whom nothing was known is `done` without one. Outbox rows of jobs that were pruned before name no
    /// tenant any more and stay until their sink acknowledged them.
    ///
    /// What a deleted row said may stay on the disk for a while; each adapter says how long.
    async fn erase(&self, tenant: &TenantId, limit: usize, audit: &AuditEntry) -> Result<Erased, StoreError>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Jobs that have not ended.
    pub live: u64,
    /// Jobs ended and kept.
    pub ended: u64,
    /// Runs that are not over.
    pub runs: u64,
    /// Bytes of payloads and results kept: the JSON text of each job's payload and of its result, if there is one, as stored
    /// now. A result that is held or quarantined counts like one that is out; one that was redacted counts as it is since. What
    /// else the Store writes about a job is not counted.
    pub stored_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Jobs that this call deleted.
    pub jobs: u64,
    /// Runs that this call deleted.
    pub runs: u64,
    /// Not ended yet: they must be ended first.
    pub live_jobs: u64,
    /// Not over yet: they must be ended first.
    pub live_runs: u64,
    /// Whether nothing of the tenant is left.
    pub done: bool,
}
