//! Implements the Store's calls on tenants.

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::{JobId, TenantId};
use lockgate_ports::store::TenantStore;
use lockgate_ports::{Erased, StoreError, Usage};

use super::{PRUNED_AT_ONCE, PostgresStore};
use crate::pool::AccessMode;
use crate::{reads, writes};

#[async_trait]
impl TenantStore for PostgresStore {
    async fn usage(&self, tenants: &[TenantId]) -> Result<Vec<Usage>, StoreError> {
        ask!(self, Reads, conn => reads::usage(conn, tenants))
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<(TenantId, Usage)>, StoreError> {
        ask!(self, Reads, conn => reads::tenants(conn, after, limit))
    }

    /// Each batch is a transaction, and so is the last step, which blocks all writers while it runs. Deleted data remains in
    /// dead rows until vacuum has reused their space, in the write-ahead log until it is recycled, and in backups.
    async fn erase(&self, tenant: &TenantId, limit: usize, audit: &AuditEntry) -> Result<Erased, StoreError> {
        let limit = limit.max(1);
        let jobs = self.erase_jobs(tenant, limit).await?;
        let runs = self.erase_runs(tenant, limit).await?;
        let (usage, remains) = ask!(self, Reads, conn => reads::remains(conn, tenant))?;
        let mut erased = Erased { jobs, runs, live_jobs: usage.live, live_runs: usage.runs, done: false };
        if remains || ask!(self, Writes, conn => writes::erase_slots(conn, tenant, limit))? {
            return Ok(erased);
        }
        erased.done = ask!(self, Writes, conn => writes::erase_rest(conn, self.begin(), tenant, audit, jobs + runs))?;
        Ok(erased)
    }
}

impl PostgresStore {
    async fn erase_jobs(&self, tenant: &TenantId, limit: usize) -> Result<u64, StoreError> {
        let mut gone = 0;
        for batch in self.search(tenant, limit).await?.chunks(PRUNED_AT_ONCE) {
            gone += ask!(self, Writes, conn => writes::erase_jobs(conn, self.begin(), tenant, batch))?;
        }
        Ok(gone)
    }

    /// Deletes whole runs until they and their nodes are `limit` rows or more.
    async fn erase_runs(&self, tenant: &TenantId, limit: usize) -> Result<u64, StoreError> {
        let (mut gone, mut rows) = (0, 0);
        while rows < limit {
            let batch = (limit - rows).min(PRUNED_AT_ONCE);
            let (runs, went) = ask!(self, Writes, conn => writes::erase_runs(conn, tenant, batch))?;
            if runs == 0 {
                break;
            }
            gone += runs;
            rows += went;
        }
        Ok(gone)
    }

    /// Ended jobs of the tenant. The tenant's tally shows whether there can be any, which avoids the search.
    async fn search(&self, tenant: &TenantId, limit: usize) -> Result<Vec<JobId>, StoreError> {
        let ended = self.usage(std::slice::from_ref(tenant)).await?.first().map_or(0, |usage| usage.ended);
        let wanted = limit.min(usize::try_from(ended).unwrap_or(usize::MAX));
        let stretch = |after, most| async move { ask!(self, Reads, conn => reads::erasable(conn, tenant, after, most)) };
        self.searched.next(tenant, wanted, stretch).await
    }
}
