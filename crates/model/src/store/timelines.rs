//! After the Store was brought back to an earlier state; and how that is done here.

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;

use super::MemoryStore;
use super::data::Data;
use lockgate_ports::store::{StoreError, Timelines};

/// A copy of everything, as a backup would be.
pub struct MemoryBackup(Data);

impl MemoryStore {
    pub fn backup(&self) -> MemoryBackup {
        MemoryBackup(self.open().0.clone())
    }

    /// Everything is as it was. Edges of then are gone: the operator who restores a Store makes sure that no process uses it.
    pub fn restore(&self, backup: &MemoryBackup) {
        let (mut data, now) = self.open();
        *data = backup.0.clone();
        for edge in data.edges.values_mut() {
            edge.closed_at.get_or_insert(now);
        }
    }
}

#[async_trait]
impl Timelines for MemoryStore {
    async fn begin_timeline(&self, salt: [u8; 16], audit: AuditEntry) -> Result<Option<u64>, StoreError> {
        let (mut data, now) = self.open();
        if data.edges.values().any(|edge| edge.closed_at.is_none() && edge.expires_at > now) {
            return Ok(None);
        }
        let mut jobs = 0;
        for row in data.jobs.values_mut().filter(|row| !row.job.state().is_terminal()) {
            row.job.life.renew_tokens(&salt);
            row.job.version += 1;
            jobs += 1;
        }
        data.keep_audit(vec![audit]);
        Ok(Some(jobs))
    }
}
