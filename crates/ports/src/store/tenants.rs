//! Usage of tenants, and their erasure.

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::TenantId;

use super::StoreError;

#[async_trait]
pub trait TenantStore: Send + Sync {
    /// S-9: the usage of each tenant, in the order of `tenants`; zero for an unknown tenant. The Store updates these counts
    /// in the commits that change them and does not scan.
    async fn usage(&self, tenants: &[TenantId]) -> Result<Vec<Usage>, StoreError>;

    /// Tenants by name after `after`, with their usage. Tenants without usage are left out.
    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<(TenantId, Usage)>, StoreError>;

    /// S-10: deletes ended jobs and runs of a tenant, in any order, at most `limit` (and at least one) of each per call,
    /// with all their rows: request, result, events, attempts, logs, dead letter, idempotency keys, outbox rows; nodes and
    /// messages of runs. When no job and no run is left, its schedules, its DAG definitions, the remaining keys and, `limit`
    /// per call, its slots are deleted too.
    ///
    /// Live jobs and runs are kept and counted, and so are the ended jobs and the sub-runs of a live run. Call again until
    /// `done`, or until only these are left.
    ///
    /// Audit rows stay, because the chain must verify. `audit` is written by the call that deletes the last row, in that
    /// commit. For an unknown tenant the call is `done` without an audit row. Outbox rows of jobs that were pruned before
    /// name no tenant and stay until their sink has acknowledged them.
    ///
    /// Deleted data may remain on disk for a while; each adapter documents how long.
    async fn erase(&self, tenant: &TenantId, limit: usize, audit: &AuditEntry) -> Result<Erased, StoreError>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Jobs that have not ended.
    pub live: u64,
    /// Ended jobs that are kept.
    pub ended: u64,
    /// Runs that are not over.
    pub runs: u64,
    /// Stored bytes of payloads and results: the JSON text of each job's payload, and of its result if it has one, as stored
    /// now. Held and quarantined results count like exposed ones; a redacted result counts with its redacted size. Other
    /// data about a job is not counted.
    pub stored_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Jobs that this call deleted.
    pub jobs: u64,
    /// Runs that this call deleted.
    pub runs: u64,
    /// Jobs that have not ended and must be ended first.
    pub live_jobs: u64,
    /// Runs that are not over and must be ended first.
    pub live_runs: u64,
    /// Whether nothing of the tenant is left.
    pub done: bool,
}
