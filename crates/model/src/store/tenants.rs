//! What tenants take, counted each time, and forgetting one.

use std::collections::BTreeMap;

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::{JobId, JobSeq, RunId, TenantId};

use super::MemoryStore;
use super::data::{Data, JobRow};
use lockgate_ports::store::{Erased, StoreError, TenantStore, Usage};

#[async_trait]
impl TenantStore for MemoryStore {
    async fn usage(&self, tenants: &[TenantId]) -> Result<Vec<Usage>, StoreError> {
        let all = self.open().0.usages();
        Ok(tenants.iter().map(|tenant| all.get(tenant).copied().unwrap_or_default()).collect())
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<(TenantId, Usage)>, StoreError> {
        let all = self.open().0.usages();
        let later = all.into_iter().filter(|(tenant, _)| after.is_none_or(|after| tenant > after));
        Ok(later.filter(|(_, usage)| *usage != Usage::default()).take(limit).collect())
    }

    async fn erase(&self, tenant: &TenantId, limit: usize, audit: &AuditEntry) -> Result<Erased, StoreError> {
        Ok(self.open().0.erase(tenant, limit.max(1), audit))
    }
}

impl Data {
    fn usages(&self) -> BTreeMap<TenantId, Usage> {
        let mut all: BTreeMap<TenantId, Usage> = BTreeMap::new();
        for row in self.jobs.values() {
            let usage = all.entry(row.job.request.tenant.clone()).or_default();
            *(if row.job.state().is_terminal() { &mut usage.ended } else { &mut usage.live }) += 1;
            usage.stored_bytes += stored_bytes(row);
        }
        for row in self.runs.values().filter(|row| !row.head.state.is_over()) {
            all.entry(row.head.tenant.clone()).or_default().runs += 1;
        }
        all
    }

    fn erase(&mut self, tenant: &TenantId, limit: usize, audit: &AuditEntry) -> Erased {
        let (jobs, runs) = (self.erase_jobs(tenant, limit), self.erase_runs(tenant, limit));
        let usage = self.usages().get(tenant).copied().unwrap_or_default();
        let has_runs = self.runs.values().any(|row| row.head.tenant == *tenant);
        let mut erased = Erased { jobs, runs, live_jobs: usage.live, live_runs: usage.runs, done: false };
        if has_runs || usage != Usage::default() {
            return erased;
        }
        let rest = self.erase_rest(tenant);
        let slots = self.erase_slots(tenant, limit);
        erased.done = !self.slots.keys().any(|(owner, _)| owner == tenant);
        if erased.done && (jobs + runs + slots > 0 || rest) {
            self.keep_audit(vec![audit.clone()]);
        }
        if erased.done {
            self.tenants.remove(tenant);
        }
        erased
    }

    fn erase_jobs(&mut self, tenant: &TenantId, limit: usize) -> u64 {
        let theirs = self.jobs.iter().filter(|(_, row)| row.job.request.tenant == *tenant && row.job.state().is_terminal());
        let gone: Vec<(JobSeq, JobId)> = theirs
            .filter(|(_, row)| self.job_may_go(row))
            .map(|(seq, row)| (*seq, row.job.request.job_id.clone()))
            .take(limit)
            .collect();
        for (seq, id) in &gone {
            self.forget(*seq);
            self.outbox.retain(|_, row| row.job_id != *id);
        }
        gone.len() as u64
    }

    fn erase_runs(&mut self, tenant: &TenantId, limit: usize) -> u64 {
        let theirs = self.runs.iter().filter(|(_, row)| row.head.tenant == *tenant && row.head.state.is_over());
        let mut gone: Vec<(i64, RunId)> =
            theirs.filter(|(_, row)| self.run_may_go(row)).map(|(id, row)| (row.no, id.clone())).collect();
        gone.sort_unstable();
        gone.truncate(limit);
        for (_, id) in &gone {
            self.runs.remove(id);
            self.run_keys.retain(|_, key| key.run != *id);
            self.news.retain(|_, news| news.run != *id);
        }
        gone.len() as u64
    }

    /// Whether there was anything.
    fn erase_rest(&mut self, tenant: &TenantId) -> bool {
        let before = self.of_tenants();
        self.schedules.retain(|(owner, _), _| owner != tenant);
        self.dags.retain(|(owner, _), _| owner != tenant);
        self.keys.retain(|(owner, _), _| owner != tenant);
        self.run_keys.retain(|(owner, _), _| owner != tenant);
        self.memos.retain(|key, _| key.tenant != *tenant);
        self.of_tenants() < before || self.tenants.contains(tenant)
    }

    fn of_tenants(&self) -> usize {
        self.schedules.len() + self.dags.len() + self.keys.len() + self.run_keys.len() + self.memos.len()
    }

    fn erase_slots(&mut self, tenant: &TenantId, limit: usize) -> u64 {
        let theirs = self.slots.iter_mut().filter(|((owner, _), _)| owner == tenant);
        let mut gone = 0;
        for (_, slots) in theirs {
            let keys: Vec<_> = slots.rows.keys().take(limit - gone).cloned().collect();
            gone += keys.len();
            keys.iter().for_each(|key| slots.forget(key));
        }
        self.slots.retain(|_, slots| !slots.rows.is_empty());
        gone as u64
    }
}

fn stored_bytes(row: &JobRow) -> u64 {
    let result = row.result.as_ref().map_or(0, |result| result.as_str().len());
    (row.job.request.payload.as_str().len() + result) as u64
}
