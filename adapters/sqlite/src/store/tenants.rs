//! Implements the Store's calls on tenants.

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::TenantId;
use lockgate_ports::store::TenantStore;
use lockgate_ports::{Erased, StoreError, Usage};

use super::SqliteStore;
use crate::reads;

#[async_trait]
impl TenantStore for SqliteStore {
    async fn usage(&self, tenants: &[TenantId]) -> Result<Vec<Usage>, StoreError> {
        let tenants = tenants.to_vec();
        self.readers.run(move |conn| reads::usage(conn, &tenants)).await
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<(TenantId, Usage)>, StoreError> {
        let after = after.cloned();
        self.readers.run(move |conn| reads::tenants(conn, after.as_ref(), limit)).await
    }

    /// Deleted data is overwritten. Before the last call answers, all free pages are overwritten too, because they may hold
    /// data deleted earlier, and the log is truncated; if a reader uses the log at that moment, it is truncated after a
    /// later commit. If that call fails, the next one repeats it. What remains are copies of short rows that SQLite made
    /// when it moved them within a page, until that page is next defragmented.
    async fn erase(&self, tenant: &TenantId, limit: usize, audit: &AuditEntry) -> Result<Erased, StoreError> {
        let limit = limit.max(1);
        let jobs = self.search(tenant, limit).await?;
        let (tenant, audit) = (tenant.clone(), audit.clone());
        let erased = self.writer.run(limit, move |tx| tx.erase(&tenant, &jobs, limit, &audit)).await?;
        if erased.done {
            let blanked = self.blank_free_pages().await;
            self.writer.run(1, |tx| tx.give_blanks_back()).await?;
            blanked?;
        }
        Ok(erased)
    }
}

impl SqliteStore {
    /// As many pages as there were: pages that others free meanwhile do not hold the erased tenant's data.
    async fn blank_free_pages(&self) -> Result<(), StoreError> {
        let free = self.writer.run(1, |tx| tx.free_pages()).await?;
        let (mut blanked, mut more) = (0, free > 0);
        while more && blanked < free {
            (blanked, more) = self.writer.run(1, move |tx| tx.blank_free_pages(blanked)).await?;
        }
        Ok(())
    }

    /// Ended jobs of the tenant. The tenant's tally shows whether there can be any, which avoids the search.
    async fn search(&self, tenant: &TenantId, limit: usize) -> Result<Vec<i64>, StoreError> {
        let ended = self.usage(std::slice::from_ref(tenant)).await?.first().map_or(0, |usage| usage.ended);
        let wanted = limit.min(usize::try_from(ended).unwrap_or(usize::MAX));
        let stretch = |after, most| {
            let tenant = tenant.clone();
            self.readers.run(move |conn| reads::erasable(conn, &tenant, after, most))
        };
        self.searched.next(tenant, wanted, stretch).await
    }
}
