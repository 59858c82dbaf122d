//! The part of the port that is about tenants.

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::{JobId, TenantId};
use lockgate_ports::store::Tenants;
use lockgate_ports::{Erased, StoreError, Usage};

use super::{PRUNED_AT_ONCE, PostgresStore};
use crate::pool::Kind;
use crate::{desk, reads};

/// How far the ended jobs were searched by an erasure that takes several calls.
pub(super) struct Search {
    tenant: TenantId,
    after: i64,
}

#[async_trait]
impl Tenants for PostgresStore {
    async fn usage(&self, tenants: &[TenantId]) -> Result<Vec<Usage>, StoreError> {
        ask!(self, Reads, conn => reads::usage(conn, tenants))
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<(TenantId, Usage)>, StoreError> {
        ask!(self, Reads, conn => reads::tenants(conn, after, limit))
    }

    /// Each batch is a transaction, and so is the last step, which stops all writers for as long as it takes. What was deleted
    /// lies in the files as dead rows until the server's vacuum has reused their room, in its write-ahead log until that is
    /// recycled, and in backups.
    async fn erase(&self, tenant: &TenantId, limit: usize, audit: &AuditEntry) -> Result<Erased, StoreError> {
        let limit = limit.max(1);
        let jobs = self.erase_jobs(tenant, limit).await?;
        let runs = self.erase_runs(tenant, limit).await?;
        let (usage, remains) = ask!(self, Reads, conn => reads::remains(conn, tenant))?;
        let mut erased = Erased { jobs, runs, live_jobs: usage.live, live_runs: usage.runs, done: false };
        if remains || ask!(self, Writes, conn => desk::erase_slots(conn, tenant, limit))? {
            return Ok(erased);
        }
        erased.done = ask!(self, Writes, conn => desk::erase_rest(conn, self.begin(), tenant, audit, jobs + runs))?;
        Ok(erased)
    }
}

impl PostgresStore {
    async fn erase_jobs(&self, tenant: &TenantId, limit: usize) -> Result<u64, StoreError> {
        let mut gone = 0;
        for batch in self.search(tenant, limit).await?.chunks(PRUNED_AT_ONCE) {
            gone += ask!(self, Writes, conn => desk::erase_jobs(conn, self.begin(), tenant, batch))?;
        }
        Ok(gone)
    }

    /// Whole runs, until they and their nodes are `limit` rows or more.
    async fn erase_runs(&self, tenant: &TenantId, limit: usize) -> Result<u64, StoreError> {
        let (mut gone, mut rows) = (0, 0);
        while rows < limit {
            let batch = (limit - rows).min(PRUNED_AT_ONCE);
            let (runs, went) = ask!(self, Writes, conn => desk::erase_runs(conn, tenant, batch))?;
            if runs == 0 {
                break;
            }
            gone += runs;
            rows += went;
        }
        Ok(gone)
    }

    /// Ended jobs of a tenant. They are not indexed by tenant, which every end would pay for: they are looked through, from
    /// where the last call stopped and, if that is not enough, once more from the beginning, where some may have ended since.
    /// The tally says when there is no need to look.
    async fn search(&self, tenant: &TenantId, limit: usize) -> Result<Vec<JobId>, StoreError> {
        let ended = self.usage(std::slice::from_ref(tenant)).await?.first().map_or(0, |usage| usage.ended);
        let wanted = limit.min(usize::try_from(ended).unwrap_or(usize::MAX));
        let known = self.searched.lock().take().filter(|search| search.tenant == *tenant).map(|search| search.after);
        for from in known.into_iter().chain([0]) {
            let (found, after) = self.search_from(from, tenant, wanted).await?;
            if found.len() == wanted || from == 0 {
                *self.searched.lock() = Some(Search { tenant: tenant.clone(), after });
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    async fn search_from(&self, from: i64, tenant: &TenantId, wanted: usize) -> Result<(Vec<JobId>, i64), StoreError> {
        let (mut found, mut after) = (Vec::new(), from);
        while found.len() < wanted {
            let rest = wanted - found.len();
            let stretch = ask!(self, Reads, conn => reads::erasable(conn, tenant, after, rest))?;
            let Some((jobs, next)) = stretch else { break };
            found.extend(jobs);
            after = next;
        }
        Ok((found, after))
    }
}
